//! One request on a connection of its own, for what is asked once: operators' calls.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::waitroom::{KEY, ROOM};
use crate::bench::load::answer::head;
use crate::failure::{Failure, OrFail, Outcome};

/// Longer than any answer of a healthy server, overloaded ones included.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks, and hands back the body of a success.
pub fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> Outcome<String> {
    let attempt = || format!("{method} {path}");
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).or_fail(attempt)?;
    stream.set_read_timeout(Some(PATIENCE)).or_fail(attempt)?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).or_fail(attempt)?;
    let mut bytes = vec![];
    stream.read_to_end(&mut bytes).or_fail(attempt)?;
    let head = head(&bytes).map_err(Failure::new)?;
    let head = head.ok_or_else(|| Failure::new(format!("{} was cut off", attempt())))?;
    let said = String::from_utf8_lossy(&bytes[head.body_from..]).into_owned();
    match head.status {
        200..=299 => Ok(said),
        status => Err(Failure::new(format!("{} was answered {status}: {said}", attempt()))),
    }
}

/// Lets the next `count` in.
pub fn admit(admin: SocketAddr, count: u64) -> Outcome {
    let body = format!("{{\"count\":{count}}}");
    ask(admin, "POST", &format!("/admin/v1/rooms/{ROOM}/admit"), &body).map(drop)
}
