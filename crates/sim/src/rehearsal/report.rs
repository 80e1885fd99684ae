//! The outcome as one HTML file that needs nothing else: no scripts, no fonts, no network.
//!
//! Lives here: the order of the page and its words. Charts are drawn in `chart`.
//! Stays out: computing; every figure is taken from the outcome as it is.
//! The page follows the reader's light or dark setting, fits a phone, and gives every chart's
//! numbers as a table too.

pub mod chart;

use std::fmt::Write as _;

use self::chart::{Band, Chart, Mark, Row, STYLE, bars, html_table};
use super::human::{duration, number, percent, short};
use super::outcome::{Moment, Outcome, Waits};
use super::summary::{HELD_MAX, HELD_MIN, UNKNOWN_MAX};

/// Rows of a chart's table: as many as one still reads.
const TABLE_ROWS: usize = 24;

/// The whole page.
pub fn report(outcome: &Outcome) -> String {
    let mut page = String::with_capacity(128 * 1024);
    write_page(&mut page, outcome).expect("a string takes everything written to it");
    page
}

fn write_page(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let title = format!("{} visitors, {}", short(o.plan.visitors as f64), o.plan.shape);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Rehearsal: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    )?;
    write_head(out, o)?;
    write_figures(out, o)?;
    out.push_str("<section class=\"charts\" aria-label=\"Charts\">\n");
    write_charts(out, o)?;
    out.push_str("</section>\n");
    write_waits(out, o)?;
    write_estimates(out, o)?;
    write_plan(out, o)?;
    out.push_str("</main>\n</body>\n</html>\n");
    Ok(())
}

fn write_head(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let c = &o.counts;
    let gone = (c.left + c.lapsed) as f64 / c.joined.max(1) as f64;
    writeln!(
        out,
        "<header>\n<p class=\"eyebrow\">waitroom rehearsal</p>\n<h1>{} people, {}</h1>\n\
         <p class=\"lead\">Half of those who enter wait less than <b>{}</b>, one in ten longer than \
         <b>{}</b>. The line is empty after <b>{}</b>. {} of all tickets give up.</p>\n</header>",
        short(o.plan.visitors as f64),
        match o.plan.shape.as_str() {
            "spike" => "all at once",
            "late" => "in a late rush",
            "steady" => "in a steady stream",
            _ => "as the file says",
        },
        duration(o.waits.p50_ms),
        duration(o.waits.p90_ms),
        duration(o.drained_ms),
        percent(gone),
    )
}

fn write_figures(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let e = &o.estimates;
    let held_well = e.held.is_none_or(|held| (HELD_MIN..=HELD_MAX).contains(&held));
    let known_well = e.unknown.is_none_or(|unknown| unknown <= UNKNOWN_MAX);
    let within = o.admissions.limit_per_s.is_none_or(|limit| o.admissions.busiest_second <= limit);
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".into());
    let figures = [
        ("longest wait", duration(o.waits.max_ms), String::new(), true),
        ("at most waiting", short(o.admissions.peak_waiting as f64), String::new(), true),
        (
            "busiest second",
            number(o.admissions.busiest_second),
            o.admissions.limit_per_s.map_or(String::new(), |r| format!("limit {}", number(r))),
            within,
        ),
        (
            "at most inside",
            short(o.admissions.peak_active as f64),
            format!("of {}", short(o.plan.capacity as f64)),
            o.admissions.peak_active <= o.plan.capacity,
        ),
        (
            "fairness",
            or_dash(o.fairness.map(|f| format!("{f:.4}"))),
            "1 = first come, first served".into(),
            true,
        ),
        ("estimates that held", or_dash(e.held.map(percent)), "aim 75 to 85 %".into(), held_well),
        (
            "without an estimate",
            or_dash(e.unknown.map(percent)),
            "aim at most 5 %".into(),
            known_well,
        ),
        (
            "no-shows",
            percent(o.counts.no_shows as f64 / o.counts.admitted.max(1) as f64),
            "of the admitted".into(),
            true,
        ),
    ];
    out.push_str("<dl class=\"figures\">\n");
    for (name, value, note, good) in figures {
        let class = if good { "" } else { " class=\"bad\"" };
        let warn = if good { "" } else { " <span class=\"warn\">outside the aim</span>" };
        writeln!(
            out,
            "<div{class}><dt>{name}</dt><dd>{value}<small>{note}{warn}</small></dd></div>"
        )?;
    }
    out.push_str("</dl>\n");
    Ok(())
}

