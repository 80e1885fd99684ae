//! Foreign text made harmless. Everything that reaches a page goes through here.

use std::fmt::Write;

/// Text for HTML, between tags or inside a quoted attribute.
pub fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // No letter at all: browsers replace it, so the escaped text would not read back.
            '\0' => safe.push('\u{FFFD}'),
            other => safe.push(other),
        }
    }
    safe
}

/// JSON for a data block. A script element ends at the first `</script`, and comments change how
/// it is read, so no `<` is left; in JSON it can only stand inside a string.
pub fn json(value: &serde_json::Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// One value of a query.
pub fn query(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                safe.push(byte as char);
            }
            other => write!(safe, "%{other:02X}").expect("a string takes everything"),
        }
    }
    safe
}
