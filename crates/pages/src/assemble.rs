//! Puts a page together: one HTML file with slots, a style, a script and the words inline.
//!
//! Lives here: the slots, the hashes of the content security policy.
//! Promise: a slot is filled once and what fills it is never looked at again, so no text can
//! open another slot.

use std::fmt::Write;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::Page;
use crate::answer::{self, Answer};
use crate::escape;
use crate::shown::{By, State, View, Waiting};
use crate::template::Variables;
use crate::words::Words;

const HTML: &str = include_str!("../pages/page.html");
const CSS: &str = include_str!("../pages/page.css");
const JS: &str = include_str!("../pages/page.js");
const PUSH_PAGE: &str = include_str!("../pages/push-page.js");
/// The line of the script that makes way for what only rooms that push need.
const PUSH_SLOT: &str = "// [[push-page.js]]";

/// Whether the script begins to ask, or leaves the page as it is until somebody acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script<'a> {
    Runs,
    Stands { because: &'a str },
}

/// Style and script without what only we read, and their hashes.
pub(crate) struct Assets {
    pub css: String,
    pub css_hash: String,
    js: String,
    js_hash: String,
    /// The script of rooms that push.
    push_js: String,
    push_js_hash: String,
}

impl Assets {
    fn script(&self, pushes: bool) -> (&str, &str) {
        if pushes { (&self.push_js, &self.push_js_hash) } else { (&self.js, &self.js_hash) }
    }
}

pub(crate) fn assets() -> &'static Assets {
    static ASSETS: OnceLock<Assets> = OnceLock::new();
    ASSETS.get_or_init(|| {
        assert!(JS.contains(PUSH_SLOT), "page.js has a place for push-page.js");
        let (css, js) = (bare(&without_blocks(CSS)), bare(JS));
        let push_js = bare(&JS.replacen(PUSH_SLOT, PUSH_PAGE, 1));
        let (css_hash, js_hash, push_js_hash) = (hash(&css), hash(&js), hash(&push_js));
        Assets { css, css_hash, js, js_hash, push_js, push_js_hash }
    })
}

/// Without indentation, empty lines and lines that are comments. Our script has no text that
/// spans lines, so this changes nothing; a test runs what is left.
pub(crate) fn bare(text: &str) -> String {
    let kept = text.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with("//"));
    kept.collect::<Vec<_>>().join("\n")
}

/// Without `/* … */`.
fn without_blocks(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once("*/").map_or("", |(_, after)| after))
}

/// As a content security policy names an inline script or style.
pub(crate) fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// Fills `[[name]]` slots.
pub(crate) fn fill(page: &str, value: impl Fn(&str) -> String) -> String {
    let mut parts = page.split("[[");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("]]").expect("our page closes its slots");
        filled.push_str(&value(name));
        filled.push_str(rest);
    }
    filled
}

/// The path that the visitor wanted, if it is one of this host and nothing else.
pub(crate) fn safe_path(text: &str) -> Option<&str> {
    let inside = text.starts_with('/') && !text.starts_with("//") && !text.contains('\\');
    (inside && !text.chars().any(char::is_control)).then_some(text)
}

