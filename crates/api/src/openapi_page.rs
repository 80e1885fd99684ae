//! `GET /docs` on the operators' listener: the OpenAPI document for people.
//!
//! One file of HTML with the document in it: nothing is fetched, from us or from elsewhere, so it
//! can be saved and read on a plane. It shows what `/openapi.json` says to everybody and takes no
//! key. Stays out: what there is to ask (`openapi.rs`).

use bytes::Bytes;
use http::{HeaderValue, Response, header};

use crate::body::Body;
use crate::visitor::Answering;

const PAGE: &str = include_str!("openapi_page.html");

/// The page runs its own script and style and may load, send or be framed by nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) fn answer() -> Answering {
    static MADE: std::sync::OnceLock<Bytes> = std::sync::OnceLock::new();
    let made = MADE.get_or_init(|| page().into());
    let mut response = Response::new(Body::full(made.clone()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Answering::Now(response)
}

/// The page with the document in it.
pub fn page() -> String {
    // In a script element only `<` can end the text; in JSON it can be written otherwise.
    let document = crate::openapi::document().to_string().replace('<', "\\u003c");
    PAGE.replacen("{{document}}", &document, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_holds_the_whole_document_and_fetches_nothing() {
        let page = page();
        let (_, rest) = page
            .split_once(r#"<script type="application/json" id="document">"#)
            .expect("the place of the document");
        let (text, _) = rest.split_once("</script>").expect("the end of the document");
        let read: serde_json::Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(read, crate::openapi::document());
        assert!(!text.contains('<'), "nothing in the document can end its element");
        for word in ["fetch(", "src=", "<link", "@import", "url(", "innerHTML", "eval("] {
            assert!(!PAGE.contains(word), "{word} has no business here");
        }
        assert!(PAGE.len() <= 20_000, "{} bytes", PAGE.len());
    }
}
