//! Reading what came: query strings, bodies, JSON.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Uri, header};
use http_body::Body as _;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use crate::problem::{Code, FieldProblem, Problem};

/// One value of the query string, as it stands there (what we read needs no decoding).
pub fn query<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    let pairs = uri.query()?.split('&');
    pairs
        .filter_map(|pair| pair.split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

/// One value of the query string, with what was escaped in it: for texts of people.
pub fn query_text(uri: &Uri, name: &str) -> Option<String> {
    let text = query(uri, name)?.as_bytes();
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let escaped = text.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        let escaped = escaped.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (text[at], escaped) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                at += 2;
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(byte),
        }
        at += 1;
    }
    String::from_utf8(bytes).ok()
}

pub fn query_number(uri: &Uri, name: &str) -> Result<Option<u64>, Problem> {
    let Some(text) = query(uri, name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| bad_field(name, "a whole number that is not negative"))
}

pub fn bad_field(field: &str, problem: &str) -> Problem {
    let fields = vec![FieldProblem { field: field.to_owned(), problem: problem.to_owned() }];
    Problem::new(Code::BadRequest, format!("{field}: {problem}")).with_fields(fields)
}

/// The whole body, within bounds of size and time.
pub async fn whole_body(
    headers: &HeaderMap,
    body: Incoming,
    bytes_max: usize,
    within: Duration,
) -> Result<Bytes, Problem> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || Problem::new(Code::BodyTooLarge, format!("at most {bytes_max} bytes"));
    let told = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
    if told.is_some_and(|told: usize| told > bytes_max) {
        return Err(too_large());
    }
    let limited = http_body_util::Limited::new(body, bytes_max);
    let collected = http_body_util::BodyExt::collect(limited);
    match tokio::time::timeout(within, collected).await {
        Err(_) => Err(Problem::new(Code::BodyTooSlow, "send it at once")),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::new(Code::BadRequest, "the body broke off")),
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
    }
}

/// The body as JSON; none when there is no body at all.
pub fn json<T: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<Option<T>, Problem> {
    if body.is_empty() {
        return Ok(None);
    }
    if let Some(kind) = headers.get(header::CONTENT_TYPE) {
        let kind = kind.to_str().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let fits = kind.eq_ignore_ascii_case("application/json")
            || kind.get(kind.len().saturating_sub(5)..).is_some_and(|end| end == "+json");
        if !fits {
            let detail = "send Content-Type: application/json";
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
    }
    // Whoever wrote the body may read where it breaks; nothing of ours is in these words.
    serde_json::from_slice(body)
        .map(Some)
        .map_err(|error| Problem::new(Code::BadJson, error.to_string()))
}