pub(crate) fn document(
    shown: &Waiting<'_>,
    words: &Words,
    view: &View,
    answer: Option<&Answer>,
    script: Script<'_>,
) -> Page {
    let assets = assets();
    let hidden = |shown: bool| if shown { String::new() } else { " hidden".to_owned() };
    let plain = |text: &Option<String>| escape::html(text.as_deref().unwrap_or_default());
    let theme = shown.theme.map(|theme| theme.css()).unwrap_or_default();
    let wait_page = shown.base.to_owned() + "/wait" + &to_query(shown);
    let (before, after) = match shown.template {
        Some(template) => template.render(&Variables::of(shown, words, view, answer)),
        None => Default::default(),
    };
    // Somebody without a place should have one at once; the others come back when they were told.
    let refresh_s = if view.state == State::Finding { 1 } else { shown.refresh_s };
    let refreshes = shown.refresh_s > 0 && !matches!(view.state, State::Ended | State::Lost);
    let offers = !shown.notices.is_empty();
    let pushes = shown.notices.contains(&By::Push);
    let (js, js_hash) = assets.script(pushes);
    let html = fill(HTML, |slot| match slot {
        "lang" => words.tag.to_owned(),
        "dir" => words.direction().to_owned(),
        "state" => view.state.word().to_owned(),
        "tab" => match &view.number {
            Some(number) => format!("{} · {}", escape::html(number), escape::html(shown.title)),
            None => escape::html(shown.title),
        },
        "refresh" if refreshes => format!(
            "<noscript><meta http-equiv=\"refresh\" content=\"{refresh_s};url={}\"></noscript>\n",
            escape::html(&wait_page)
        ),
        "css" => assets.css.clone(),
        "theme" if !theme.is_empty() => format!("<style>{theme}</style>\n"),
        "logo" => shown.theme.map(|theme| theme.logo_html()).unwrap_or_default(),
        "title" => escape::html(shown.title),
        "before" => before.clone(),
        "after" => after.clone(),
        "head" => escape::html(&view.head),
        "lead" => plain(&view.lead),
        "lead_hidden" => hidden(view.lead.is_some()),
        "notice" => view.notice.as_deref().map(|it| labelled(words, view, it)).unwrap_or_default(),
        "notice_hidden" => hidden(view.notice.is_some()),
        "ticket_hidden" => hidden(view.has_ticket()),
        "label" => plain(&view.label),
        "label_hidden" => hidden(view.label.is_some()),
        "number" => plain(&view.number),
        // Millions need smaller figures to fit on a phone.
        "long" if view.number.as_ref().is_some_and(|it| it.chars().count() > 6) => " long".into(),
        "long" => String::new(),
        "number_hidden" => hidden(view.number.is_some()),
        "sub" => plain(&view.sub),
        "sub_hidden" => hidden(view.sub.is_some()),
        "wait" => plain(&view.wait),
        "wait_hidden" => hidden(view.wait.is_some()),
        "wait_note_hidden" => hidden(view.wait_known),
        "code" => plain(&view.code),
        "code_hidden" => hidden(view.code.is_some()),
        "fresh_hidden" => hidden(view.keeps_a_place),
        "keep_hidden" => hidden(view.keeps_a_place),
        "noscript" if refreshes => format!(
            "<noscript><p class=\"small\">{} <a href=\"{}\">{}</a></p></noscript>\n",
            escape::html(&words.say("noscript", &[])),
            escape::html(&wait_page),
            escape::html(&words.say("refresh", &[]))
        ),
        "word" if offers => format!(
            "<button id=\"word\" type=\"button\">{}</button>\n",
            escape::html(&words.say("word", &[]))
        ),
        "worded" if offers => "<p class=\"small\" id=\"worded\" role=\"status\"></p>\n".into(),
        "wish" if offers => wish(shown, words),
        "word" | "worded" | "wish" => String::new(),
        "footer" => footer(shown, words),
        "data" => escape::json(&data(shown, words, view, script)),
        "js" => js.to_owned(),
        "refresh" | "theme" | "noscript" => String::new(),
        other => match other.strip_prefix("w:") {
            Some(key) => escape::html(&words.say(key, &[])),
            None => unreachable!("the page has no slot {other}"),
        },
    });
    let mut styles = assets.css_hash.clone();
    if !theme.is_empty() {
        write!(styles, " {}", hash(&theme)).expect("a string takes everything");
    }
    let pictures = shown.theme.and_then(|theme| theme.logo_origin()).unwrap_or_default();
    let mut policy = policy(js_hash, &styles, &pictures);
    if pushes {
        policy += "; worker-src 'self'";
    }
    Page { html, content_security_policy: policy, language: words.tag }
}

