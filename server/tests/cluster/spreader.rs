//! A way to several instances: each connection goes to the next one that takes it, so that one
//! visitor meets all of them. What a load balancer without any memory does.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub struct Spreader {
    pub url: String,
    targets: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Spreader {
    /// A way to the public listeners at these addresses.
    pub fn to(urls: impl Iterator<Item = String>) -> Spreader {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let spreader = Spreader { url, targets: Arc::default() };
        spreader.set(urls);
        let targets = spreader.targets.clone();
        std::thread::spawn(move || {
            let turn = AtomicUsize::new(0);
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let all = targets.lock().expect("nobody panics while holding it").clone();
                let first = turn.fetch_add(1, Ordering::Relaxed);
                let order = (0..all.len()).map(|at| all[(first + at) % all.len()]);
                let server = order.into_iter().find_map(|at| {
                    TcpStream::connect_timeout(&at, Duration::from_millis(200)).ok()
                });
                let Some(server) = server else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                carry(client.try_clone(), server.try_clone());
                carry(server.try_clone(), client.try_clone());
            }
        });
        spreader
    }

    /// From now on new connections go there.
    pub fn set(&self, urls: impl Iterator<Item = String>) {
        let address = |url: String| {
            url.trim_start_matches("http://").parse().expect("instances say their addresses")
        };
        let targets = urls.map(address).collect();
        *self.targets.lock().expect("nobody panics while holding it") = targets;
    }
}

fn carry(from: std::io::Result<TcpStream>, to: std::io::Result<TcpStream>) {
    let (Ok(mut from), Ok(mut to)) = (from, to) else { return };
    std::thread::spawn(move || {
        let mut bytes = [0; 16 << 10];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}
