//! The outcome in words for a terminal. Lives here: the layout. Stays out: colours and progress,
//! which belong to whoever owns the terminal.

use std::fmt::Write as _;

use super::human::{duration, number, percent};
use super::outcome::{Estimates, Outcome, Waits};

/// The share of intervals that should hold.
pub(super) const HELD_MIN: f64 = 0.75;
pub(super) const HELD_MAX: f64 = 0.85;
/// The share of asks that may stay without an answer.
pub(super) const UNKNOWN_MAX: f64 = 0.05;

/// The whole summary, ending with a line break.
pub fn summary(outcome: &Outcome) -> String {
    let mut out = String::new();
    write_summary(&mut out, outcome).expect("a string takes everything written to it");
    out
}

fn write_summary(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let plan = &o.plan;
    let limit = plan.rate_per_s.map_or("no rate limit".into(), |r| format!("{}/s", number(r)));
    writeln!(
        out,
        "{} visitors, {} over {}",
        number(plan.visitors),
        plan.shape,
        duration(plan.over_ms)
    )?;
    writeln!(out, "{limit}, {} may be inside, seed {}", number(plan.capacity), plan.seed)?;
    writeln!(out, "patience: {}\n", plan.patience)?;

    writeln!(out, "waited{:>18}{:>13}{:>13}{:>13}{:>13}", "p10", "p50", "p90", "p99", "longest")?;
    write_waits(out, "everyone", &o.waits)?;
    if o.lanes.len() > 1 {
        for lane in &o.lanes {
            write_waits(out, &lane.name, &lane.waits)?;
        }
    }
    writeln!(out)?;

    let c = &o.counts;
    let of_joined = |n: u64| percent(n as f64 / c.joined.max(1) as f64);
    line(
        out,
        "drained after",
        &format!(
            "{}; at most {} waiting",
            duration(o.drained_ms),
            number(o.admissions.peak_waiting)
        ),
    )?;
    let pace = o
        .admissions
        .while_waiting_per_s
        .map_or("nobody had to wait".into(), |pace| format!("{pace:.1}/s while people waited"));
    line(
        out,
        "admitted",
        &format!(
            "{} people; {pace}, {}/s in the busiest second; limit {limit}",
            number(c.admitted),
            number(o.admissions.busiest_second)
        ),
    )?;
    line(
        out,
        "inside",
        &format!("at most {} of {}", number(o.admissions.peak_active), number(plan.capacity)),
    )?;
    let fairness = o.fairness.map_or("too few entered to say".into(), |f| format!("{f:.6}"));
    line(out, "fairness", &format!("{fairness} (rank correlation of arriving and entering)"))?;
    line(
        out,
        "gave up",
        &format!(
            "{} of {} tickets ({} left, {} fell silent); {} came back",
            of_joined(c.left + c.lapsed),
            number(c.joined),
            number(c.left),
            number(c.lapsed),
            number(c.came_back)
        ),
    )?;
    line(
        out,
        "no-shows",
        &format!("{} of the admitted", percent(c.no_shows as f64 / c.admitted.max(1) as f64)),
    )?;
    write_estimates(out, &o.estimates)?;
    line(
        out,
        "rehearsed in",
        &format!(
            "{}, {} visitors a second",
            duration(o.speed.took_ms),
            number(o.speed.visitors_per_s as u64)
        ),
    )
}

fn line(out: &mut String, name: &str, value: &str) -> std::fmt::Result {
    writeln!(out, "{name:<15}{value}")
}

fn write_waits(out: &mut String, name: &str, w: &Waits) -> std::fmt::Result {
    let short: String = name.chars().take(11).collect();
    writeln!(
        out,
        "{short:<11}{:>13}{:>13}{:>13}{:>13}{:>13}",
        duration(w.p10_ms),
        duration(w.p50_ms),
        duration(w.p90_ms),
        duration(w.p99_ms),
        duration(w.max_ms)
    )
}

fn write_estimates(out: &mut String, e: &Estimates) -> std::fmt::Result {
    let (Some(held), Some(unknown)) = (e.held, e.unknown) else {
        return line(out, "estimates", "nobody waited long enough after the first minute to ask");
    };
    let aim = |met: bool| if met { "as it should be" } else { "NOT as it should be" };
    line(
        out,
        "estimates",
        &format!(
            "{} of the 80 % intervals held ({}; 75 to 85 % is the aim)",
            percent(held),
            aim((HELD_MIN..=HELD_MAX).contains(&held))
        ),
    )?;
    line(
        out,
        "",
        &format!(
            "width {:.2} of the likely wait in the middle, {:.2} for the widest tenth; {} wider than twice",
            e.width_median.unwrap_or(0.0),
            e.width_p90.unwrap_or(0.0),
            percent(e.wider_than_twice.unwrap_or(0.0))
        ),
    )?;
    line(
        out,
        "",
        &format!(
            "{} without an answer ({}; at most 5 % is the aim)",
            percent(unknown),
            aim(unknown <= UNKNOWN_MAX)
        ),
    )
}
