//! As much of HTTP/1.1 as it takes to know where an answer ends.

/// The head of an answer, and where its body lies in the bytes that held it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub body_from: usize,
    pub body_bytes: usize,
}

impl Head {
    /// Bytes of the whole answer.
    pub fn ends(&self) -> usize {
        self.body_from + self.body_bytes
    }
}

/// Reads the head at the front of `bytes`; none while it has not come whole.
///
/// Answers without a `content-length` have no body here: that is how 304 and 101 come, and a
/// server that sends chunks instead is found out because nothing fits after it.
pub fn head(bytes: &[u8]) -> Result<Option<Head>, String> {
    let Some((first, mut rest)) = line(bytes) else { return Ok(None) };
    let status = status_of(first).ok_or_else(|| wrong("no status", first))?;
    let mut body_bytes = 0;
    while let Some((line, after)) = line(rest) {
        rest = after;
        if line.is_empty() {
            return Ok(Some(Head { status, body_from: bytes.len() - rest.len(), body_bytes }));
        }
        if let Some(value) = header(line, b"content-length") {
            body_bytes = number(value).ok_or_else(|| wrong("no length", line))?;
        }
    }
    Ok(None)
}

/// The first line without its end, and what comes after it.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    Some((line, &bytes[end + 1..]))
}

/// The value of a header line, if it is this one.
fn header<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = line.split_at_checked(name.len())?;
    if !start.eq_ignore_ascii_case(name) {
        return None;
    }
    rest.strip_prefix(b":").map(<[u8]>::trim_ascii)
}

fn status_of(line: &[u8]) -> Option<u16> {
    let code = line.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    u16::try_from(number(code)?).ok()
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn wrong(what: &str, line: &[u8]) -> String {
    format!("{what} in {:?}", String::from_utf8_lossy(line))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WHOLE: &[u8] =
        b"HTTP/1.1 201 Created\r\ncontent-type: text/plain\r\nContent-Length: 5\r\n\r\nhelloHTTP";

    #[test]
    fn an_answer_ends_where_its_length_says() {
        let found = head(WHOLE).expect("it is HTTP").expect("it is whole");
        assert_eq!((found.status, found.body_bytes), (201, 5));
        assert_eq!(&WHOLE[found.body_from..found.ends()], b"hello");
    }

    #[test]
    fn a_head_that_is_cut_off_is_never_taken_for_a_whole_one() {
        let ends = WHOLE.len() - b"helloHTTP".len();
        for cut in 0..ends {
            assert_eq!(head(&WHOLE[..cut]), Ok(None), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_not_http_is_refused_with_its_line() {
        assert!(head(b"+OK\r\n").expect_err("it is redis").contains("+OK"));
        assert!(head(b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..96)) {
            let _ = head(&bytes);
            let _ = head(&[b"HTTP/1.1 200 OK\r\n", &bytes[..]].concat());
        }
    }
}
