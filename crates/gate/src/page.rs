//! What a browser is shown: the documents of `crates/pages`, told what the gate knows of the room.

use waitroom_core::Settings;
use waitroom_pages::{Draw, Notice, Schedule, Waiting, notice};

use crate::BASE;
use crate::room::GateRoom;
use waitroom_api::{Code, Problem};

pub use waitroom_pages::Page;

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
}

pub fn waiting(room: &GateRoom, shown: &Shown<'_>) -> Page {
    let settings = room.desk.settings();
    let settings = settings.as_deref();
    let title = settings.map(|it| it.title.as_str()).filter(|title| !title.is_empty());
    waitroom_pages::waiting(&Waiting {
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
        theme: None,
        template: None,
    })
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
    };
    let detail = problem.detail.as_str();
    let said = match problem.code {
        Code::Maintenance => Notice::Maintenance(detail),
        _ => Notice::Error(detail),
    };
    notice(&shown, said)
}