fn write_charts(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let moments = &o.moments;
    let points = |f: &dyn Fn(&Moment) -> Option<f64>| -> Vec<(f64, f64)> {
        moments.iter().filter_map(|m| Some((m.at_s as f64, f(m)?))).collect()
    };
    let end_s = moments.last().map_or(1.0, |m| m.at_s as f64);

    Chart {
        title: "Waiting",
        says: "How many people are in line, over time.",
        end_s,
        value: short,
        bands: vec![Band::under("waiting", points(&|m| Some(m.waiting as f64)))],
        rows: vec![],
        marks: vec![],
    }
    .write(
        out,
        &table(moments, &["waiting", "joined/s", "left/s"], |m| {
            vec![
                number(m.waiting),
                number(m.joined_per_s.round() as u64),
                number(m.departed_per_s.round() as u64),
            ]
        }),
    )?;

    let mut marks = Vec::new();
    if let Some(limit) = o.admissions.limit_per_s {
        marks.push(Mark { name: "limit", at: limit as f64 });
    }
    Chart {
        title: "Entering",
        says: "Admissions per second against the limit.",
        end_s,
        value: short,
        bands: vec![],
        rows: vec![Row { name: "admitted/s", points: points(&|m| Some(m.admitted_per_s)) }],
        marks,
    }
    .write(
        out,
        &table(moments, &["admitted/s", "busiest second"], |m| {
            vec![format!("{:.1}", m.admitted_per_s), number(u64::from(m.admitted_in_busiest_s))]
        }),
    )?;

    let full = o.admissions.peak_active as f64 > 0.3 * o.plan.capacity as f64;
    Chart {
        title: "Inside",
        says: "How many hold a slot, over time.",
        end_s,
        value: short,
        bands: vec![Band::under("inside", points(&|m| Some(m.active as f64)))],
        rows: vec![],
        // A capacity far above what is used would only flatten the chart.
        marks: if full {
            vec![Mark { name: "capacity", at: o.plan.capacity as f64 }]
        } else {
            vec![]
        },
    }
    .write(out, &table(moments, &["inside"], |m| vec![number(m.active)]))?;

    let minutes = |ms: Option<u64>| ms.map(|ms| ms as f64 / 60_000.0);
    Chart {
        title: "Waits of those who enter",
        says: "Minutes waited by people entering at that time: the middle, and the band of eight in ten.",
        end_s,
        value: |minutes| format!("{} min", short(minutes)),
        bands: vec![Band {
            name: "p10 to p90",
            low: points(&|m| minutes(m.wait_p10_ms)),
            high: points(&|m| minutes(m.wait_p90_ms)),
        }],
        rows: vec![Row { name: "half wait less", points: points(&|m| minutes(m.wait_p50_ms)) }],
        marks: vec![],
    }
    .write(out, &table(moments, &["p10", "p50", "p90"], |m| {
        [m.wait_p10_ms, m.wait_p50_ms, m.wait_p90_ms]
            .map(|ms| ms.map_or("–".into(), duration))
            .to_vec()
    }))
}

/// The rows of a chart's table: the moments, thinned out.
fn table(moments: &[Moment], heads: &[&str], cells: impl Fn(&Moment) -> Vec<String>) -> String {
    let step = moments.len().div_ceil(TABLE_ROWS).max(1);
    let rows = moments.iter().step_by(step).map(|m| {
        let mut row = vec![duration(m.at_s * 1_000)];
        row.extend(cells(m));
        row
    });
    let mut all = vec!["at"];
    all.extend(heads);
    html_table(&all, rows)
}

