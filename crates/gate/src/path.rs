//! A path as it came, and as an origin may understand it.
//!
//! Rules name paths, and origins differ in how they read one: `/assets/../checkout`,
//! `/%63heckout`, `//checkout` and `/x;a=b/` are all somebody's `/checkout`. So a path has two
//! readings, as it stands and as the most forgiving origin would take it, and a rule that
//! protects holds when *either* fits, a rule that lets by only when *both* do. A path is never
//! changed on its way: the origin gets what came.

use std::borrow::Cow;

use crate::glob;

#[derive(Clone, Debug)]
pub struct Path<'a> {
    raw: &'a str,
    /// Decoded, with its dots and doubled slashes gone.
    plain: Cow<'a, str>,
}

impl<'a> Path<'a> {
    pub fn of(raw: &'a str) -> Path<'a> {
        Path { raw, plain: plain(raw) }
    }

    /// For rules that protect: no spelling leads around them.
    pub fn may_be(&self, pattern: &str) -> bool {
        glob::fits(pattern, self.raw) || glob::fits(pattern, &self.plain)
    }

    /// For rules that let by: no spelling makes something else look like this.
    pub fn surely_is(&self, pattern: &str) -> bool {
        glob::fits(pattern, self.raw) && glob::fits(pattern, &self.plain)
    }
}

/// As the most forgiving origin reads it.
fn plain(raw: &str) -> Cow<'_, str> {
    let bytes = raw.as_bytes();
    let odd = bytes.iter().any(|byte| matches!(byte, b'%' | b'\\' | b';'));
    if !odd && !raw.contains("//") && !raw.contains("/.") {
        return Cow::Borrowed(raw);
    }
    // Twice decoded: some chains of servers decode at every step.
    let decoded = decode(&decode(bytes));
    let text: String = String::from_utf8_lossy(&decoded).replace('\\', "/");
    let mut segments: Vec<&str> = Vec::new();
    for segment in text.split('/') {
        // `/a;x=1/` is `/a/` to servers that know path parameters.
        match segment.split(';').next().unwrap_or_default() {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    let mut plain = String::with_capacity(text.len());
    for segment in &segments {
        plain.push('/');
        plain.push_str(segment);
    }
    if segments.is_empty() || text.ends_with('/') {
        plain.push('/');
    }
    Cow::Owned(plain)
}

fn decode(bytes: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let pair = match bytes[at..] {
            [b'%', high, low, ..] => digit(high).zip(digit(low)),
            _ => None,
        };
        match pair {
            Some((high, low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Path;

    #[test]
    fn no_spelling_leads_around_a_rule_that_protects() {
        for path in [
            "/checkout",
            "/assets/../checkout",
            "/%63heckout",
            "/%2563heckout",
            "//checkout",
            "/.//checkout",
            "/assets/%2e%2e/checkout",
            "/assets/..%2fcheckout",
            "/assets\\..\\checkout",
            "/checkout;jsession=1",
            "/x/..;/checkout",
        ] {
            assert!(Path::of(path).may_be("/checkout"), "{path}");
        }
        assert!(!Path::of("/checkouts").may_be("/checkout"));
    }

    #[test]
    fn nothing_else_is_dressed_up_as_what_is_let_by() {
        for path in [
            "/assets/../checkout",
            "/assets/%2e%2e/checkout",
            "/assets/..%2fcheckout",
            "/assets\\..\\checkout",
            "/assets/..;/checkout",
            "//assets/../checkout",
        ] {
            assert!(!Path::of(path).surely_is("/assets/*"), "{path}");
        }
        for path in ["/assets/a.css", "/assets/a%20b.css", "/assets/.hidden", "/assets/"] {
            assert!(Path::of(path).surely_is("/assets/*"), "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_path_has_a_plain_reading_without_dots_and_doubles(path in "/[a./%;2eEfF5cC\\\\]{0,24}") {
            let plain = super::plain(&path);
            prop_assert!(plain.starts_with('/'), "{plain}");
        }
    }
}
