//! The service worker that shows a notice by Web Push: `pages/push-worker.js` with the words of one
//! language before it, so that it needs nothing of anybody when a message comes.

use serde_json::json;

use crate::assemble::bare;
use crate::words;

const WORKER: &str = include_str!("../pages/push-worker.js");

/// For the header `Content-Security-Policy` of the script: it loads nothing and asks nobody.
pub const PUSH_WORKER_POLICY: &str = "default-src 'none'";

/// The script in the language of the page that registers it; English for one that we do not have.
pub fn push_worker(language: &str) -> String {
    let words = words::choose(language);
    let texts = json!({
        "lang": words.tag,
        "dir": words.direction(),
        "near": words.page["word_near"],
        "turn": words.page["turn"],
        "next": words.page["next"],
        "ahead": words.page["ahead"],
        "back": words.page["word_back"],
    });
    format!("const texts = {texts};\n{}\n", bare(WORKER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_speaks_the_language_that_it_was_asked_in() {
        assert!(push_worker("de").contains("Sie sind bald dran"));
        assert!(push_worker("zh-Hant").contains("\"lang\":\"zh-Hant\""));
        assert!(push_worker("ar").contains("\"dir\":\"rtl\""));
        for nothing in ["", "tlh", "\"};alert(1)//", "de\r\nX: y"] {
            assert_eq!(push_worker(nothing), push_worker("en"), "{nothing:?}");
        }
    }

    #[test]
    fn the_worker_stands_before_no_request_and_takes_over_no_page() {
        let script = push_worker("en");
        for word in ["\"fetch\"", "onfetch", "respondWith", "claim(", "importScripts", "fetch("] {
            assert!(!script.contains(word), "{word}");
        }
    }
}
