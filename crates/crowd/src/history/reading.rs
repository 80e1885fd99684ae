//! Reading a history, line by line, without holding it.

use std::fmt;
use std::io::BufRead;

use super::line::{Call, FORMAT, Header, Line};

/// Longer than any line that a release writes; a file without line ends must not fill the memory.
const LINE_MAX: u64 = 1 << 20;

/// Why a file is no history.
#[derive(Debug)]
pub enum Trouble {
    Io(std::io::Error),
    /// This line, counted from 1, is not what a line should be.
    Line {
        number: u64,
        why: String,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Io(error) => error.fmt(f),
            Trouble::Line { number, why } => write!(f, "line {number}: {why}"),
        }
    }
}

impl std::error::Error for Trouble {}

/// Hands over the header, then every call. A last line without its end was being written when
/// its writer died; it is left out, and told as `true`.
pub fn read(
    mut from: impl BufRead,
    mut each: impl FnMut(u64, Line<'_>) -> Result<(), String>,
) -> Result<bool, Trouble> {
    let mut line = Vec::with_capacity(1_024);
    let mut number = 0;
    loop {
        line.clear();
        let limited = &mut std::io::Read::take(&mut from, LINE_MAX);
        limited.read_until(b'\n', &mut line).map_err(Trouble::Io)?;
        if line.is_empty() && number == 0 {
            return Err(Trouble::Line { number: 1, why: "the file is empty".into() });
        }
        if line.is_empty() {
            return Ok(false);
        }
        number += 1;
        let whole = line.pop_if(|byte| *byte == b'\n').is_some();
        if !whole && line.len() as u64 == LINE_MAX {
            return Err(Trouble::Line { number, why: format!("longer than {LINE_MAX} bytes") });
        }
        if !whole && number > 1 {
            return Ok(true);
        }
        let wrong = |why: String| Trouble::Line { number, why };
        let parsed = if number == 1 {
            let header: Header = serde_json::from_slice(&line)
                .map_err(|error| wrong(format!("no header of a history: {error}")))?;
            if header.history != FORMAT {
                let found = header.history;
                return Err(wrong(format!("format {found}; this release reads {FORMAT}")));
            }
            Line::Header(header)
        } else {
            let call: Call<'_> =
                serde_json::from_slice(&line).map_err(|error| wrong(error.to_string()))?;
            if call.t1 < call.t0 {
                return Err(wrong("answered before it was sent (t1 < t0)".into()));
            }
            Line::Call(call)
        };
        each(number, parsed).map_err(wrong)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"history":1,"by":"test","started":"","started_ms":0,"seed":1}"#;

    fn lines(text: &str) -> Result<(usize, bool), String> {
        let mut calls = 0;
        let torn = read(text.as_bytes(), |_, line| {
            calls += usize::from(matches!(line, Line::Call(_)));
            Ok(())
        });
        torn.map(|torn| (calls, torn)).map_err(|trouble| trouble.to_string())
    }

    #[test]
    fn a_history_is_a_header_and_calls() {
        let call = r#"{"t0":1,"t1":2,"who":0,"call":"join","room":"r","lost":true}"#;
        assert_eq!(lines(&format!("{HEADER}\n{call}\n{call}\n")), Ok((2, false)));
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_told() {
        let call = r#"{"t0":1,"t1":2,"who":0,"call":"join"}"#;
        assert_eq!(lines(&format!("{HEADER}\n{call}\n{}", &call[..20])), Ok((1, true)));
    }

    #[test]
    fn a_file_that_is_none_is_refused_with_the_line() {
        assert!(lines("").unwrap_err().contains("empty"));
        assert!(lines("{}\n").unwrap_err().starts_with("line 1: no header"));
        let other = HEADER.replace(":1,\"by", ":2,\"by");
        assert!(lines(&format!("{other}\n")).unwrap_err().contains("format 2"));
        assert!(lines(&format!("{HEADER}\nnot json\n")).unwrap_err().starts_with("line 2"));
        let back = r#"{"t0":2,"t1":1,"who":0,"call":"join"}"#;
        assert!(lines(&format!("{HEADER}\n{back}\n")).unwrap_err().contains("t1 < t0"));
    }

    #[test]
    fn a_call_of_a_later_release_is_other() {
        let text = format!("{HEADER}\n{{\"t0\":1,\"t1\":2,\"who\":0,\"call\":\"teleport\"}}\n");
        assert_eq!(lines(&text), Ok((1, false)));
    }
}
