//! What a browser is shown: the documents of `crates/pages`, told what the gate knows of the room.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use waitroom_api::{Code, Problem};
use waitroom_core::Settings;
use waitroom_pages::{By, Draw, Notice, Schedule, Waiting, notice};

use crate::BASE;
use crate::room::GateRoom;

/// A finished document; a copy of it is two pointers.
#[derive(Clone, Debug)]
pub struct Page {
    pub html: Bytes,
    /// Whether the bytes are packed with gzip.
    pub packed: bool,
    pub language: &'static str,
    pub policy: HeaderValue,
}

impl Page {
    /// The same, in less than half of the bytes.
    fn pack(&self) -> Page {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        let packed = packer.write_all(&self.html).and_then(|()| packer.finish());
        match packed {
            Ok(bytes) => Page { html: bytes.into(), packed: true, ..self.clone() },
            Err(_) => self.clone(),
        }
    }
}

impl From<waitroom_pages::Page> for Page {
    fn from(page: waitroom_pages::Page) -> Page {
        let policy = HeaderValue::try_from(page.content_security_policy);
        let policy = policy.expect("a policy is plain ASCII");
        Page { html: page.html.into(), packed: false, language: page.language, policy }
    }
}

/// Pages for strangers, kept for the second for which a cache in front of us may keep them too:
/// a crowd asks for the same address in the same language, and writing the page anew for each
/// would cost more than to let them in.
#[derive(Debug, Default)]
pub struct Kept(Mutex<Second>);

#[derive(Debug, Default)]
struct Second {
    second: u64,
    pages: HashMap<Box<str>, Both>,
}

/// A page as it is and packed: packing takes longer than writing it, so that is kept too.
#[derive(Clone, Debug)]
struct Both {
    plain: Page,
    packed: Page,
}

impl Both {
    fn form(&self, packed: bool) -> Page {
        if packed { self.packed.clone() } else { self.plain.clone() }
    }
}

/// Different pages kept at a time, some fifty kilobytes each. Beyond it they are written anew and
/// not packed: who asks for ever new addresses must fill neither the memory nor the processor.
const KEPT_MAX: usize = 64;

impl Kept {
    /// The page of this key in this second, written now if nobody had it written.
    fn page(&self, second: u64, key: &str, packed: bool, write: impl FnOnce() -> Page) -> Page {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut kept = kept();
            if kept.second != second {
                kept.second = second;
                kept.pages.clear();
            }
            if let Some(both) = kept.pages.get(key) {
                return both.form(packed);
            }
            if kept.pages.len() >= KEPT_MAX {
                drop(kept);
                return write();
            }
        }
        // Not under the lock: others need not wait for this one.
        let plain = write();
        let both = Both { packed: plain.pack(), plain };
        let form = both.form(packed);
        let mut kept = kept();
        if kept.second == second && kept.pages.len() < KEPT_MAX {
            kept.pages.insert(key.into(), both);
        }
        form
    }
}

/// The page for a stranger.
pub fn for_stranger(room: &GateRoom, shown: &Shown<'_>, packed: bool) -> Page {
    let key = [shown.accept_language.unwrap_or_default(), "\n", shown.back_to].concat();
    room.pages.page(shown.now_ms / 1_000, &key, packed, || waiting(room, shown))
}

/// What differs from one visitor to the next.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    pub accept_language: Option<&'a str>,
    /// The visitor answer, as JSON, when it is known who looks; or a problem document.
    pub answer: Option<&'a str>,
    /// Where the visitor wanted to go: a local path.
    pub back_to: &'a str,
    /// When a browser without JavaScript should look again.
    pub refresh_s: u64,
    pub now_ms: u64,
    /// By which ways the room can say that the turn comes near.
    pub notices: &'a [By],
}

