//! Which page a visitor sees: the state they are in, and what each part of the page says in it.
//!
//! Lives here: the same choices as in `show` of `pages/page.js`, for the first view and for
//! browsers that run no script. Browser tests hold both together.
//! Stays out: HTML (`assemble.rs`), words (`words.rs`).
//! To add a state: a variant of [`State`], its texts in every language, a row in `preview.rs`,
//! and the same in the script.

use std::borrow::Cow;

use crate::answer::{Answer, Problem};
use crate::assemble::{self, Script};
use crate::number::{moment, span};
use crate::words::{self, Words};
use crate::{Page, Template, Theme};

/// What the caller knows about a visitor who has to wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiting<'a> {
    pub room: &'a str,
    /// What the room is called.
    pub title: &'a str,
    /// Where the visitor API is: "" or a path such as "/.waitroom".
    pub base: &'a str,
    /// The header as it came.
    pub accept_language: &'a str,
    /// The visitor answer as JSON, if there is a ticket already; or a problem document, if asking
    /// for one led to that.
    pub answer: Option<&'a str>,
    /// The path on this host that the visitor wanted, where the pass is taken there (a gate before
    /// it). Then that is where the page goes in, with the pass in the query; otherwise it follows
    /// the answer's `enter_url`. Anything but a path is ignored.
    pub back_to: Option<&'a str>,
    /// How often a page without script comes back to `{base}/wait`; 0 never.
    pub refresh_s: u64,
    /// What the operator has to say to everyone.
    pub message: Option<&'a str>,
    pub schedule: Schedule,
    /// Where the privacy page is; without it there is no link.
    pub privacy_url: Option<&'a str>,
    pub theme: Option<&'a Theme>,
    pub template: Option<&'a Template>,
    /// By which ways a message can be asked for that says when the turn comes near.
    pub notices: &'a [By],
}

/// A way to reach somebody who does not look at the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A notification of the browser itself: no address is asked for, so it is named first.
    Push,
    Email,
    Sms,
}

impl By {
    const ALL: [By; 3] = [By::Push, By::Email, By::Sms];

    /// Those of a room's channels that this page can ask for.
    pub fn of_channels(channels: &[&str]) -> Vec<By> {
        By::ALL.into_iter().filter(|by| channels.contains(&by.word())).collect()
    }

    /// As the visitor API calls it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            By::Push => "push",
            By::Email => "email",
            By::Sms => "sms",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            By::Push => "word_push",
            By::Email => "word_email",
            By::Sms => "word_sms",
        }
    }
}

/// When things happen, in milliseconds since 1970, by the server's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    pub now_ms: Option<u64>,
    pub opens_at_ms: Option<u64>,
    pub starts_at_ms: Option<u64>,
    pub draw: Option<Draw>,
}

/// How much a draw promises. The page says no more than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// The seed was committed to in advance.
    Committed,
    /// A public beacon goes in as well.
    Verifiable,
}

impl Draw {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Draw::Committed => "committed",
            Draw::Verifiable => "verifiable",
        }
    }
}

