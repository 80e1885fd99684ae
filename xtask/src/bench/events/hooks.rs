//! Webhooks, beside a plain hyper client that posts the same bytes, headers and signatures included:
//! one connection, one message after another, to a server that says 204 to everything.

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use waitroom_outbox::body::{self, ReadyToken};
use waitroom_outbox::webhook::{
    DeadLetters, Line, Manners, Reach, Secrets, SystemResolver, Wall, Webhook,
};
use waitroom_outbox::{Message, Pace, Told};
use waitroom_store::seal::MasterKey;
use waitroom_store::{Head, Seams, Shelf};

use super::Bench;
use crate::bench::report::Figure;
use crate::failure::{Failure, OrFail, Outcome};

/// What the server sends together.
const TOGETHER: usize = 64;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=\n";

pub(super) async fn measure(bench: &Bench<'_>, folder: &Path) -> Outcome<Vec<Figure>> {
    let file = folder.join("webhook.secret");
    std::fs::write(&file, SECRET).or_fail(|| "write a secret")?;
    let secrets = || Secrets::load(&file).or_fail(|| "read a secret");
    let listener = TcpListener::bind("127.0.0.1:0").await.or_fail(|| "listen on loopback")?;
    let at = listener.local_addr().or_fail(|| "ask where we listen")?;
    let serving = tokio::spawn(serve(listener));
    let url: Uri = format!("http://{at}/in").parse().or_fail(|| "write an address")?;
    let manners = Manners { reach: Reach::Anywhere, within: Duration::from_secs(15), ca: None };
    let key = MasterKey::from_bytes([7; 32]);
    let hook = Webhook {
        post: Line::to(&url, manners, Arc::new(SystemResolver)).or_fail(|| "find the endpoint")?,
        secrets: secrets()?,
        ready: ReadyToken::Off,
        patience: Duration::from_secs(3_600),
        dead: Arc::new(DeadLetters::on(Shelf::in_memory(key))),
        clock: Wall(Seams::real().clock),
        stuck: Mutex::default(),
    };
    eprintln!("webhook: the relay, then the plain client");
    let pace = Pace { batch: TOGETHER, ..Pace::default() };
    let ours = bench.carried("webhook", Told::new(hook), pace).await?;
    let plain = plain(bench, &url, &secrets()?).await?;
    serving.abort();
    Ok(ours.beside("webhook", plain).into())
}

/// Takes everything.
async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let take = service_fn(|request: Request<Incoming>| async {
                // Read to its end, or the connection is of no more use.
                let _ = request.into_body().collect().await;
                let mut answer = Response::new(Empty::<Bytes>::new());
                *answer.status_mut() = hyper::StatusCode::NO_CONTENT;
                Ok::<_, Infallible>(answer)
            });
            let builder = hyper::server::conn::http1::Builder::new();
            let _ = builder.serve_connection(TokioIo::new(stream), take).await;
        });
    }
}

/// Messages a second, each answer awaited before the next.
async fn plain(bench: &Bench<'_>, url: &Uri, secrets: &Secrets) -> Outcome<f64> {
    let authority = url.authority().ok_or_else(|| Failure::new("no host"))?.as_str();
    let stream = TcpStream::connect(authority).await.or_fail(|| "connect")?;
    stream.set_nodelay(true).or_fail(|| "switch Nagle's algorithm off")?;
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut send, driver) = shaken.or_fail(|| "connect")?;
    tokio::spawn(driver);
    let (mut took, mut sent, mut at) = (Duration::ZERO, 0u64, Head::EMPTY);
    loop {
        let (next, messages) = bench.messages(at).await?;
        if next == at {
            return Ok(sent as f64 / took.as_secs_f64());
        }
        at = next;
        let ready: Outcome<Vec<_>> =
            messages.iter().map(|it| request(it, authority, secrets)).collect();
        let ready = ready?;
        let began = Instant::now();
        for request in ready {
            send.ready().await.or_fail(|| "post")?;
            let answer = send.send_request(request).await.or_fail(|| "post")?;
            answer.into_body().collect().await.or_fail(|| "read an answer")?;
            sent += 1;
        }
        took += began.elapsed();
    }
}

fn request(message: &Message, host: &str, secrets: &Secrets) -> Outcome<Request<Full<Bytes>>> {
    let (id, body) = (message.id.to_string(), body::envelope(message, ReadyToken::Off));
    let at_s = message.at.0 / 1_000;
    let signature = secrets.sign(&id, at_s, &body).or_fail(|| "sign")?;
    let mut request = Request::post("/in")
        .header("host", host)
        .header("content-type", "application/json")
        .header("user-agent", concat!("waitroom/", env!("CARGO_PKG_VERSION")))
        .header("webhook-id", &id)
        .header("webhook-timestamp", at_s.to_string())
        .header("webhook-signature", signature);
    for (name, value) in body::attributes(message) {
        request = request.header(format!("ce-{name}"), value);
    }
    request.body(Full::new(Bytes::from(body))).or_fail(|| "write a request")
}
