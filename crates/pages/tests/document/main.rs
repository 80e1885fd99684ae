//! The documents as they are sent: their policy, their size, what foreign text can do to them,
//! and what themes and templates may.

mod escaping;
mod policy;
mod size;
mod states;
mod template;
mod theme;

use waitroom_pages::Waiting;

/// An answer of somebody who waits, as docs/api.md has it.
pub const WAITS: &str = r#"{"ticket":"0b6c3a52-7f5e-4c1d-9a53-2f6d0c8e4b11","token":"wt1_secret","room":"spring","version":9,
"status":"waiting","place":{"lane":0,"order":1300},"position":1204,"ahead":1203,"behind":88,
"wait":{"low_s":660,"likely_s":800,"high_s":1020},"next_check_ms":10000,"room_status":"running","support_code":"K7M-4QX"}"#;

pub fn shown() -> Waiting<'static> {
    Waiting {
        room: "spring",
        title: "Spring sale",
        base: "/.waitroom",
        accept_language: "en",
        refresh_s: 10,
        ..Waiting::default()
    }
}

/// The tags of a document in order, each with the names of its attributes. What stands inside of
/// scripts, styles and titles is text to a browser, and is skipped here as it is there.
pub fn structure(html: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let mut names = String::new();
        let mut quote = None;
        let mut in_value = false;
        let end = rest.char_indices().find_map(|(at, letter)| {
            match (quote, letter) {
                (Some(open), it) if it == open => quote = None,
                (Some(_), _) => {}
                (None, '>') => return Some(at),
                (None, '"' | '\'') => quote = Some(letter),
                (None, '=') => in_value = true,
                (None, it) if it.is_whitespace() => {
                    in_value = false;
                    names.push(' ');
                }
                (None, it) if !in_value => names.push(it),
                _ => {}
            }
            None
        });
        rest = &rest[end.expect("every tag ends") + 1..];
        let name = names.split(' ').next().unwrap_or_default().to_owned();
        tags.push(names);
        if ["script", "style", "title"].contains(&name.as_str()) {
            let close = format!("</{name}");
            rest = &rest[rest.find(&close).expect("raw text ends")..];
        }
    }
    tags
}
