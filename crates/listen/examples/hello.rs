//! The front door with the smallest service behind it: for curl, wrk and nghttp by hand.
//! `cargo run -p waitroom-listen --example hello -- 127.0.0.1:8080`; ends on a line or the end of
//! standard input, and says how that went.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response, body::Incoming};
use waitroom_listen::{Listener, Peer, Settings};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let mut settings = Settings::new(vec![address.parse()?]);
    settings.per_address_max = 0;
    let listener = Listener::bind(settings)?;
    let stats = listener.stats();
    println!("listening on {} with {:?}", listener.local_addr(), listener.limits());
    let (stop, stopped) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _end_of_input = std::io::stdin().read_line(&mut String::new());
        let _stop = stop.send(());
    });
    let make = |_: &Peer| {
        service_fn(|_: Request<Incoming>| async {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"hello\n"))))
        })
    };
    let outcome = listener.serve(make, async { drop(stopped.await) }).await;
    println!("{outcome:?}\n{:?}", stats.now());
    Ok(())
}
