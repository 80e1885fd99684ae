//! Where somebody may be sent: a path of this very host, or a place on the room's own target.
//! Nothing that a stranger can write into a link leads anywhere else.

/// A path on this host that a browser cannot take for another host: `//evil.example`, `/\evil`
/// and control characters become harmless or are refused.
pub fn local(path: &str) -> Option<String> {
    let bad = |byte: u8| byte <= b' ' || byte == 0x7f || byte == b'\\';
    if !path.starts_with('/') || path.bytes().any(bad) {
        return None;
    }
    // Browsers read `//host` and `/%09/host` as hosts in some places; one slash is a path.
    let rest = path.trim_start_matches('/');
    (!rest.starts_with("%09") && !rest.starts_with("%0a") && !rest.starts_with("%0A"))
        .then(|| format!("/{rest}"))
}

/// `to` as it may be gone to: a local path, or an address on the host of `target_url`.
pub fn safe(to: &str, target_url: &str) -> Option<String> {
    if let Some(path) = local(to) {
        return Some(path);
    }
    let asked: http::Uri = to.parse().ok()?;
    let target: http::Uri = target_url.parse().ok()?;
    let authority = asked.authority()?;
    // A name and a password before the host are there to deceive a reader.
    if authority.as_str().contains('@') || to.bytes().any(|byte| byte <= b' ' || byte == b'\\') {
        return None;
    }
    let same = asked.scheme() == target.scheme()
        && matches!(asked.scheme_str(), Some("http" | "https"))
        && target
            .authority()
            .is_some_and(|it| it.as_str().eq_ignore_ascii_case(authority.as_str()));
    same.then(|| to.to_owned())
}

/// A path and query without `wr_pass` (and `wr_staff`), as a safe local address.
pub fn cleaned(path: &str, query: Option<&str>) -> String {
    let path = local(path).unwrap_or_else(|| "/".to_owned());
    let ours = |pair: &&str| !pair.starts_with("wr_pass=") && !pair.starts_with("wr_staff=");
    let kept: Vec<&str> = query.unwrap_or_default().split('&').filter(ours).collect();
    let kept = kept.join("&");
    if kept.is_empty() { path } else { format!("{path}?{kept}") }
}

/// For a query value: everything but what is surely plain.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                encoded.push(byte as char);
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

pub fn decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let high = (bytes.next()? as char).to_digit(16)?;
                let low = (bytes.next()? as char).to_digit(16)?;
                (high * 16 + low) as u8
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TARGET: &str = "https://shop.example/sale";

    #[test]
    fn a_path_of_this_host_and_the_room_s_own_host_are_safe() {
        assert_eq!(safe("/a?b=c#d", TARGET).as_deref(), Some("/a?b=c#d"));
        assert_eq!(
            safe("https://shop.example/x", TARGET).as_deref(),
            Some("https://shop.example/x")
        );
        assert_eq!(safe("//evil.example/x", TARGET).as_deref(), Some("/evil.example/x"));
    }

    #[test]
    fn no_link_leads_to_a_stranger() {
        for to in [
            "https://evil.example/",
            "http://shop.example/",
            "https://shop.example.evil.example/",
            "https://shop.example@evil.example/",
            "https://user@shop.example/",
            "https://shop.example:8443/",
            "/\\evil.example",
            "\\\\evil.example",
            "/\t/evil.example",
            "/%09/evil.example",
            "javascript:alert(1)",
            "data:text/html,x",
            "evil.example",
            "https:evil.example",
            "https:/evil.example",
            "",
            " /a",
            "/a\r\nSet-Cookie: x=y",
        ] {
            assert_eq!(safe(to, TARGET), None, "{to:?}");
        }
    }

    #[test]
    fn the_pass_leaves_the_address_and_nothing_else_does() {
        assert_eq!(cleaned("/a", Some("x=1&wr_pass=eyJ&y=2")), "/a?x=1&y=2");
        assert_eq!(cleaned("/a", Some("wr_pass=eyJ")), "/a");
        assert_eq!(cleaned("//evil.example/", Some("wr_pass=e")), "/evil.example/");
    }

    proptest! {
        #[test]
        fn whatever_is_asked_stays_here_or_on_the_target(to in "[a-zA-Z0-9:/@\\\\.?#%\t ]{0,40}") {
            if let Some(went) = safe(&to, TARGET) {
                let path = went.starts_with('/') && !went.starts_with("//");
                prop_assert!(path || went.starts_with("https://shop.example"), "{went}");
                prop_assert!(!went.contains('\\') && !went.contains('\n'));
            }
        }

        #[test]
        fn what_was_encoded_is_decoded(text in "\\PC{0,40}") {
            prop_assert_eq!(decode(&encode(&text)), Some(text));
        }
    }
}