/// No source but our own: even markup that got past everything else could load and run nothing.
pub(crate) fn policy(script: &str, style: &str, pictures: &str) -> String {
    format!(
        "default-src 'none'; script-src {script}; style-src {style}; img-src 'self' data:{pictures}; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )
}

fn labelled(words: &Words, view: &View, text: &str) -> String {
    // What went wrong is nothing that an organiser says.
    if view.state == State::Error {
        return escape::html(text);
    }
    format!("<b>{}</b>{}", escape::html(&words.say("message", &[])), escape::html(text))
}

fn footer(shown: &Waiting<'_>, words: &Words) -> String {
    let Some(url) = shown.privacy_url.and_then(safe_path) else { return String::new() };
    let text = words.say("privacy", &[]);
    format!("<a href=\"{}\">{}</a>", escape::html(url), escape::html(&text))
}

/// Where a word before one's turn is asked for. A dialog: it moves nothing else. Which of the ways
/// the browser can go, and so what is hidden, the script says before anybody sees it.
fn wish(shown: &Waiting<'_>, words: &Words) -> String {
    let say = |key: &str| escape::html(&words.say(key, &[]));
    let way = |by: &By| {
        let (word, label) = (by.word(), say(by.label()));
        format!("<label><input type=\"radio\" name=\"by\" value=\"{word}\">{label}</label>")
    };
    let ways: String = shown.notices.iter().map(way).collect();
    format!(
        "<dialog id=\"wish\" aria-labelledby=\"wish_head\"><form id=\"wish_form\">\
         <h2 id=\"wish_head\">{head}</h2><p id=\"wish_note\">{note}</p>\
         <p id=\"push_note\" hidden>{push_note}</p>\
         <fieldset id=\"ways\"><legend class=\"unseen\">{head}</legend>{ways}</fieldset>\
         <label for=\"to\" id=\"to_label\"></label>\
         <input id=\"to\" type=\"email\" autocomplete=\"email\" required maxlength=\"254\" \
         aria-describedby=\"wish_wrong\"><p class=\"wrong\" id=\"wish_wrong\" role=\"alert\"></p>\
         <div class=\"actions\"><button id=\"wish_yes\">{yes}</button>\
         <button id=\"wish_off\" type=\"button\" class=\"quiet\" hidden>{off}</button>\
         <button id=\"wish_no\" type=\"button\" class=\"quiet\">{no}</button></div></form></dialog>\n",
        head = say("word"),
        note = say("word_note"),
        push_note =
            if shown.notices.contains(&By::Push) { say("word_push_note") } else { String::new() },
        yes = say("word_yes"),
        off = say("word_off"),
        no = say("close"),
    )
}

fn to_query(shown: &Waiting<'_>) -> String {
    let to = shown.back_to.and_then(safe_path);
    to.map(|to| format!("?to={}", escape::query(to))).unwrap_or_default()
}

/// What only the server says: no need to send it to the script as well.
const NOT_FOR_THE_SCRIPT: [&str; 19] = [
    "wait",
    "code",
    "keep",
    "go",
    "again",
    "again_note",
    "noscript",
    "privacy",
    "move_link",
    "word",
    "word_note",
    "word_yes",
    "word_off",
    "word_email",
    "word_sms",
    "word_push",
    "word_push_note",
    // These are the worker's.
    "word_near",
    "word_back",
];

fn data(shown: &Waiting<'_>, words: &Words, view: &View, script: Script<'_>) -> Value {
    let texts: serde_json::Map<String, Value> = words
        .page
        .iter()
        .filter(|(key, _)| !NOT_FOR_THE_SCRIPT.contains(&key.as_str()))
        .filter(|(key, _)| !shown.notices.is_empty() || !key.starts_with("word_"))
        .filter(|(key, _)| shown.notices.contains(&By::Push) || !key.starts_with("word_push"))
        .map(|(key, text)| (key.clone(), json!(text)))
        .collect();
    let because = match script {
        Script::Runs => None,
        Script::Stands { because } => Some(because),
    };
    json!({
        "room": shown.room,
        "base": shown.base,
        "title": shown.title,
        "lang": words.tag,
        "to": shown.back_to.and_then(safe_path),
        "message": shown.message,
        "now": shown.schedule.now_ms,
        "opens": shown.schedule.opens_at_ms,
        "starts": shown.schedule.starts_at_ms,
        "draw": shown.schedule.draw.map(|draw| draw.word()),
        "still": because.is_some(),
        "because": because,
        "reason": view.reason,
        "answer": shown.answer.map(answer::for_script).unwrap_or(Value::Null),
        "words": texts,
    })
}