fn write_waits(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let cells = |name: &str, w: &Waits| {
        let mut row = vec![name.to_string(), number(w.people)];
        row.extend([w.p10_ms, w.p50_ms, w.p90_ms, w.p99_ms, w.max_ms].map(duration));
        row
    };
    let mut rows = vec![cells("everyone", &o.waits)];
    if o.lanes.len() > 1 {
        for lane in &o.lanes {
            let name = format!("{} (weight {})", lane.name, lane.weight);
            rows.push(cells(&name, &lane.waits));
        }
    }
    let heads = ["waited", "people", "p10", "p50", "p90", "p99", "longest"];
    write!(out, "<section>\n<h2>Waits</h2>\n{}</section>\n", html_table(&heads, rows.into_iter()))
}

fn write_estimates(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let e = &o.estimates;
    out.push_str("<section>\n<h2>How honest the estimates are</h2>\n");
    let (Some(held), Some(below), Some(above)) = (e.held, e.below, e.above) else {
        out.push_str(
            "<p>Nobody waited long enough after the first minute to be asked.</p>\n</section>\n",
        );
        return Ok(());
    };
    writeln!(
        out,
        "<p>{} visitors who stayed were asked once, at a random moment of their wait. The interval \
         they were shown, meant to hold four times out of five, held for <b>{}</b>; {} entered \
         sooner than it said, {} later. In the middle it was {:.2} times as wide as the likely \
         wait.</p>",
        number(e.asked),
        percent(held),
        percent(below),
        percent(above),
        e.width_median.unwrap_or(0.0)
    )?;
    let rows: Vec<(&str, f64)> = e.by_wait.iter().map(|c| (c.likely.as_str(), c.held)).collect();
    bars(out, "Intervals that held, by likely wait", &rows, (HELD_MIN, HELD_MAX))?;
    let heads = ["likely wait", "asked", "held", "sooner", "later", "real ÷ likely, p10 to p90"];
    let table = html_table(
        &heads,
        e.by_wait.iter().map(|c| {
            vec![
                c.likely.clone(),
                number(c.asked),
                percent(c.held),
                percent(c.below),
                percent(c.above),
                format!("{:.3} to {:.3}", c.real_over_likely[0], c.real_over_likely[2]),
            ]
        }),
    );
    writeln!(out, "{table}</section>")
}

fn write_plan(out: &mut String, o: &Outcome) -> std::fmt::Result {
    let p = &o.plan;
    let rows = [
        ("visitors", number(p.visitors)),
        ("arriving", format!("{} over {}", p.shape, duration(p.over_ms))),
        ("rate", p.rate_per_s.map_or("none".into(), |r| format!("{} per second", number(r)))),
        ("capacity", number(p.capacity)),
        ("tick", duration(p.tick_ms)),
        ("patience", p.patience.clone()),
        ("no-shows", percent(p.no_show)),
        ("coming back", percent(p.come_back)),
        ("session, in the middle", duration(p.session_ms)),
        ("seed", p.seed.to_string()),
        ("tickets", number(o.counts.joined)),
        ("completed", number(o.counts.completed)),
        ("left", number(o.counts.left)),
        ("fell silent", number(o.counts.lapsed)),
        ("came back", number(o.counts.came_back)),
    ];
    let table = html_table(
        &["what", "how much"],
        rows.into_iter().map(|(name, value)| vec![name.to_string(), value]),
    );
    write!(
        out,
        "<section>\n<h2>The plan, and where everybody ended up</h2>\n{table}\
         <p class=\"muted\">Rehearsed in {}, {} visitors a second. The same plan and seed give the \
         same report.</p>\n</section>\n",
        duration(o.speed.took_ms),
        number(o.speed.visitors_per_s as u64)
    )
}
