//! What kind of answer a client can use: a page, a document for programs, or next to nothing.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::facts::Facts;

const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// What is remembered of a client's wishes while its request is away.
#[derive(Clone, Debug)]
pub struct Taste {
    pub wants: Wants,
    language: Option<HeaderValue>,
}

impl Taste {
    pub fn of(facts: &Facts<'_>) -> Taste {
        let language = facts.headers.get(header::ACCEPT_LANGUAGE).cloned();
        Taste { wants: wants(facts), language }
    }

    pub fn language(&self) -> Option<&str> {
        self.language.as_ref()?.to_str().ok()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// Somebody looks at a browser.
    Page,
    /// A program reads: a single-page application, an app, a service.
    Json,
    /// A picture, a style sheet, a script: a page would only be thrown away.
    Nothing,
}

pub fn wants(facts: &Facts<'_>) -> Wants {
    // Browsers say what they will do with the answer; that beats a vague Accept.
    let script = match facts.header(SEC_FETCH_DEST) {
        Some("document" | "iframe" | "frame") => return Wants::Page,
        Some("empty") => true,
        None => false,
        Some(_) => return Wants::Nothing,
    };
    let accept = facts.headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let (mut html, mut json, mut any) = (0, 0, 0);
    let mut asked = false;
    for range in accept.flat_map(|line| line.split(',')) {
        asked = true;
        let (kind, weight) = weighed(range);
        let is = |names: &[&str]| names.iter().any(|name| kind.eq_ignore_ascii_case(name));
        if is(&["text/html", "application/xhtml+xml"]) {
            html = html.max(weight);
        } else if is(&["application/json"]) || is_json(kind) {
            json = json.max(weight);
        } else if is(&["*/*", "text/*", "application/*"]) {
            any = any.max(weight);
        }
    }
    if json > html {
        return Wants::Json;
    }
    if html > 0 {
        return Wants::Page;
    }
    match (asked, any) {
        // A script that takes anything, and a request that changes something, come from programs.
        (_, 1..) | (false, _) if script || !facts.only_looks() => Wants::Json,
        (_, 1..) | (false, _) => Wants::Page,
        _ => Wants::Nothing,
    }
}

/// One of the kinds that are JSON by their suffix, such as a problem document.
fn is_json(kind: &str) -> bool {
    const SUFFIX: &str = "+json";
    let from = kind.len().saturating_sub(SUFFIX.len());
    kind.get(from..).is_some_and(|end| end.eq_ignore_ascii_case(SUFFIX))
}

/// Whether the client can unpack gzip.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|it| it.to_str().ok());
    let (mut gzip, mut any) = (None, None);
    for range in lines.flat_map(|line| line.split(',')) {
        let (coding, weight) = weighed(range);
        if coding.eq_ignore_ascii_case("gzip") {
            gzip = Some(weight);
        } else if coding == "*" {
            any = Some(weight);
        }
    }
    gzip.or(any).is_some_and(|weight| weight > 0)
}

/// A media range and its weight in thousandths.
fn weighed(range: &str) -> (&str, u32) {
    let mut parts = range.split(';').map(str::trim_ascii);
    let kind = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(1_000, |text| {
        let weight: f32 = text.parse().unwrap_or(1.0);
        (weight.clamp(0.0, 1.0) * 1_000.0) as u32
    });
    (kind, weight)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Method};

    use super::*;

    fn asked(method: Method, headers: &[(&'static str, &str)]) -> Wants {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).expect("plain"));
        }
        wants(&Facts {
            host: "shop.example",
            path: "/",
            query: None,
            method: &method,
            headers: &map,
            client: [127, 0, 0, 1].into(),
            now_s: 0,
        })
    }

    #[test]
    fn gzip_goes_only_to_those_who_say_that_they_unpack_it() {
        let takes = |value: &'static str| {
            let mut map = HeaderMap::new();
            map.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            takes_gzip(&map)
        };
        assert!(takes("gzip, deflate, br, zstd") && takes("br;q=1.0, GZIP;q=0.2") && takes("*"));
        assert!(!takes("br") && !takes("identity") && !takes("gzip;q=0") && !takes(""));
        assert!(!takes("gzip;q=0, *") && !takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn a_browser_gets_a_page_a_program_a_document_and_a_picture_nothing() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert_eq!(asked(Method::GET, &[("accept", browser)]), Wants::Page);
        assert_eq!(asked(Method::POST, &[("accept", browser)]), Wants::Page);
        assert_eq!(asked(Method::GET, &[("accept", "application/json")]), Wants::Json);
        assert_eq!(
            asked(Method::GET, &[("accept", "text/html;q=0.5, application/json")]),
            Wants::Json
        );
        assert_eq!(
            asked(Method::GET, &[("accept", "application/problem+json, */*;q=0.1")]),
            Wants::Json
        );
        assert_eq!(
            asked(Method::GET, &[("accept", "*/*"), ("sec-fetch-dest", "empty")]),
            Wants::Json
        );
        assert_eq!(asked(Method::POST, &[("accept", "*/*")]), Wants::Json);
        assert_eq!(asked(Method::GET, &[("accept", "*/*")]), Wants::Page);
        assert_eq!(asked(Method::GET, &[]), Wants::Page);
        assert_eq!(asked(Method::GET, &[("accept", "image/avif,image/webp")]), Wants::Nothing);
        assert_eq!(
            asked(Method::GET, &[("accept", "*/*"), ("sec-fetch-dest", "script")]),
            Wants::Nothing
        );
        assert_eq!(
            asked(Method::GET, &[("accept", "application/json;q=0, text/html")]),
            Wants::Page
        );
    }
}
