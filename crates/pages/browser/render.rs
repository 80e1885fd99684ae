//! `render-page`: pages for the browser tests and for screenshots.
//!
//! Reads one JSON object a line (`state`, `room`, `title`, `base`, `accept_language`, `answer`,
//! `back_to`, `refresh_s`, `message`, `now_ms`, `opens_at_ms`, `starts_at_ms`, `draw`, `notice`,
//! `theme`, `template`, `notices`), writes one a line: `{html, content_security_policy, language}` or
//! `{mistakes}`.

use std::io::{BufRead, Write};

use serde::Deserialize;
use serde_json::{Value, json};
use waitroom_pages::{
    By, Draw, Mistake, Notice, Schedule, Template, Theme, Waiting, notice, preview, waiting,
};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    state: Option<String>,
    notice: Option<String>,
    reason: String,
    room: String,
    title: String,
    base: String,
    accept_language: String,
    answer: Option<String>,
    back_to: Option<String>,
    refresh_s: u64,
    message: Option<String>,
    privacy_url: Option<String>,
    now_ms: Option<u64>,
    opens_at_ms: Option<u64>,
    starts_at_ms: Option<u64>,
    draw: Option<String>,
    theme: Option<Value>,
    template: Option<String>,
    notices: Vec<String>,
}

fn main() {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("lines of text");
        let wanted: Wanted = serde_json::from_str(&line).expect("what is wanted is understood");
        let answer = rendered(&wanted).unwrap_or_else(|mistakes| {
            let told = |it: &Mistake| json!({"place": it.place, "problem": it.problem});
            json!({"mistakes": mistakes.iter().map(told).collect::<Vec<_>>()})
        });
        writeln!(out, "{answer}").expect("somebody reads this");
    }
}

fn rendered(wanted: &Wanted) -> Result<Value, Vec<Mistake>> {
    let theme = wanted.theme.as_ref().map(|it| Theme::read(&it.to_string())).transpose()?;
    let template = wanted.template.as_deref().map(Template::read).transpose()?;
    let notices: Vec<&str> = wanted.notices.iter().map(String::as_str).collect();
    let notices = By::of_channels(&notices);
    let shown = Waiting {
        room: &wanted.room,
        title: &wanted.title,
        base: &wanted.base,
        accept_language: &wanted.accept_language,
        answer: wanted.answer.as_deref(),
        back_to: wanted.back_to.as_deref(),
        refresh_s: wanted.refresh_s,
        message: wanted.message.as_deref(),
        privacy_url: wanted.privacy_url.as_deref(),
        schedule: Schedule {
            now_ms: wanted.now_ms,
            opens_at_ms: wanted.opens_at_ms,
            starts_at_ms: wanted.starts_at_ms,
            draw: wanted.draw.as_deref().map(|it| match it {
                "verifiable" => Draw::Verifiable,
                _ => Draw::Committed,
            }),
        },
        theme: theme.as_ref(),
        template: template.as_ref(),
        notices: &notices,
    };
    let reason = wanted.reason.as_str();
    let page = match (wanted.state.as_deref(), wanted.notice.as_deref()) {
        (Some(state), _) => preview(state, &shown).expect("a state that there is"),
        (None, Some("maintenance")) => notice(&shown, Notice::Maintenance(reason)),
        (None, Some("ended")) => notice(&shown, Notice::Ended(reason)),
        (None, Some("lost")) => notice(&shown, Notice::Lost(reason)),
        (None, Some(other)) => panic!("no notice {other}"),
        (None, None) => waiting(&shown),
    };
    Ok(json!({
        "html": page.html,
        "content_security_policy": page.content_security_policy,
        "language": page.language,
    }))
}
