//! PEM files, as far as keys come in them: one block, and what it says it is.

use base64::{Engine, engine::general_purpose::STANDARD};

/// The label of the only block in the file (`PRIVATE KEY`) and its bytes. Text before and after
/// the block is a comment, by RFC 7468. Several blocks are refused: which one was meant?
pub(crate) fn read(text: &str) -> Option<(String, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, rest) = rest.split_once(&format!("-----END {label}-----"))?;
    if rest.contains("-----BEGIN ") {
        return None;
    }
    let letters: String = body.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    Some((label.to_owned(), STANDARD.decode(letters).ok()?))
}

/// Writes one block.
pub(crate) fn write(label: &str, der: &[u8]) -> String {
    let letters = STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in letters.as_bytes().chunks(64) {
        text.push_str(str::from_utf8(line).expect("base64 is ASCII"));
        text.push('\n');
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_is_read_back_and_two_are_refused() {
        let der: Vec<u8> = (0..=255).collect();
        let text = write("PRIVATE KEY", &der);
        let commented = format!("a key of ours\n{}\nno more\n", text.replace('\n', "\r\n"));
        assert_eq!(read(&text), Some(("PRIVATE KEY".to_owned(), der.clone())));
        assert_eq!(read(&commented), Some(("PRIVATE KEY".to_owned(), der)));
        assert_eq!(read(&format!("{text}{text}")), None);
        assert_eq!(read(&text.replace("END", "FIN")), None);
        assert_eq!(read(&text.replace("AAEC", "AA!C")), None);
        assert_eq!(read(""), None);
    }
}
