//! What a form sent: `seat=12&seat=13&name=Ana+B`.

/// Every field in its order. Text that is no UTF-8, or no form at all, becomes what it can.
pub fn fields(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (plain(name), plain(value))
        })
        .collect()
}

/// The first value of a field.
pub fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
}

fn plain(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        bytes.push(match first {
            b'+' => b' ',
            b'%' => match hex(more) {
                Some(byte) => {
                    rest = &more[2..];
                    byte
                }
                None => b'%',
            },
            byte => *byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(text: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(text.get(..2)?).ok()?;
    // `from_str_radix` would take a sign.
    digits.bytes().all(|it| it.is_ascii_hexdigit()).then_some(())?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_form_is_read_as_browsers_write_it() {
        let read = fields("seat=12&seat=13&name=Ana+B%C3%A4r%26&empty=&bare");
        assert_eq!(field(&read, "name"), Some("Ana Bär&"));
        assert_eq!(read.iter().filter(|(name, _)| name == "seat").count(), 2);
        assert_eq!(field(&read, "empty"), Some(""));
        assert_eq!(field(&read, "bare"), Some(""));
        assert_eq!(field(&read, "other"), None);
        assert_eq!(plain("100%+%zz%+1%"), "100% %zz% 1%");
    }

    proptest! {
        #[test]
        fn nothing_that_is_sent_breaks_it(text in ".*") {
            let _ = fields(&text);
        }

        #[test]
        fn what_is_encoded_comes_back(text in ".{0,40}") {
            let sent: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
            prop_assert_eq!(plain(&sent), text);
        }
    }
}
