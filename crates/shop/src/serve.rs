//! The shop on a socket of its own, until somebody ends it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::shop::Shop;

/// How often reservations that lapsed are swept away. They stopped counting when they lapsed.
const SWEEP_EVERY: Duration = Duration::from_millis(500);
/// A client that sends no head is not a client.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// A shop that is open. It closes when this is dropped.
#[derive(Debug)]
pub struct Open {
    pub address: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Opens the shop at this address; port 0 picks a free one.
pub async fn serve(shop: Arc<Shop>, address: SocketAddr) -> std::io::Result<Open> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let sweeping = tokio::spawn(sweep(shop.clone()));
    let accepting = tokio::spawn(accept(shop, listener));
    Ok(Open { address, tasks: vec![sweeping, accepting] })
}

async fn accept(shop: Arc<Shop>, listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, most often; a moment later some are closed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let shop = shop.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let shop = shop.clone();
                async move { Ok::<_, std::convert::Infallible>(shop.answer(request).await) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
            // A visitor who goes away in the middle is nobody's mistake.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn sweep(shop: Arc<Shop>) {
    let mut every = tokio::time::interval(SWEEP_EVERY);
    loop {
        every.tick().await;
        if let Err(error) = shop.sweep().await {
            eprintln!("the shop's stock: {error}");
        }
    }
}
