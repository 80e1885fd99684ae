//! Requests that parsers disagree about, and what the gate does with each.
//!
//! In a template `{H}` stands for three good lines: Host, the case's own name (`X-Case`) and a
//! good pass. `{S}` is a whole request without a pass that hides in the bytes: if anybody but the
//! sender takes it for a request, it must be the gate, and the origin must never hear of it.
//! Behind each case follows the canary, an ordinary request with a pass, on the same connection.
//! To add a case: a line in the family it belongs to.

/// What is to become of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// 400, 414, 431, 501 or 505, and the connection ends. The origin hears nothing.
    Refused,
    /// The origin sees one request with this body; then the canary is answered as itself.
    Passed(&'static str),
    /// The origin sees one request with this body; then the connection ends, because what follows
    /// cannot be trusted to begin where it seems to.
    PassedAndClosed(&'static str),
    /// The head is good, the body never ends or breaks: the origin sees no whole request.
    Broken,
    /// The gate reads the hidden request as one of its own: no pass, so it is told to wait, and
    /// the canary after it is answered as itself. First comes the case with this body.
    Split(&'static str),
}
use Then::{Broken, Passed, PassedAndClosed, Refused, Split};

pub struct Case {
    pub name: String,
    pub template: String,
    pub then: Then,
}

pub fn all() -> Vec<Case> {
    let families: [(&str, Vec<(String, Then)>); 9] = [
        ("length and chunks", both_framings()),
        ("transfer-encoding", encodings()),
        ("content-length", lengths()),
        ("chunks", chunks()),
        ("lines", lines()),
        ("host", hosts()),
        ("request line", request_lines()),
        ("connection", connections()),
        ("upgrade and expect", upgrades()),
    ];
    let cases = families.into_iter().flat_map(|(family, cases)| {
        cases.into_iter().enumerate().map(move |(at, (template, then))| Case {
            name: format!("{family} {at}"),
            template,
            then,
        })
    });
    cases.collect()
}

fn post(headers: &str, body: &str) -> String {
    format!("POST /case HTTP/1.1\r\n{{H}}{headers}\r\n{body}")
}

fn get(headers: &str) -> String {
    format!("GET /case HTTP/1.1\r\n{{H}}{headers}\r\n")
}

/// CL.TE and TE.CL.
fn both_framings() -> Vec<(String, Then)> {
    vec![
        (
            post("Content-Length: {L}\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n{S}"),
            PassedAndClosed(""),
        ),
        (
            post("Transfer-Encoding: chunked\r\nContent-Length: {L}\r\n", "0\r\n\r\n{S}"),
            PassedAndClosed(""),
        ),
        (
            post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "{X}\r\n{S}\r\n0\r\n\r\n"),
            PassedAndClosed("{S}"),
        ),
        (
            post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "{X}\r\n{S}\r\n0\r\n\r\n"),
            PassedAndClosed("{S}"),
        ),
        (
            post("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
            PassedAndClosed("abc"),
        ),
        (
            get("Content-Length: {L}\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n{S}",
            PassedAndClosed(""),
        ),
        (post("Content-Length: x\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), Refused),
        (post("Content_Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), Passed("")),
        (post("Transfer_Encoding: chunked\r\nContent-Length: 3\r\n", "abc"), Passed("abc")),
    ]
}

/// TE.TE: spellings of chunked that some read and some do not.
fn encodings() -> Vec<(String, Then)> {
    let chunked = |header: &str| post(&format!("{header}\r\n"), "3\r\nabc\r\n0\r\n\r\n");
    let mut cases = vec![
        (chunked("Transfer-Encoding: chunked"), Passed("abc")),
        (chunked("transfer-encoding: Chunked"), Passed("abc")),
        (chunked("Transfer-Encoding:\tchunked \t"), Passed("abc")),
        (chunked("Transfer-Encoding: chunked\r\nTE: trailers"), Passed("abc")),
        // Behind chunked no length is looked at, good or bad; the connection ends.
        (chunked("Transfer-Encoding: chunked\r\nContent-Length: 3, 4"), PassedAndClosed("abc")),
    ];
    for refused in [
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunkedx",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked,",
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: chunked;q=1",
        "Transfer-Encoding: chun ked",
        "Transfer-Encoding: \x0bchunked",
        "Transfer-Encoding: \x00chunked",
        "Transfer-Encoding: chunked\x00",
        "Transfer-Encoding:",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\t: chunked",
        " Transfer-Encoding: chunked",
        "\tTransfer-Encoding: chunked",
        "X: y\rTransfer-Encoding: chunked",
        "Transfer-Encoding:\r\n chunked",
        "Transfer-Encoding\r\n: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
    ] {
        cases.push((chunked(refused), Refused));
    }
    cases
}

fn lengths() -> Vec<(String, Then)> {
    let three = |header: &str| post(&format!("{header}\r\n"), "abc");
    let mut cases = vec![
        (three("Content-Length: 3"), Passed("abc")),
        (three("Content-Length: 003"), Passed("abc")),
        (three("Content-Length:3"), Passed("abc")),
        // Twice the same says one thing (RFC 9110, 8.6); the origin gets one of them.
        (three("Content-Length: 3\r\nContent-Length: 3"), Passed("abc")),
        (post("Content-Length: 0\r\n", "{S}"), Split("")),
        (post("", "{S}"), Split("")),
        (get("Content-Length: 3\r\n") + "abc", Passed("abc")),
        (get("Content-Length: {L}\r\n") + "{S}12345", Passed("{S}12345")),
        (post("Content-Length: 100000\r\n", "abc"), Broken),
    ];
    for refused in [
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: 4\r\nContent-Length: 3",
        "Content-Length: 3, 3",
        "Content-Length: 3,4",
        "Content-Length: 3 4",
        "Content-Length: +3",
        "Content-Length: -3",
        "Content-Length: 0x3",
        "Content-Length: 3.0",
        "Content-Length: 3;",
        "Content-Length: three",
        "Content-Length:",
        "Content-Length: \"3\"",
        "Content-Length: 18446744073709551619",
        "Content-Length: 99999999999999999999999999999999",
        "Content-Length : 3",
        " Content-Length: 3",
        "Content-Length: 3\x00",
        "Content-Length:\r\n 3",
        "Content-Length: 3\r\n 4",
    ] {
        cases.push((three(refused), Refused));
    }
    cases
}

fn chunks() -> Vec<(String, Then)> {
    let chunked = |body: &str| post("Transfer-Encoding: chunked\r\n", body);
    let mut cases = vec![
        (chunked("3\r\nabc\r\n0\r\n\r\n"), Passed("abc")),
        (chunked("A\r\n0123456789\r\n0\r\n\r\n"), Passed("0123456789")),
        (chunked("a\r\n0123456789\r\n0\r\n\r\n"), Passed("0123456789")),
        (chunked("0003\r\nabc\r\n0\r\n\r\n"), Passed("abc")),
        (chunked("3\r\nabc\r\n000\r\n\r\n"), Passed("abc")),
        (chunked("3;name=value\r\nabc\r\n0\r\n\r\n"), Passed("abc")),
        (chunked("3;a=\"b\"\r\nabc\r\n0;x\r\n\r\n"), Passed("abc")),
        (chunked("3 \r\nabc\r\n0\r\n\r\n"), Passed("abc")),
        (chunked("3\r\nabc\r\n0\r\nX-Case: trailer\r\n\r\n"), Passed("abc")),
        (
            chunked("3\r\nabc\r\n0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Passed("abc"),
        ),
        (chunked("3\r\nabc\r\n0\r\nWaitroom-Ticket: mine\r\nHost: evil\r\n\r\n"), Passed("abc")),
        // The extension is data to nobody, however much it looks like a request.
        (chunked("3;GET /smuggled HTTP/1.1\r\nabc\r\n0\r\n\r\n"), Passed("abc")),
    ];
    for broken in [
        "3\nabc\n0\n\n",
        "3\r\nabc\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\r\nab\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        "+3\r\nabc\r\n0\r\n\r\n",
        "-3\r\nabc\r\n0\r\n\r\n",
        "3.0\r\nabc\r\n0\r\n\r\n",
        "g\r\nabc\r\n0\r\n\r\n",
        "\r\nabc\r\n0\r\n\r\n",
        " 3\r\nabc\r\n0\r\n\r\n",
        "3 3\r\nabc\r\n0\r\n\r\n",
        "3\x00\r\nabc\r\n0\r\n\r\n",
        "3\rabc\r\n0\r\n\r\n",
        "3;a\nb\r\nabc\r\n0\r\n\r\n",
        "3;a\rb\r\nabc\r\n0\r\n\r\n",
        "3\r\nabc0\r\n\r\n",
        "3\r\nabc\r\n0\r\nno header\r\n\r\n",
        "ffffffffffffffff\r\nabc\r\n0\r\n\r\n",
        "10000000000000003\r\nabc\r\n0\r\n\r\n",
        "100000000000000000000000000000003\r\nabc\r\n0\r\n\r\n",
    ] {
        cases.push((chunked(broken), Broken));
    }
    // An extension, or trailers, without end.
    cases.push((chunked(&format!("3;{}\r\nabc\r\n0\r\n\r\n", "x".repeat(70_000))), Broken));
    cases.push((chunked(&format!("3\r\nabc\r\n0\r\nX: {}\r\n\r\n", "x".repeat(70_000))), Broken));
    cases
}

fn lines() -> Vec<(String, Then)> {
    let mut cases = vec![
        // An empty line before a request is left out (RFC 9112, 2.2).
        (format!("\r\n{}", get("")), Passed("")),
        (get("X: \u{e9}\r\n"), Passed("")),
        (get("X:\r\n"), Passed("")),
        // Bare LF ends a line (RFC 9112 lets it): the gate writes its own lines to the origin.
        (get("").replace("\r\n", "\n"), Passed("")),
        (get("X: y\n"), Passed("")),
    ];
    for refused in [
        "X: y\r\n folded\r\n",
        "X: y\r\n\tfolded\r\n",
        "X: y\r\n \r\n",
        " X: y\r\n",
        "X y\r\n",
        ": y\r\n",
        "X : y\r\n",
        "X\x00: y\r\n",
        "X: y\x00\r\n",
        "X: y\x01\r\n",
        "X: y\x7f\r\n",
        "X: y\rZ: w\r\n",
        "X(: y\r\n",
        "X\u{e9}: y\r\n",
        "\"X\": y\r\n",
        "GET /smuggled HTTP/1.1\r\n",
    ] {
        cases.push((get(refused), Refused));
    }
    cases.push((get(&format!("X: {}\r\n", "x".repeat(40_000))), Refused));
    cases.push((get(&"X: y\r\n".repeat(200)), Refused));
    cases
}

fn hosts() -> Vec<(String, Then)> {
    let bare = |lines: &str| format!("GET /case HTTP/1.1\r\n{{N}}{lines}\r\n");
    let absolute = |target: &str, lines: &str| format!("GET {target} HTTP/1.1\r\n{{N}}{lines}\r\n");
    let mut cases = vec![
        (absolute("http://{A}/case", "Host: {A}\r\n"), Passed("")),
        (absolute("HTTP://{A}/case", "Host: {A}\r\n"), Passed("")),
    ];
    for refused in [
        "",
        "Host:\r\n",
        "Host: {A}\r\nHost: {A}\r\n",
        "Host: {A}\r\nHost: evil.example\r\n",
        "Host: {A}, evil.example\r\n",
        "Host: {A} evil.example\r\n",
        "Host: {A}/x\r\n",
        "Host: {A}?x\r\n",
        "Host: {A}#x\r\n",
        "Host: user@{A}\r\n",
        "Host: {A}\\x\r\n",
        "Host: {A}:80:80\r\n",
        "Host: {A}x\r\n",
        "Host: [::1\r\n",
        "Host: \"{A}\"\r\n",
        "Host: {A}\x00\r\n",
        "Host : {A}\r\n",
        "Host: {A}\r\n Host: evil.example\r\n",
    ] {
        cases.push((bare(refused), Refused));
    }
    for (target, lines) in [
        ("http://evil.example/case", "Host: {A}\r\n"),
        ("http://{A}/case", "Host: evil.example\r\n"),
        ("http://user@{A}/case", "Host: {A}\r\n"),
        ("http://{A}@evil.example/case", "Host: {A}\r\n"),
        ("http:///case", "Host: {A}\r\n"),
        ("http://", "Host: {A}\r\n"),
        ("//{A}/case", ""),
        ("ftp://evil.example/case", "Host: {A}\r\n"),
    ] {
        cases.push((absolute(target, lines), Refused));
    }
    cases
}

fn request_lines() -> Vec<(String, Then)> {
    let line = |line: &str| format!("{line}\r\n{{H}}\r\n");
    let mut cases = vec![
        (line("GET /case HTTP/1.1"), Passed("")),
        (line("OPTIONS /case HTTP/1.1"), Passed("")),
        (line("DELETE /case HTTP/1.1"), Passed("")),
        // One answer and no more: HTTP/1.0 keeps nothing open.
        (line("GET /case HTTP/1.0"), PassedAndClosed("")),
        (
            "POST /case HTTP/1.0\r\n{H}Content-Length: 3\r\n\r\nabc".to_owned(),
            PassedAndClosed("abc"),
        ),
    ];
    for refused in [
        "GET /case",
        "GET",
        "GET /case ",
        "GET  /case HTTP/1.1",
        "GET /case  HTTP/1.1",
        "GET /case HTTP/1.1 ",
        "GET /case HTTP/1.1 x",
        " GET /case HTTP/1.1",
        "GET\t/case\tHTTP/1.1",
        "GET /ca se HTTP/1.1",
        "GET /case\tHTTP/1.1",
        "GET /case HTTP/2.0",
        "GET /case HTTP/0.9",
        "GET /case HTTP/1.2",
        "GET /case HTTP/9.9",
        "GET /case HTTP/1",
        "GET /case HTTP/1.1.1",
        "GET /case http/1.1",
        "GET /case HTTPS/1.1",
        "GET /case ICAP/1.0",
        "GET case HTTP/1.1",
        "GET ?case HTTP/1.1",
        "GET * HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "GET /case\x00 HTTP/1.1",
        "GET /case\x01 HTTP/1.1",
        "GET /case\x7f HTTP/1.1",
        "GE(T /case HTTP/1.1",
        "G\x00T /case HTTP/1.1",
        "CONNECT {A} HTTP/1.1",
        "CONNECT /case HTTP/1.1",
        "TRACE /case HTTP/1.1",
        "PRI * HTTP/2.0",
    ] {
        cases.push((line(refused), Refused));
    }
    cases.push((line(&format!("GET /case{} HTTP/1.1", "x".repeat(70_000))), Refused));
    // HTTP/1.0 has no chunks (RFC 9112, 6.1).
    let chunked = "POST /case HTTP/1.0\r\n{H}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{S}";
    cases.push((chunked.to_owned(), Refused));
    cases
}

/// What belongs to one hop cannot be used to take a header from the request, or to frame it.
fn connections() -> Vec<(String, Then)> {
    let named = |name: &str| {
        let headers = format!("Connection: keep-alive, {name}\r\nContent-Length: 3\r\n");
        (post(&headers, "abc"), Passed("abc"))
    };
    let mut cases: Vec<(String, Then)> = [
        "Content-Length",
        "Host",
        "Transfer-Encoding",
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "Waitroom-Ticket",
        "Waitroom-Room",
        "Forwarded",
        "Connection",
        "Keep-Alive",
        "TE",
        ",,",
        "\"close\"",
        "x\u{e9}",
    ]
    .iter()
    .map(|name| named(name))
    .collect();
    let chunked = "Connection: keep-alive, Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n";
    cases.push((post(chunked, "3\r\nabc\r\n0\r\n\r\n"), Passed("abc")));
    cases.push((get("Connection: close\r\n"), PassedAndClosed("")));
    cases.push((get("Proxy-Connection: close\r\nKeep-Alive: timeout=0\r\n"), Passed("")));
    cases
}

fn upgrades() -> Vec<(String, Then)> {
    let h2c = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
    vec![
        (post("Expect: 100-continue\r\nContent-Length: 3\r\n", "abc"), Passed("abc")),
        (
            post("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
            Passed("abc"),
        ),
        (get("Expect: 100-continue\r\n"), Passed("")),
        (post("Expect: y 100-continue\r\nContent-Length: 3\r\n", "abc"), Passed("abc")),
        (post("Expect: 200-ok\r\nContent-Length: 3\r\n", "abc"), Passed("abc")),
        (get(h2c), Passed("")),
        (post(&format!("{h2c}Content-Length: {{L}}\r\n"), "{S}12345"), Passed("{S}12345")),
        (get("Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n"), Passed("")),
        (get("Upgrade: websocket\r\n"), Passed("")),
        // An origin that does not switch answers it as an ordinary request; so it is.
        (
            get("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 777\r\n"),
            Passed(""),
        ),
        (
            post("Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n", "abc"),
            Passed("abc"),
        ),
        (
            get("Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: {L}\r\n")
                + "{S}12345",
            Passed("{S}12345"),
        ),
        (get("X-HTTP-Method-Override: DELETE\r\nX-Rewrite-URL: /smuggled\r\n"), Passed("")),
    ]
}
