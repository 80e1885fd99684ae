//! One Redis connection for many tasks: commands that meet go out in one write, and answers come
//! back in the order of the commands.
//!
//! Leaner than a client library, in the peer's favour: commands go out as they are, and an
//! answer can only be a number or an error, which is all that the join script gives.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, oneshot};

type Answer = Result<i64, String>;

pub struct Multiplexed {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    more: Notify,
}

#[derive(Default)]
struct Queue {
    /// Commands that have not left.
    bytes: Vec<u8>,
    /// Who waits for an answer, in the order of the commands.
    waiting: VecDeque<oneshot::Sender<Answer>>,
}

impl Multiplexed {
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        let shared = Arc::new(Shared::default());
        tokio::spawn(write(writer, shared.clone()));
        tokio::spawn(read(reader, shared.clone()));
        Ok(Self { shared })
    }

    /// Sends one whole command and waits for its answer.
    pub async fn ask(&self, command: Vec<u8>) -> Answer {
        let (tell, told) = oneshot::channel();
        {
            let mut queue = self.shared.queue.lock().expect("nobody panics while holding it");
            queue.bytes.extend_from_slice(&command);
            queue.waiting.push_back(tell);
        }
        self.shared.more.notify_one();
        told.await.unwrap_or_else(|_| Err("redis went away".into()))
    }
}

async fn write(mut writer: OwnedWriteHalf, shared: Arc<Shared>) -> io::Result<()> {
    let mut bytes = vec![];
    loop {
        shared.more.notified().await;
        std::mem::swap(
            &mut bytes,
            &mut shared.queue.lock().expect("nobody panics while holding it").bytes,
        );
        writer.write_all(&bytes).await?;
        bytes.clear();
    }
}

async fn read(mut reader: OwnedReadHalf, shared: Arc<Shared>) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(1 << 16);
    loop {
        if reader.read_buf(&mut bytes).await? == 0 {
            // Dropping the senders tells everyone who waits.
            shared.queue.lock().expect("nobody panics while holding it").waiting.clear();
            return Ok(());
        }
        let mut taken = 0;
        let mut queue = shared.queue.lock().expect("nobody panics while holding it");
        while let Some(length) = bytes[taken..].iter().position(|&byte| byte == b'\n') {
            let line = &bytes[taken..taken + length];
            taken += length + 1;
            if let Some(waiting) = queue.waiting.pop_front() {
                let _ = waiting.send(answer(line));
            }
        }
        drop(queue);
        bytes.drain(..taken);
    }
}

fn answer(line: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(line);
    let number = text.trim_end().strip_prefix(':').and_then(|number| number.parse().ok());
    number.ok_or_else(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_number_or_what_redis_said() {
        assert_eq!(answer(b":42\r"), Ok(42));
        assert_eq!(answer(b"-ERR no\r"), Err("-ERR no\r".into()));
    }
}