/// What a visitor without a (live) ticket is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    NotOpen,
    Full,
    Paused(&'a str),
    Maintenance(&'a str),
    /// The sale is over, with the reason; "sold out" has a headline of its own.
    Ended(&'a str),
    /// Why there is no place any more: `ended_because` of an answer, or the code of a problem.
    Lost(&'a str),
    /// Something else went wrong, with a sentence about it or none.
    Error(&'a str),
}

impl<'a> Notice<'a> {
    /// What a problem of the visitor API means to a visitor; none when it will pass by itself, so
    /// that the page goes on asking.
    fn of(problem: &'a Problem) -> Option<Notice<'a>> {
        let detail = problem.detail.as_str();
        Some(match problem.code.as_str() {
            "not_open_yet" => Notice::NotOpen,
            "queue_full" => Notice::Full,
            "paused" => Notice::Paused(detail),
            "maintenance" => Notice::Maintenance(detail),
            "room_ended" => Notice::Ended(detail),
            "moved_elsewhere" | "place_lost" | "ticket_forgotten" | "ticket_unknown"
            | "claim_too_late" => Notice::Lost(&problem.code),
            "room_unknown" | "forbidden" | "challenge_required" => Notice::Error(""),
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Finding,
    Waiting,
    Paused,
    Maintenance,
    Before,
    Drawing,
    Turn,
    Ended,
    Lost,
    Full,
    NotOpen,
    Error,
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            State::Finding => "finding",
            State::Waiting => "waiting",
            State::Paused => "paused",
            State::Maintenance => "maintenance",
            State::Before => "before",
            State::Drawing => "drawing",
            State::Turn => "turn",
            State::Ended => "ended",
            State::Lost => "lost",
            State::Full => "full",
            State::NotOpen => "not_open",
            State::Error => "error",
        }
    }

    fn of(answer: &Answer) -> State {
        match (answer.status.as_str(), answer.room_status.as_str()) {
            ("waiting", "scheduled" | "held") => State::Before,
            ("waiting", "drawing") => State::Drawing,
            ("waiting", "paused") => State::Paused,
            ("waiting", "maintenance") => State::Maintenance,
            ("waiting", _) => State::Waiting,
            ("admitted" | "active", _) => State::Turn,
            ("closed", _) => State::Ended,
            _ => State::Lost,
        }
    }

    /// Whether the visitor has a place that the page keeps alive.
    fn keeps_a_place(self) -> bool {
        use State::{Before, Drawing, Maintenance, Paused, Waiting};
        matches!(self, Waiting | Paused | Maintenance | Before | Drawing)
    }
}

/// What the parts of the page say. `None` is not shown.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub state: State,
    pub head: String,
    pub lead: Option<String>,
    /// What the operator said about this state, and what the operator has to say anyway.
    pub reason: Option<String>,
    pub notice: Option<String>,
    pub label: Option<String>,
    pub number: Option<String>,
    pub sub: Option<String>,
    pub wait: Option<String>,
    pub wait_known: bool,
    pub code: Option<String>,
    pub keeps_a_place: bool,
}

impl View {
    pub(crate) fn has_ticket(&self) -> bool {
        let holds = self.keeps_a_place || self.state == State::Turn;
        self.number.is_some() || self.sub.is_some() || self.code.is_some() && holds
    }
}

/// The waiting page for what the answer says; without one, the page that gets a place.
pub fn waiting(shown: &Waiting<'_>) -> Page {
    let words = words_for(shown);
    let problem = shown.answer.and_then(Problem::read);
    if let Some(told) = problem.as_ref().and_then(Notice::of) {
        return notice(&Waiting { answer: None, ..*shown }, told);
    }
    let shown = &Waiting { answer: shown.answer.filter(|_| problem.is_none()), ..*shown };
    let answer = shown.answer.and_then(Answer::read);
    let state = answer.as_ref().map_or(State::Finding, State::of);
    let because = answer.as_ref().and_then(|it| it.ended_because.clone()).unwrap_or_default();
    let view = view(shown, &words, state, answer.as_ref(), &because, None);
    assemble::document(shown, &words, &view, answer.as_ref(), Script::Runs)
}

/// A page for somebody who has no place now.
pub fn notice(shown: &Waiting<'_>, notice: Notice<'_>) -> Page {
    let words = words_for(shown);
    let (state, because, reason) = match notice {
        Notice::NotOpen => (State::NotOpen, "", None),
        Notice::Full => (State::Full, "", None),
        Notice::Paused(reason) => (State::Paused, "", Some(reason)),
        Notice::Maintenance(reason) => (State::Maintenance, "", Some(reason)),
        Notice::Ended(reason) => (State::Ended, "", Some(reason)),
        Notice::Lost(because) => (State::Lost, because, None),
        Notice::Error(detail) => (State::Error, "", Some(detail)),
    };
    let view = view(shown, &words, state, None, because, reason);
    // What may change by itself is asked for again; what is final waits for the visitor.
    let script = match state {
        State::Ended | State::Lost | State::Error => Script::Stands { because },
        _ => Script::Runs,
    };
    assemble::document(shown, &words, &view, None, script)
}

/// The visitor's language, with the room's own texts laid over it.
pub(crate) fn words_for<'a>(shown: &Waiting<'a>) -> Cow<'a, Words> {
    let words = words::choose(shown.accept_language);
    match shown.theme {
        Some(theme) => theme.lay_over(words),
        None => Cow::Borrowed(words),
    }
}

fn view(
    shown: &Waiting<'_>,
    words: &Words,
    state: State,
    answer: Option<&Answer>,
    because: &str,
    reason: Option<&str>,
) -> View {
    let reason = reason.or(answer.and_then(|it| it.reason.as_deref())).unwrap_or_default();
    let sold_out = state == State::Ended && is_sold_out(reason);
    let say = |key: &str| words.say(key, &[]);
    let head = match state {
        State::Waiting => say("in_line"),
        State::Ended if sold_out => say("sold_out"),
        other => say(other.word()),
    };
    let draws = answer.map_or(shown.schedule.draw.is_some(), |it| it.draw_pending);
    let lead = match state {
        State::Waiting => None,
        State::Before if draws => Some(match shown.schedule.draw {
            Some(draw) => {
                format!("{} {}", say("draw_note"), say(&format!("draw_{}", draw.word())))
            }
            None => say("draw_note"),
        }),
        State::Lost => Some(say(&format!("lost_{}", lost_word(because)))),
        other => Some(say(&format!("{}_note", other.word()))),
    };
    let given = Some(reason).filter(|it| !it.trim().is_empty());
    // "Sold out" is said by the headline already.
    let reason = given.filter(|it| !sold_out || it.len() >= 10);
    let position = answer.and_then(|it| it.position).filter(|&n| n > 0);
    let in_line = matches!(state, State::Waiting | State::Paused | State::Maintenance);
    let position = position.filter(|_| in_line);
    let starts = shown.schedule.starts_at_ms.filter(|_| state == State::Before);
    let wait = answer.and_then(|it| it.wait).map(|it| span(words, it.low_s, it.high_s));
    View {
        state,
        head,
        lead,
        reason: given.map(str::to_owned),
        notice: reason.or(shown.message).map(str::to_owned),
        label: position.map(|_| say("place")),
        number: position.map(|n| words.number(n)),
        sub: match (position, starts) {
            (Some(1), _) => Some(say("next")),
            (Some(n), _) => Some(words.count("ahead", n - 1, &words.number(n - 1))),
            (None, Some(at)) => Some(words.say("starts_at", &[("time", &moment(at))])),
            (None, None) => None,
        },
        wait_known: wait.is_some(),
        wait: position.map(|_| wait.unwrap_or_else(|| say("wait_unknown"))),
        code: answer.and_then(|it| it.support_code.clone()),
        keeps_a_place: answer.is_some() && state.keeps_a_place(),
    }
}

/// The same test as in the script: the reason is the operator's, in no fixed form.
pub(crate) fn is_sold_out(reason: &str) -> bool {
    let begins = reason.trim().to_ascii_lowercase().replace(['_', '-', ' '], "");
    begins.starts_with("soldout")
}

/// Why a place is gone, as the words know it.
fn lost_word(because: &str) -> &'static str {
    match because {
        "heartbeat_timeout" => "silent",
        "no_show" | "claim_too_late" => "no_show",
        "too_old" => "too_old",
        "session_over" | "checkout_failed" | "checkout_expired" => "session",
        "revoked" => "revoked",
        "left" => "left",
        "completed" => "completed",
        "moved" | "moved_elsewhere" => "moved",
        "place_lost" | "ticket_unknown" => "failure",
        _ => "forgotten",
    }
}

/// A view for tests of what is made of one.
#[cfg(test)]
pub(crate) fn tests_view() -> (&'static Words, View) {
    let words = &words::all()[0];
    (words, view(&Waiting::default(), words, State::Finding, None, "", None))
}
