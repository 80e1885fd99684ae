//! Every language says everything, with the right holes and all its plural forms, and numbers and
//! intervals read as a browser would write them.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use waitroom_pages::compared::{Text, Words, all, category, choose, needed, number, span};

/// Every text of a language with its place: `page.ahead.other`.
fn texts(words: &Words) -> Vec<(String, &str)> {
    let parts = [("page", &words.page), ("privacy", &words.privacy)];
    let named = parts.iter().flat_map(|(part, texts)| {
        texts.iter().flat_map(move |(key, text)| match text {
            Text::Plain(text) => vec![(format!("{part}.{key}"), text.as_str())],
            Text::Counted(forms) => forms
                .iter()
                .map(|(form, text)| (format!("{part}.{key}.{form}"), text.as_str()))
                .collect(),
        })
    });
    named.collect()
}

fn holes(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> =
        text.split('{').skip(1).map(|it| it.split('}').next().expect("a name")).collect();
    found.sort_unstable();
    found
}

#[test]
fn at_least_twenty_languages_say_everything_that_english_says() {
    let english = &all()[0];
    assert_eq!(english.tag, "en", "who asks for nothing of ours gets English");
    assert!(all().len() >= 20);
    for words in all() {
        let keys = |words: &'static Words| {
            (words.page.keys().collect::<Vec<_>>(), words.privacy.keys().collect::<Vec<_>>())
        };
        assert_eq!(keys(words), keys(english), "{}", words.tag);
        for (place, text) in texts(words) {
            assert!(!text.trim().is_empty() && text.trim() == text, "{} {place}", words.tag);
            assert!(!text.contains(['<', '>', '&']), "{} {place}: markup", words.tag);
        }
    }
}

#[test]
fn every_text_has_the_holes_of_the_english_one() {
    let english = &all()[0];
    for words in all() {
        for (key, text) in &words.page {
            match (text, &english.page[key]) {
                (Text::Plain(text), Text::Plain(model)) => {
                    assert_eq!(holes(text), holes(model), "{} {key}", words.tag);
                }
                (Text::Counted(forms), Text::Counted(_)) => {
                    for (form, text) in forms {
                        // A form for one number only may say it as a word.
                        let fits = |n: &u64| category(words.tag, *n) == form;
                        let one_number = (0..2_000).filter(fits).count() <= 1;
                        let held = holes(text);
                        let good = held == ["n"] || held.is_empty() && one_number;
                        assert!(good, "{} {key} {form}: {text}", words.tag);
                    }
                }
                _ => panic!("{} {key} is another kind of text", words.tag),
            }
        }
    }
}

#[test]
fn every_counted_text_has_all_the_forms_of_its_language() {
    for words in all() {
        for (key, text) in &words.page {
            let Text::Counted(forms) = text else { continue };
            for category in needed(words.tag).into_iter().chain(["other"]) {
                assert!(forms.contains_key(category), "{} {key} lacks {category}", words.tag);
            }
        }
    }
}

#[test]
fn no_two_languages_share_a_sentence_by_mistake() {
    // A file that was copied and not translated would show here.
    for key in ["keep", "turn_note", "draw_note", "move_note", "lost_silent"] {
        let said = all().iter().map(|words| format!("{:?}", words.page[key]));
        let said: std::collections::BTreeSet<String> = said.collect();
        assert_eq!(said.len(), all().len(), "{key}");
    }
}

#[test]
fn a_browser_gets_the_language_it_likes_best_of_those_we_have() {
    let cases = [
        ("", "en"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("xx, fr-CA;q=0.4, it;q=0.5", "it"),
        ("zh-TW", "zh-Hant"),
        ("zh-HK,zh;q=0.9", "zh-Hant"),
        ("zh-CN", "zh-Hans"),
        ("ZH-hant-MO", "zh-Hant"),
        ("nn-NO", "nb"),
        ("iw", "he"),
        ("de;q=0, ja;q=0.1", "ja"),
        ("*", "en"),
        ("de;q=9, fr;q=abc, pl", "pl"),
        ("tlh", "en"),
        (";;;,,,q=1", "en"),
    ];
    for (header, tag) in cases {
        assert_eq!(choose(header).tag, tag, "{header:?}");
    }
}

/// Node has the same tables as browsers, and runs the page's own script.
#[test]
fn numbers_plurals_and_intervals_are_those_of_a_browser() {
    let numbers: Vec<u64> = (0..=210)
        .chain([999, 1_000, 1_001, 1_234, 9_999, 10_000, 12_345, 99_999, 100_000, 123_456])
        .chain([999_999, 1_000_000, 1_234_567, 2_000_000, 20_000_000, 123_456_789])
        .collect();
    let seconds = [0, 1, 59, 60, 61, 119, 120, 300, 599, 1_799, 1_800, 1_801, 3_600, 5_400];
    let seconds = seconds.into_iter().chain([9_000, 10_799, 10_800, 10_801, 36_000, 400_000]);
    let intervals: Vec<(u64, u64)> =
        seconds.flat_map(|high| [0, high / 3, high / 2, high].map(|low| (low, high))).collect();
    let languages: Vec<Value> = all()
        .iter()
        .map(|words| {
            let numbers: Vec<Value> = numbers
                .iter()
                .map(|&n| json!([n, category(words.tag, n), number(words.tag, n)]))
                .collect();
            let spans: Vec<Value> = intervals
                .iter()
                .map(|&(low, high)| json!([low, high, span(words, low, high)]))
                .collect();
            json!({"tag": words.tag, "words": words.page, "numbers": numbers, "spans": spans})
        })
        .collect();
    let mut node = Command::new("node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/browser/compare.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Node is needed for this test: apt-get install nodejs");
    let mut stdin = node.stdin.take().expect("stdin is piped");
    stdin.write_all(json!(languages).to_string().as_bytes()).expect("Node reads");
    drop(stdin);
    let out = node.wait_with_output().expect("Node ends");
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "Node and we do not agree:\n{said}");
    assert!(said.starts_with("compared "), "{said}");
}
