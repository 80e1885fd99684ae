//! A Redis connection of a few lines: commands out in pipelines, replies in.
//!
//! No client crate, because the client must cost little next to the server it measures, and
//! because all we need is commands as bulk strings and five kinds of replies.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A redis-server on loopback answers in microseconds; after this long it is stuck or gone.
const PATIENCE: Duration = Duration::from_secs(60);
/// Redis allows 512 MB; we never ask for anything near this.
const BULK_BYTES_MAX: usize = 1 << 20;
/// Arrays within arrays: two levels are all that any reply to us has.
const DEPTH_MAX: usize = 4;
const ARRAY_LENGTH_MAX: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Text(String),
    Number(i64),
    Bulk(Vec<u8>),
    Nothing,
    List(Vec<Reply>),
}

#[derive(Debug)]
pub struct Connection {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Connection {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let writer = TcpStream::connect_timeout(&address, PATIENCE)?;
        writer.set_nodelay(true)?;
        writer.set_read_timeout(Some(PATIENCE))?;
        writer.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { reader: BufReader::with_capacity(1 << 16, writer.try_clone()?), writer })
    }

    /// One command, one reply. An error reply of the server is an error here.
    pub fn call(&mut self, words: &[&str]) -> io::Result<Reply> {
        let mut pipeline = Pipeline::default();
        pipeline.push(words);
        self.send(&mut pipeline, |_| ())?.ok_or_else(|| broken("no reply"))
    }

    /// Sends all commands of the pipeline in one write, then reads as many replies, and leaves
    /// the pipeline empty for the next round. Hands back the last reply.
    ///
    /// The pipeline must stay small enough for the socket buffers of both sides: we write all
    /// before we read any. A hundred commands of a few hundred bytes are.
    pub fn send(
        &mut self,
        pipeline: &mut Pipeline,
        mut each: impl FnMut(&Reply),
    ) -> io::Result<Option<Reply>> {
        self.writer.write_all(&pipeline.bytes)?;
        let mut last = None;
        for _ in 0..pipeline.commands {
            let reply = read_reply(&mut self.reader)?;
            each(&reply);
            last = Some(reply);
        }
        pipeline.bytes.clear();
        pipeline.commands = 0;
        Ok(last)
    }
}

/// Commands on their way, already in wire form.
#[derive(Debug, Default)]
pub struct Pipeline {
    bytes: Vec<u8>,
    commands: usize,
}

impl Pipeline {
    pub fn push(&mut self, words: &[&str]) {
        write!(self.bytes, "*{}\r\n", words.len()).expect("a Vec takes every write");
        for word in words {
            write!(self.bytes, "${}\r\n{word}\r\n", word.len()).expect("a Vec takes every write");
        }
        self.commands += 1;
    }

    /// The commands as they go over the wire.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads exactly one reply.
pub fn read_reply(from: &mut impl BufRead) -> io::Result<Reply> {
    read_nested(from, 0)
}

fn read_nested(from: &mut impl BufRead, depth: usize) -> io::Result<Reply> {
    if depth == DEPTH_MAX {
        return Err(broken("lists nested too deep"));
    }
    let line = read_line(from)?;
    let (kind, rest) = line.split_at_checked(1).ok_or_else(|| broken("an empty line"))?;
    match kind {
        "+" => Ok(Reply::Text(rest.to_owned())),
        "-" => Err(io::Error::other(format!("redis says: {rest}"))),
        ":" => Ok(Reply::Number(rest.parse().map_err(|_| broken("not a number"))?)),
        "$" => match length(rest, BULK_BYTES_MAX)? {
            None => Ok(Reply::Nothing),
            Some(bytes) => {
                let mut bulk = vec![0; bytes + 2];
                from.read_exact(&mut bulk)?;
                if !bulk.ends_with(b"\r\n") {
                    return Err(broken("a bulk that does not end where it said"));
                }
                bulk.truncate(bytes);
                Ok(Reply::Bulk(bulk))
            }
        },
        "*" => match length(rest, ARRAY_LENGTH_MAX)? {
            None => Ok(Reply::Nothing),
            Some(items) => {
                let item = |_| read_nested(from, depth + 1);
                Ok(Reply::List((0..items).map(item).collect::<io::Result<_>>()?))
            }
        },
        _ => Err(broken("an unknown kind of reply")),
    }
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = vec![];
    from.take(BULK_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
    if !line.ends_with(b"\r\n") {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "redis: the reply was cut off"));
    }
    line.truncate(line.len() - 2);
    String::from_utf8(line).map_err(|_| broken("a line that is no text"))
}

/// A length, or `None` for the -1 that means "nothing".
fn length(text: &str, max: usize) -> io::Result<Option<usize>> {
    match text.parse::<i64>() {
        Ok(-1) => Ok(None),
        Ok(length) => match usize::try_from(length) {
            Ok(length) if length <= max => Ok(Some(length)),
            _ => Err(broken("a length out of bounds")),
        },
        Err(_) => Err(broken("not a length")),
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("redis sent {what}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REPLIES: &[u8] = b"+OK\r\n:42\r\n$5\r\nhe\r\no\r\n$-1\r\n*2\r\n:1\r\n*1\r\n+x\r\n";

    fn expected() -> Vec<Reply> {
        vec![
            Reply::Text("OK".into()),
            Reply::Number(42),
            Reply::Bulk(b"he\r\no".to_vec()),
            Reply::Nothing,
            Reply::List(vec![Reply::Number(1), Reply::List(vec![Reply::Text("x".into())])]),
        ]
    }

    #[test]
    fn replies_are_read_one_by_one_however_the_network_cuts_them() {
        for capacity in 1..REPLIES.len() {
            let mut reader = BufReader::with_capacity(capacity, REPLIES);
            let read: Vec<Reply> =
                (0..5).map(|_| read_reply(&mut reader).expect("a whole reply")).collect();
            assert_eq!(read, expected(), "buffer of {capacity}");
        }
    }

    #[test]
    fn an_error_reply_is_an_error_with_the_servers_words() {
        let error = read_reply(&mut &b"-NOSCRIPT no matching script\r\n"[..]).expect_err("it is");
        assert!(error.to_string().contains("NOSCRIPT no matching script"), "{error}");
    }

    #[test]
    fn a_reply_that_is_cut_off_is_never_taken_for_a_whole_one() {
        let whole = b"*2\r\n$3\r\nabc\r\n:77777\r\n";
        for cut in 0..whole.len() {
            assert!(read_reply(&mut &whole[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_pipeline_is_written_as_lists_of_bulk_strings() {
        let mut pipeline = Pipeline::default();
        pipeline.push(&["GET", "ü"]);
        assert_eq!(pipeline.bytes, "*2\r\n$3\r\nGET\r\n$2\r\nü\r\n".as_bytes());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic_or_run_on(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = read_reply(&mut &bytes[..]);
        }

        #[test]
        fn no_reply_like_text_makes_the_reader_panic(text in "([*$:+-][0-9-]{0,12}\r\n){0,12}") {
            let _ = read_reply(&mut text.as_bytes());
        }
    }
}
