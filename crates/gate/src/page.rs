//! The waiting page and the page of a problem: plain, self-contained, the same for everybody who
//! asks in the same way, and complete without JavaScript.

use std::fmt::Write;

use bytes::Bytes;
use http::HeaderValue;
use serde_json::Value;

/// All that a waiting page shows.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'a> {
    pub room: &'a str,
    pub title: &'a str,
    /// Where our own addresses begin, such as `/.waitroom`.
    pub base: &'a str,
    pub accept_language: Option<&'a str>,
    /// The visitor answer, as JSON, when it is known who looks; or a problem document.
    pub answer: Option<&'a str>,
    /// Where the visitor wanted to go: a local path.
    pub back_to: &'a str,
    /// When a browser without JavaScript should look again.
    pub refresh_s: u64,
}

/// A page that says what went wrong.
#[derive(Clone, Copy, Debug)]
pub struct Trouble<'a> {
    pub title: &'a str,
    pub detail: &'a str,
    pub accept_language: Option<&'a str>,
    pub retry_after_s: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Page {
    pub html: Bytes,
    pub language: &'static str,
    pub policy: HeaderValue,
}

/// Nothing from elsewhere, no frames of strangers; what is inline is ours.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
     connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'self'",
);

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub fn waiting(shown: &Waiting<'_>) -> Page {
    let personal = format!("{}/wait?to={}", shown.base, crate::target::encode(shown.back_to));
    let answer: Option<Value> = shown.answer.and_then(|text| serde_json::from_str(text).ok());
    let mut html = String::with_capacity(8 * 1024);
    begin(&mut html, shown.title);
    // Whoever has a script does not need this; whoever has none is brought to the personal page.
    let refresh = shown.refresh_s;
    let _ = write!(
        html,
        "<noscript><meta http-equiv=\"refresh\" content=\"{refresh};url={}\"></noscript></head>",
        Escaped(&personal)
    );
    let _ = write!(html, "<body><main><h1>{}</h1>", Escaped(shown.title));
    html.push_str("<div id=\"live\" role=\"status\" aria-live=\"polite\">");
    words(&mut html, answer.as_ref());
    html.push_str("</div>");
    let _ = write!(
        html,
        "<p class=\"small\">This page looks after itself: keep it open, your place is kept.</p>\
         <noscript><p class=\"small\"><a href=\"{}\">See my place in line</a></p></noscript>",
        Escaped(&personal)
    );
    let data = serde_json::json!({ "room": shown.room, "base": shown.base, "to": shown.back_to });
    // Inside a script nothing is escaped but what could end it.
    let data = data.to_string().replace('<', "\\u003c");
    let _ = write!(html, "</main><script>const W={data};{SCRIPT}</script></body></html>");
    Page { html: html.into(), language: "en", policy: POLICY }
}

pub fn trouble(shown: &Trouble<'_>) -> Page {
    let mut html = String::with_capacity(4 * 1024);
    begin(&mut html, shown.title);
    if let Some(seconds) = shown.retry_after_s {
        let _ = write!(html, "<meta http-equiv=\"refresh\" content=\"{}\">", seconds.max(5));
    }
    let _ = write!(
        html,
        "</head><body><main><h1>{}</h1><p>{}</p></main></body></html>",
        Escaped(shown.title),
        Escaped(shown.detail)
    );
    Page { html: html.into(), language: "en", policy: POLICY }
}

fn begin(html: &mut String, title: &str) {
    let _ = write!(
        html,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex\"><title>{}</title><style>{STYLE}</style>",
        Escaped(title)
    );
}

/// What is known of the visitor's place, in words.
fn words(html: &mut String, answer: Option<&Value>) {
    let Some(answer) = answer else {
        html.push_str("<p class=\"big\">You are joining the line…</p>");
        return;
    };
    if answer["code"].is_string() {
        let text = |key: &str| answer[key].as_str().unwrap_or_default();
        let (title, detail) = (Escaped(text("title")), Escaped(text("detail")));
        let _ = write!(html, "<p class=\"big\">{title}</p><p>{detail}</p>");
        return;
    }
    match (answer["status"].as_str(), answer["position"].as_u64()) {
        (Some("waiting"), Some(position)) => {
            let _ = write!(
                html,
                "<p class=\"big\">You are number <strong>{position}</strong> in line</p>"
            );
        }
        (Some("waiting"), None) => {
            html.push_str("<p class=\"big\">You are in line; places are drawn at the start</p>");
        }
        (Some("admitted" | "active"), _) => {
            html.push_str("<p class=\"big\">It is your turn</p>");
        }
        (Some("closed"), _) => html.push_str("<p class=\"big\">The sale is over</p>"),
        _ => html.push_str("<p class=\"big\">Your place has ended</p>"),
    }
    if let (Some(low), Some(high)) =
        (answer["wait"]["low_s"].as_u64(), answer["wait"]["high_s"].as_u64())
    {
        let (low, high) = (low / 60, high.div_ceil(60).max(1));
        let _ = match low == high || low == 0 {
            true => write!(html, "<p>It takes up to {high} min</p>"),
            false => write!(html, "<p>It takes {low} to {high} min</p>"),
        };
    }
    if let Some(reason) = answer["reason"].as_str() {
        let _ = write!(html, "<p>{}</p>", Escaped(reason));
    }
    if let Some(code) = answer["support_code"].as_str() {
        let _ = write!(html, "<p class=\"small\">Support code {}</p>", Escaped(code));
    }
}

/// Text that stays text wherever it stands in a page.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(title: &str, back_to: &str, answer: Option<&str>) -> String {
        let waiting = Waiting {
            room: "spring",
            title,
            base: "/.waitroom",
            accept_language: None,
            answer,
            back_to,
            refresh_s: 3,
        };
        String::from_utf8(waiting_bytes(&waiting)).expect("text")
    }

    fn waiting_bytes(shown: &Waiting<'_>) -> Vec<u8> {
        waiting(shown).html.to_vec()
    }

    #[test]
    fn nothing_that_a_visitor_or_an_operator_writes_becomes_markup() {
        let evil = "</script><script>alert(1)</script>\"'<b>";
        let html = shown(
            evil,
            "/a?x=</script><script>alert(1)//",
            Some(r#"{"code":"x","title":"<i>","detail":"<i>"}"#),
        );
        assert!(!html.contains("<script>alert"), "{html}");
        assert!(!html.contains("<i>") && !html.contains("<b>"), "{html}");
        assert_eq!(html.matches("</script>").count(), 1, "{html}");
    }

    #[test]
    fn without_a_script_the_page_leads_to_the_personal_one() {
        let html = shown("Spring", "/a?b=c&d", None);
        assert!(html.contains("content=\"3;url=/.waitroom/wait?to=/a%3Fb%3Dc%26d\""), "{html}");
    }

    #[test]
    fn a_place_is_told_in_words() {
        let html = shown(
            "Spring",
            "/",
            Some(
                r#"{"status":"waiting","position":7,"wait":{"low_s":60,"likely_s":90,"high_s":200}}"#,
            ),
        );
        assert!(
            html.contains("number <strong>7</strong>") && html.contains("1 to 4 min"),
            "{html}"
        );
    }
}
