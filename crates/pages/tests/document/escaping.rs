//! Whatever stands in a field, the document has the same tags and attributes as with plain words.

use crate::{WAITS, shown, structure};
use proptest::prelude::*;
use serde_json::json;
use waitroom_pages::{Notice, Page, Schedule, Template, Theme, Waiting, notice, privacy, waiting};

/// Ways to get a script into a page, as they are found in the wild.
const CORPUS: &[&str] = &[
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    "</SCRIPT ><img src=x onerror=window.pwned=1>",
    "<!--<script>window.pwned=1",
    "--><svg/onload=window.pwned=1>",
    "]]><script>window.pwned=1</script>",
    "\"><img src=x onerror=window.pwned=1>",
    "' onmouseover='window.pwned=1",
    "\" autofocus onfocus=\"window.pwned=1",
    "javascript:window.pwned=1",
    "data:text/html,<script>window.pwned=1</script>",
    "<iframe srcdoc=\"<script>parent.pwned=1</script>\">",
    "<math><mi//xlink:href=\"data:x,<script>window.pwned=1</script>\">",
    "<style>*{background:url(//evil.example)}</style>",
    "</style><script>window.pwned=1</script>",
    "</title><script>window.pwned=1</script>",
    "</noscript><script>window.pwned=1</script>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "{{{title}}}<script>window.pwned=1</script>",
    "{{> waiting}}{{#paused}}",
    "[[js]][[data]][[w:turn]]",
    "{n}{ago}{p}{time}",
    "\u{2028}\u{2029}\u{0}\u{b}\u{feff}",
    "\\u003cscript\\u003e \\\"},\"still\":true,\"x\":\"",
    "&lt;script&gt;&#60;script&#62;&amp;lt;",
    "＜script＞ʺ՚＇",
    "+ADw-script+AD4-window.pwned=1+ADw-/script+AD4-",
    "10;url=javascript:window.pwned=1",
    "/\\evil.example",
    "//evil.example/",
    "%0d%0aSet-Cookie:x=1\r\nX: y",
];

fn template() -> Template {
    let text = "<div class=\"t-card\"><p>{{title}} {{{message}}} {{reason}} {{supportCode}} {{room}}</p>\
                {{#reason}}<p>{{reason}}</p>{{/reason}}</div>{{> waiting}}<p>{{message}}</p>";
    Template::read(text).expect("a good template")
}

/// Every page on which `text` stands in every field that takes any.
fn pages(text: &str) -> Vec<Page> {
    let mut answer: serde_json::Value = serde_json::from_str(WAITS).expect("JSON");
    for field in ["reason", "support_code", "ticket", "room", "ended_because", "claim_by", "x"] {
        answer[field] = json!(text);
    }
    answer["room_status"] = json!("paused");
    let answer = answer.to_string();
    let theme = json!({"logo": {"url": "/logo.png", "alt": text}, "texts": {"*": {"paused_note": "x".to_owned() + text}}});
    // A text with holes of its own is a mistake of the theme; the page then has none.
    let theme = Theme::read(&theme.to_string()).ok();
    let template = template();
    let all = Waiting {
        room: text,
        title: text,
        answer: Some(&answer),
        back_to: Some(text),
        message: Some(text),
        privacy_url: Some(text),
        theme: theme.as_ref(),
        template: Some(&template),
        schedule: Schedule { starts_at_ms: Some(u64::MAX / 2), ..Schedule::default() },
        ..shown()
    };
    vec![
        waiting(&all),
        waiting(&Waiting { answer: None, ..all }),
        waiting(&Waiting { answer: Some(text), accept_language: text, ..all }),
        notice(&all, Notice::Ended(text)),
        notice(&all, Notice::Lost(text)),
        notice(&all, Notice::Maintenance(text)),
        privacy(&all),
    ]
}

/// The same tags as with words; links and refreshes may be missing where `text` is no address.
fn assert_harmless(text: &str) {
    for (page, plain) in pages(text).into_iter().zip(pages("/plain words")) {
        let optional = ["a href", "a class href", "/a", "p", "/p", "img src alt"];
        // Which parts are hidden depends on what they say (an empty reason is none).
        let shape = |html: &str| -> Vec<String> {
            let tags = structure(html).into_iter().filter(|tag| !optional.contains(&tag.as_str()));
            tags.map(|tag| tag.replace(" hidden", "")).collect()
        };
        let (got, wanted) = (shape(&page.html), shape(&plain.html));
        assert_eq!(got, wanted, "{text:?}");
        assert!(!page.content_security_policy.contains("evil"));
        let data = page.html.split("id=\"data\">").nth(1);
        if let Some(data) = data.and_then(|it| it.split("</script>").next()) {
            let data: serde_json::Value = serde_json::from_str(data).expect("the data is JSON");
            assert_eq!(data["title"], text);
        }
    }
}

#[test]
fn no_script_of_the_corpus_becomes_a_tag_in_any_field() {
    for text in CORPUS {
        assert_harmless(text);
    }
}

#[test]
fn where_a_visitor_wanted_to_go_is_a_path_of_this_host_or_nothing() {
    let to = |back_to| {
        let page = waiting(&Waiting { back_to: Some(back_to), ..shown() });
        let data = page.html.split("id=\"data\">").nth(1).expect("data");
        let data: serde_json::Value =
            serde_json::from_str(data.split("</script>").next().expect("it ends")).expect("JSON");
        let refresh = page.html.split(";url=").nth(1).expect("it refreshes");
        (data["to"].clone(), refresh.split('"').next().expect("it ends").to_owned())
    };
    assert_eq!(
        to("/shop/a?b=c&d=\"<"),
        (json!("/shop/a?b=c&d=\"<"), "/.waitroom/wait?to=/shop/a%3Fb%3Dc%26d%3D%22%3C".into())
    );
    for bad in [
        "//evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "/\\evil",
        "",
        "a/b",
        "/a\r\nb",
    ] {
        assert_eq!(to(bad), (json!(null), "/.waitroom/wait".into()), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn no_text_at_all_becomes_a_tag(text in "[<>\"'&{}\\[\\]/!a-z =;\\-\\u{0}-\\u{20}\\\\]{0,40}|\\PC{0,30}") {
        assert_harmless(&text);
    }

    #[test]
    fn no_answer_breaks_the_page(answer in "\\PC{0,60}|[{}\":,a-z0-9\\[\\]]{0,60}") {
        let page = waiting(&Waiting { answer: Some(&answer), ..shown() });
        prop_assert!(page.html.contains("id=\"head\""));
    }
}