pub fn waiting(room: &GateRoom, shown: &Shown<'_>) -> Page {
    let settings = room.desk.settings();
    let settings = settings.as_deref();
    let look = room.looks.of(settings);
    let title = settings.map(|it| it.title.as_str()).filter(|title| !title.is_empty());
    let page = waitroom_pages::waiting(&Waiting {
        room: room.name(),
        title: title.unwrap_or(room.name()),
        base: BASE,
        accept_language: shown.accept_language.unwrap_or_default(),
        answer: shown.answer,
        back_to: Some(shown.back_to),
        refresh_s: shown.refresh_s,
        message: settings.map(|it| it.message.as_str()).filter(|message| !message.is_empty()),
        schedule: schedule(settings, shown.now_ms),
        privacy_url: None,
        theme: look.theme.as_ref(),
        template: look.template.as_ref(),
        notices: shown.notices,
    });
    page.into()
}

fn schedule(settings: Option<&Settings>, now_ms: u64) -> Schedule {
    let Some(settings) = settings else { return Schedule::default() };
    Schedule {
        now_ms: Some(now_ms),
        opens_at_ms: settings.opens_at.map(|at| at.0),
        starts_at_ms: settings.starts_at.map(|at| at.0),
        draw: settings.draw.as_ref().map(|draw| match draw.beacon {
            Some(_) => Draw::Verifiable,
            None => Draw::Committed,
        }),
    }
}

/// A page that says what went wrong.
pub fn trouble(problem: &Problem, accept_language: Option<&str>) -> Page {
    let shown = Waiting {
        room: "",
        title: problem.code.title(),
        base: BASE,
        accept_language: accept_language.unwrap_or_default(),
        answer: None,
        back_to: None,
        refresh_s: 0,
        message: None,
        schedule: Schedule::default(),
        privacy_url: None,
        theme: None,
        template: None,
        notices: &[],
    };
    let detail = problem.detail.as_str();
    let said = match problem.code {
        Code::Maintenance => Notice::Maintenance(detail),
        _ => Notice::Error(detail),
    };
    notice(&shown, said).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn page(html: String) -> Page {
        let policy = HeaderValue::from_static("x");
        Page { html: html.into(), packed: false, language: "en", policy }
    }

    #[test]
    fn a_packed_page_is_the_same_page() {
        let (kept, text) = (Kept::default(), "waiting ".repeat(1_000));
        let packed = kept.page(7, "en", true, || page(text.clone()));
        assert!(packed.packed && packed.html.len() < 500);
        let mut unpacked = String::new();
        let mut reader = flate2::read::GzDecoder::new(&packed.html[..]);
        std::io::Read::read_to_string(&mut reader, &mut unpacked).expect("gzip");
        assert_eq!(unpacked, text);
        let plain = kept.page(7, "en", false, || panic!("it was written"));
        assert_eq!((plain.html, plain.packed), (text.into(), false));
    }

    #[test]
    fn a_crowd_that_asks_for_the_same_in_one_second_gets_one_page() {
        let (kept, written) = (Kept::default(), Cell::new(0));
        let ask = |second: u64, key: &str| {
            kept.page(second, key, false, || {
                written.set(written.get() + 1);
                page(format!("{second} {key}"))
            })
        };
        for _ in 0..1_000 {
            assert_eq!(ask(7, "de\n/a").html, "7 de\n/a");
            assert_eq!(ask(7, "en\n/a").html, "7 en\n/a");
        }
        assert_eq!(written.get(), 2);
        assert_eq!(ask(8, "de\n/a").html, "8 de\n/a", "what the room says may be another now");
        assert_eq!(written.get(), 3);
    }

    #[test]
    fn who_asks_for_ever_new_addresses_does_not_fill_the_memory() {
        let kept = Kept::default();
        for at in 0..10 * KEPT_MAX {
            let got = kept.page(7, &format!("en\n/{at}"), true, || page("x".to_owned()));
            assert_eq!(got.packed, at < KEPT_MAX, "nor the processor");
        }
        assert_eq!(kept.0.lock().expect("nobody panicked").pages.len(), KEPT_MAX);
    }
}
