//! What the pages say, in every language: plain files in `words/`, compiled in.
//!
//! Lives here: the list of languages, which of them a browser gets, and how a text is filled in.
//! Stays out: which text is shown when (`shown.rs`, `page.js`).
//! To add a language: a file in `words/`, a row in [`FILES`], its rules in `plural.rs` and
//! `number.rs` if they are its own. The tests say what is missing.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::{number, plural};

macro_rules! files {
    ($($tag:literal)*) => {
        const FILES: &[(&str, &str)] = &[$(($tag, include_str!(concat!("../words/", $tag, ".json"))),)*];
    };
}

files! {
    "en" "de" "fr" "es" "pt" "it" "nl" "pl" "cs" "sv" "da" "fi" "nb" "tr" "ru" "uk" "ar" "he" "fa" "hi"
    "zh-Hans" "zh-Hant" "ja" "ko" "id" "vi"
}

/// One text: as it is, or with a form for each plural category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    Plain(String),
    Counted(BTreeMap<String, String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    page: BTreeMap<String, Text>,
    privacy: BTreeMap<String, Text>,
}

/// A language.
#[derive(Clone, Debug)]
pub struct Words {
    pub tag: &'static str,
    /// What the language calls itself.
    pub name: String,
    pub page: BTreeMap<String, Text>,
    pub privacy: BTreeMap<String, Text>,
}

impl Words {
    pub fn direction(&self) -> &'static str {
        if matches!(self.tag, "ar" | "he" | "fa") { "rtl" } else { "ltr" }
    }

    /// The text `key` of the page with its `{holes}` filled.
    pub fn say(&self, key: &str, holes: &[(&str, &str)]) -> String {
        match self.page.get(key) {
            Some(Text::Plain(text)) => fill(text, holes),
            Some(Text::Counted(_)) | None => panic!("no plain text {key:?} in {}", self.tag),
        }
    }

    /// The text `key` in the form for `count`, with `{n}` written as `n`.
    pub fn count(&self, key: &str, count: u64, n: &str) -> String {
        let Some(Text::Counted(forms)) = self.page.get(key) else {
            panic!("no counted text {key:?} in {}", self.tag)
        };
        let form = forms.get(plural::category(self.tag, count)).or_else(|| forms.get("other"));
        fill(form.expect("a test sees to it that every language has all forms"), &[("n", n)])
    }

    pub fn number(&self, n: u64) -> String {
        number::number(self.tag, n)
    }
}

/// Every language, in the order of the list.
pub fn all() -> &'static [Words] {
    static ALL: OnceLock<Vec<Words>> = OnceLock::new();
    ALL.get_or_init(|| {
        let read = |&(tag, text): &(&'static str, &str)| {
            let File { name, page, privacy } = serde_json::from_str(text)
                .unwrap_or_else(|error| panic!("words/{tag}.json: {error}"));
            Words { tag, name, page, privacy }
        };
        FILES.iter().map(read).collect()
    })
}

pub fn of(tag: &str) -> Option<&'static Words> {
    all().iter().find(|words| words.tag == tag)
}

/// Languages that a browser may list before we stop reading: a header is the visitor's to write.
const LISTED_MAX: usize = 32;

/// The best language for an `Accept-Language` header (RFC 9110, section 12.5.4); English when
/// none of ours is wanted.
pub fn choose(accept_language: &str) -> &'static Words {
    let mut best: Option<(u16, &'static Words)> = None;
    for listed in accept_language.split(',').take(LISTED_MAX) {
        let mut parts = listed.split(';').map(str::trim);
        let range = parts.next().unwrap_or_default();
        let quality = parts.find_map(|part| part.strip_prefix("q=")).map_or(1_000, thousandths);
        let Some(words) = ours(range).filter(|_| quality > 0) else { continue };
        if best.is_none_or(|(before, _)| quality > before) {
            best = Some((quality, words));
        }
    }
    best.map_or(&all()[0], |(_, words)| words)
}

/// `0.85` as 850. What is no quality is none: such a range is not wanted.
fn thousandths(text: &str) -> u16 {
    match text.parse::<f32>() {
        Ok(quality) if (0.0..=1.0).contains(&quality) => (quality * 1_000.0) as u16,
        _ => 0,
    }
}

/// Our language for a range such as `de-AT` or `zh-TW`.
fn ours(range: &str) -> Option<&'static Words> {
    let range = range.to_ascii_lowercase();
    let (primary, rest) = range.split_once('-').unwrap_or((&range, ""));
    let traditional = ["hant", "tw", "hk", "mo"];
    of(match primary {
        "zh" if rest.split('-').any(|part| traditional.contains(&part)) => "zh-Hant",
        "zh" => "zh-Hans",
        // Older names, and the written form that browsers in Norway ask for.
        "no" | "nn" => "nb",
        "iw" => "he",
        "in" => "id",
        other => other,
    })
}

/// Fills `{name}` holes. What is filled in is not looked at again.
pub fn fill(text: &str, holes: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = rest.find('}').and_then(|end| {
            let (_, value) = holes.iter().find(|(name, _)| *name == &rest[1..end])?;
            Some((end, value))
        });
        match found {
            Some((end, value)) => {
                filled.push_str(value);
                rest = &rest[end + 1..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled + rest
}
