//! The report of a run: a text for the terminal, a page for everybody else.
//!
//! Lives here: words and numbers. The page is in `page.rs`; it needs nothing but itself: no
//! scripts, no fonts, no network.

mod chart;
mod page;

use std::fmt::Write as _;

use crate::outcome::Outcome;
pub use page::page;

/// The summary.
pub fn text(o: &Outcome) -> String {
    let mut out = String::new();
    write_text(&mut out, o).expect("a string takes everything written to it");
    out
}

fn write_text(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let p = &o.people;
    writeln!(
        out,
        "{} of {} visitors came to room \"{}\" within {}; seed {}",
        number(p.arrived),
        number(o.plan.visitors),
        o.plan.room,
        span(o.took_ms),
        o.plan.seed
    )?;
    writeln!(
        out,
        "  people    {} joined, {} admitted, {} completed, {} left, {} fell silent, {} ended by \
         the room, {} unfinished, {} without a place",
        number(p.joined),
        number(p.admitted),
        number(p.completed),
        number(p.left),
        number(p.silent),
        number(p.ended),
        number(p.unfinished),
        number(p.refused)
    )?;
    writeln!(
        out,
        "  calls     {}, {} lost, {} that could not be sent; {} frames, {} of them boards, {} \
         channels opened again",
        number(o.total_calls()),
        number(o.total_lost()),
        number(o.unreachable),
        number(o.live.frames),
        number(o.live.boards),
        number(o.live.reconnects)
    )?;
    writeln!(out, "\n  {:<12}{}", "call", heads(|head| format!("{head:>10}")))?;
    for calls in &o.calls {
        let cells: String = cells(calls).iter().map(|cell| format!("{cell:>10}")).collect();
        writeln!(out, "  {:<12}{cells}", calls.name)?;
    }
    if !o.problems.is_empty() {
        let told: Vec<String> =
            o.problems.iter().map(|(code, count)| format!("{code} {}", number(*count))).collect();
        writeln!(out, "\n  refused   {}", told.join(", "))?;
    }
    if o.forgeries > 0 {
        writeln!(out, "  forged    {} things were presented that were false", number(o.forgeries))?;
    }
    if o.history_lines > 0 {
        writeln!(out, "  history   {} lines", number(o.history_lines))?;
    }
    match o.surprises {
        0 => writeln!(out, "  on the spot, nobody saw anything wrong"),
        count => {
            writeln!(out, "\n  {} answers were wrong on the spot:", number(count))?;
            o.first_surprises.iter().try_for_each(|said| writeln!(out, "    {said}"))
        }
    }
}

const HEADS: [&str; 8] = ["fine", "refused", "lost", "p50", "p90", "p99", "p99.9", "max"];

fn heads(cell: impl Fn(&str) -> String) -> String {
    HEADS.iter().map(|head| cell(head)).collect()
}

fn cells(calls: &crate::outcome::Calls) -> [String; 8] {
    let times = [calls.p50_us, calls.p90_us, calls.p99_us, calls.p999_us, calls.max_us];
    let [p50, p90, p99, p999, max] = times.map(latency);
    let [fine, refused, lost] = [calls.fine, calls.refused, calls.lost].map(number);
    [fine, refused, lost, p50, p90, p99, p999, max]
}

/// 1,234,567.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// "850 µs", "12.3 ms", "1.20 s".
pub fn latency(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}

/// "45 s", "2 min 5 s".
pub fn span(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{:.1} s", ms as f64 / 1e3),
        10_000..120_000 => format!("{} s", ms / 1_000),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([850, 12_340, 1_200_000].map(latency), ["850 µs", "12.3 ms", "1.20 s"]);
        assert_eq!([900, 45_000, 125_000].map(span), ["0.9 s", "45 s", "2 min 5 s"]);
    }
}
