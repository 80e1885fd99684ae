//! Addresses in themes and templates: of pictures and of links.
//!
//! A picture is a path on this host, an `https:` address, whose host then goes into the content
//! security policy, or a `data:` picture. Whatever could end an attribute or a policy is refused.

/// Where a picture comes from, or why it cannot be one.
pub fn picture(url: &str) -> Result<Option<String>, &'static str> {
    plain(url)?;
    if let Some(rest) = url.strip_prefix("https://") {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let good = |it: char| it.is_ascii_alphanumeric() || ".-:".contains(it);
        if host.is_empty() || !host.chars().all(good) {
            return Err("the host of this address is none");
        }
        return Ok(Some(format!("https://{host}")));
    }
    if let Some(rest) = url.strip_prefix("data:image/") {
        let kinds = ["png", "webp", "jpeg", "gif", "svg+xml"];
        return match rest.split_once(";base64,") {
            Some((kind, _)) if kinds.contains(&kind) => Ok(None),
            _ => Err("a data: picture is written data:image/png;base64,…"),
        };
    }
    here(url)
}

/// A link: a path, the web, mail or a telephone.
pub fn link(url: &str) -> Result<Option<String>, &'static str> {
    plain(url)?;
    let known = ["https://", "http://", "mailto:", "tel:"];
    if known.iter().any(|scheme| url.starts_with(scheme)) { Ok(None) } else { here(url) }
}

fn here(url: &str) -> Result<Option<String>, &'static str> {
    let path = url.starts_with('/') && !url.starts_with("//");
    if path { Ok(None) } else { Err("write https://… or a path that begins with one slash") }
}

/// Half a megabyte is a photograph; this is room for a logo.
const BYTES_MAX: usize = 16 * 1024;

fn plain(url: &str) -> Result<(), &'static str> {
    let bad = |it: char| it.is_control() || it.is_whitespace() || "\"'<>\\`".contains(it);
    if url.len() > BYTES_MAX {
        return Err("too long: pictures go to a path of their own");
    }
    if url.contains(bad) {
        return Err("an address has no spaces, quotes or brackets");
    }
    Ok(())
}
