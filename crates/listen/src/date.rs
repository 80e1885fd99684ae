//! The date of an answer, written once a second.

use std::cell::Cell;
use std::time::{Duration, UNIX_EPOCH};

/// As long as every date of HTTP is.
const CHARS: usize = 29;

/// The second since 1970 as HTTP writes it.
pub fn http_date(now_s: u64) -> [u8; CHARS] {
    thread_local!(static LAST: Cell<(u64, [u8; CHARS])> = const { Cell::new((u64::MAX, [0; CHARS])) });
    let (second, text) = LAST.get();
    if second == now_s {
        return text;
    }
    // The writer of dates knows the years 1970 to 9999; beyond them a clock is broken anyway.
    let at = UNIX_EPOCH + Duration::from_secs(now_s.min(253_402_300_799));
    let mut text = [0; CHARS];
    text.copy_from_slice(httpdate::fmt_http_date(at).as_bytes());
    LAST.set((now_s, text));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_the_one_of_its_second() {
        let text = |now_s| String::from_utf8(http_date(now_s).to_vec()).expect("ASCII");
        assert_eq!(text(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(text(784_111_778), "Sun, 06 Nov 1994 08:49:38 GMT");
        assert_eq!(text(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(text(u64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
