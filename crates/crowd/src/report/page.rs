//! The outcome as one HTML file that follows the reader's light or dark setting and fits a phone.

use std::fmt::Write as _;

use super::chart::Chart;
use super::{HEADS, cells, latency, number, span};
use crate::outcome::Outcome;
use crate::tally::LONG_POLL;

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub fn page(o: &Outcome) -> String {
    let mut out = String::with_capacity(64 << 10);
    write_page(&mut out, o).expect("a string takes everything written to it");
    out
}

fn write_page(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let room = escape(&o.plan.room);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Crowd: {} visitors, {room}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <main>\n",
        number(o.plan.visitors)
    )?;
    write_head(out, o, &room)?;
    write_figures(out, o)?;
    write_charts(out, o)?;
    write_calls(out, o)?;
    write_surprises(out, o)?;
    write_plan(out, o)?;
    out.push_str("</main>\n</body>\n</html>\n");
    Ok(())
}

fn write_head(out: &mut String, o: &Outcome, room: &str) -> std::fmt::Result {
    let quick = o.calls.iter().filter(|it| it.fine > 0 && it.name != LONG_POLL);
    let slowest = quick.max_by_key(|it| it.p99_us);
    let slowest = slowest.map_or(String::new(), |it| {
        format!(
            " The slowest kind of call is {}: one in a hundred took longer than <b>{}</b>.",
            escape(it.name),
            latency(it.p99_us)
        )
    });
    writeln!(
        out,
        "<header>\n<p class=\"eyebrow\">waitroom crowd</p>\n<h1>{} people before room {room}</h1>\n\
         <p class=\"lead\"><b>{}</b> got a place, <b>{}</b> got in, over {}.{slowest}</p>\n</header>",
        number(o.people.arrived),
        number(o.people.joined),
        number(o.people.admitted),
        span(o.took_ms)
    )
}

fn write_figures(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let per_s = o.total_calls() * 1_000 / o.took_ms.max(1);
    let figures = [
        ("calls", number(o.total_calls()), false),
        ("calls per second", number(per_s), false),
        ("completed", number(o.people.completed), false),
        ("left", number(o.people.left), false),
        ("fell silent", number(o.people.silent), false),
        ("without a place", number(o.people.refused), false),
        ("lost calls", number(o.total_lost()), false),
        ("could not be sent", number(o.unreachable), false),
        ("forged", number(o.forgeries), false),
        ("wrong on the spot", number(o.surprises), o.surprises > 0),
    ];
    out.push_str("<dl class=\"figures\">\n");
    for (name, value, bad) in figures {
        let class = if bad { " class=\"bad\"" } else { "" };
        writeln!(out, "<div{class}><dt>{name}</dt><dd>{value}</dd></div>")?;
    }
    out.push_str("</dl>\n");
    Ok(())
}

fn write_charts(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let moments = &o.moments;
    let seconds: Vec<u64> = moments.iter().map(|it| it.at_s).collect();
    let seconds = &seconds[..];
    if seconds.is_empty() {
        return Ok(());
    }
    out.push_str("<section class=\"charts\" aria-label=\"Charts\">\n");
    Chart {
        title: "Waiting and inside",
        says: "How many of the crowd are where, over time.",
        lines: &[("waiting", &|i| moments[i].waiting), ("inside", &|i| moments[i].inside)],
        seconds,
        value: number,
    }
    .write(out)?;
    Chart {
        title: "Calls per second",
        says: "Answered calls of all kinds.",
        lines: &[("calls", &|i| moments[i].calls)],
        seconds,
        value: number,
    }
    .write(out)?;
    Chart {
        title: "Latency",
        says: "The middle, and what one call in a hundred exceeds, second by second; without long polls.",
        lines: &[("p99", &|i| moments[i].p99_us), ("p50", &|i| moments[i].p50_us)],
        seconds,
        value: latency,
    }
    .write(out)?;
    Chart {
        title: "Without an answer",
        says: "Calls that got lost or could not be sent.",
        lines: &[("lost", &|i| moments[i].lost)],
        seconds,
        value: number,
    }
    .write(out)?;
    out.push_str("</section>\n");
    Ok(())
}

fn write_calls(out: &mut String, o: &Outcome) -> std::fmt::Result {
    out.push_str("<section>\n<h2>Calls</h2>\n<div class=\"scroll\"><table>\n<thead><tr>");
    for head in ["call"].iter().chain(&HEADS) {
        write!(out, "<th scope=\"col\">{head}</th>")?;
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for calls in &o.calls {
        write!(out, "<tr><th scope=\"row\">{}</th>", escape(calls.name))?;
        cells(calls).iter().try_for_each(|cell| write!(out, "<td>{cell}</td>"))?;
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    if !o.problems.is_empty() {
        out.push_str("<p class=\"muted\">Refused: ");
        let told: Vec<String> = o
            .problems
            .iter()
            .map(|(code, count)| format!("{} {}", escape(code), number(*count)))
            .collect();
        writeln!(out, "{}.</p>", told.join(", "))?;
    }
    out.push_str("</section>\n");
    Ok(())
}

fn write_surprises(out: &mut String, o: &Outcome) -> std::fmt::Result {
    if o.surprises == 0 {
        return Ok(());
    }
    writeln!(out, "<section>\n<h2>Wrong on the spot</h2>\n<ul class=\"surprises\">")?;
    for said in &o.first_surprises {
        writeln!(out, "<li>{}</li>", escape(said))?;
    }
    out.push_str("</ul>\n</section>\n");
    Ok(())
}

fn write_plan(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let p = &o.plan;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let rows = [
        ("server", p.target.clone()),
        ("arriving", format!("{} over {}", p.shape, span(p.over_ms))),
        ("channels", p.mix.clone()),
        ("abandon", percent(p.abandon)),
        ("fall silent", percent(p.silent)),
        ("misbehave", percent(p.misbehave)),
        ("stay inside", span(p.stay_ms)),
        ("speed", format!("{} times", p.speed)),
        ("shared connections", number(p.connections as u64)),
        ("seed", p.seed.to_string()),
        ("lines of history", number(o.history_lines)),
    ];
    out.push_str("<section>\n<h2>The plan</h2>\n<div class=\"scroll\"><table>\n<tbody>\n");
    for (name, value) in rows {
        writeln!(out, "<tr><th scope=\"row\">{name}</th><td>{}</td></tr>", escape(&value))?;
    }
    out.push_str("</tbody></table></div>\n</section>\n");
    Ok(())
}

/// Room names and problem codes come from outside.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}
