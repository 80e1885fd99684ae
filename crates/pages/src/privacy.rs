//! The privacy page: what a waiting room keeps about somebody, in a few sentences. No script.

use crate::Page;
use crate::assemble::{assets, hash, policy};
use crate::escape::html;
use crate::shown::{Waiting, words_for};
use crate::words::Text;

/// What is kept, in the order of how much a reader cares.
const PARTS: [&str; 5] = ["cookie", "times", "address", "device", "nobody"];

pub fn privacy(shown: &Waiting<'_>) -> Page {
    let words = words_for(shown);
    let say = |key: &str| match words.privacy.get(key) {
        Some(Text::Plain(text)) => html(text),
        _ => panic!("no text {key:?} about privacy in {}", words.tag),
    };
    let theme = shown.theme.map(|theme| theme.css()).unwrap_or_default();
    let (style, mut styles) = (&assets().css, assets().css_hash.clone());
    let mut own = String::new();
    if !theme.is_empty() {
        styles = format!("{styles} {}", hash(&theme));
        own = format!("<style>{theme}</style>");
    }
    let items: String = PARTS.iter().map(|key| format!("<li>{}</li>\n", say(key))).collect();
    let back = shown.back_to.and_then(crate::assemble::safe_path).map(|to| {
        format!("<p><a class=\"button\" href=\"{}\">{}</a></p>\n", html(to), say("back"))
    });
    let (tag, direction, title) = (words.tag, words.direction(), say("title"));
    let (room, back) = (html(shown.title), back.unwrap_or_default());
    let logo = shown.theme.map(|theme| theme.logo_html()).unwrap_or_default();
    let page = format!(
        "<!doctype html>\n<html lang=\"{tag}\" dir=\"{direction}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"robots\" content=\"noindex\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>{style}</style>\n{own}</head>\n<body>\n\
         <header>{logo}<span>{room}</span></header>\n<main class=\"prose\">\n<h1>{title}</h1>\n\
         <ul>\n{items}</ul>\n{back}</main>\n<footer></footer>\n</body>\n</html>\n"
    );
    let pictures = shown.theme.and_then(|theme| theme.logo_origin()).unwrap_or_default();
    Page {
        html: page,
        content_security_policy: policy("'none'", &styles, &pictures),
        language: words.tag,
    }
}
