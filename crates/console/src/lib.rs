//! The operator console: a page in the browser, carried by the binary.
//!
//! Lives here: which file answers which path, packed how, cached how long, under which content
//! security policy. The page itself is `web/` (TypeScript, built by `cargo xtask console`); it
//! talks to `/admin/v1` of the listener that served it and to nothing else.
//! Stays out: sockets, HTTP types, keys. Nothing here is secret: whoever opens the page sees a
//! form that asks for an API key.
//! Start reading at [`serve`].

mod encoding;

use encoding::Packing;

/// What a request below `/console` is answered with, always with status 200.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset {
    pub body: &'static [u8],
    pub content_type: &'static str,
    pub cache_control: &'static str,
    /// `None` when the body is as it is. Answers depend on `Accept-Encoding`: say `Vary`.
    pub content_encoding: Option<&'static str>,
    /// For `Content-Security-Policy`. On every file, because a file can be opened by itself.
    pub csp: &'static str,
}

/// A built file and its packed forms; the table is written by `build.rs`.
#[derive(Debug)]
pub(crate) struct File {
    name: &'static str,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
    brotli: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Scripts and styles only from our own files, requests only to our own server, no frames, no
/// forms that leave the page, and no text that becomes markup (trusted types). Nothing inline.
pub const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Vite names these by their contents: another content is another name.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// The page names the others, so it must be asked for again.
const ASK_AGAIN: &str = "no-cache";

const PREFIX: &str = "/console";
const PAGE: &str = "index.html";
const MISSING: &[u8] = include_bytes!("missing.html");

/// Whether the console was built into this binary.
pub fn is_built() -> bool {
    !FILES.is_empty()
}

/// The answer to `GET path`, where `path` begins with `/console`; `None` is a 404.
///
/// `accept_encoding` is the header as it came; empty when there was none.
pub fn serve(path: &str, accept_encoding: &str) -> Option<Asset> {
    let rest = path.strip_prefix(PREFIX)?;
    let name = match rest {
        "" | "/" => PAGE,
        rest => rest.strip_prefix('/')?,
    };
    if !is_built() && name == PAGE {
        return Some(Asset {
            body: MISSING,
            content_type: "text/html; charset=utf-8",
            cache_control: "no-store",
            content_encoding: None,
            csp: CSP,
        });
    }
    let at = FILES.binary_search_by(|file| file.name.cmp(name)).ok()?;
    let file = &FILES[at];
    let accepted = encoding::accepted(accept_encoding);
    let (body, content_encoding) = match (file.brotli, file.gzip) {
        (Some(packed), _) if accepted.contains(Packing::Brotli) => (packed, Some("br")),
        (_, Some(packed)) if accepted.contains(Packing::Gzip) => (packed, Some("gzip")),
        _ => (file.plain, None),
    };
    Some(Asset {
        body,
        content_type: content_type(file.name),
        cache_control: if file.name.starts_with("assets/") { FOR_EVER } else { ASK_AGAIN },
        content_encoding,
        csp: CSP,
    })
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}
