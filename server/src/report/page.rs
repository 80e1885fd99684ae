//! A sale as one HTML file that needs nothing else; it looks as a rehearsal's does.

use std::fmt::Write as _;

use waitroom_core::when::utc;
use waitroom_outbox::sale::{Minute, Sale};
use waitroom_sim::rehearsal::chart::{Band, Chart, Row, STYLE, escape, html_table};
use waitroom_sim::rehearsal::human::{duration, number, short};

use super::share;

/// Rows of a chart's table: as many as one still reads.
const TABLE_ROWS: usize = 30;

pub fn page(sale: &Sale) -> String {
    let mut page = String::with_capacity(64 << 10);
    write_page(&mut page, sale).expect("a string takes everything written to it");
    page
}

fn write_page(out: &mut String, sale: &Sale) -> std::fmt::Result {
    let name = if sale.title.is_empty() { &sale.room } else { &sale.title };
    let name = escape(name);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Sale: {name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    )?;
    write_head(out, sale, &name)?;
    write_figures(out, sale)?;
    out.push_str("<section class=\"charts\" aria-label=\"Charts\">\n");
    write_charts(out, sale)?;
    out.push_str("</section>\n");
    write_tables(out, sale)?;
    out.push_str("</main>\n</body>\n</html>\n");
    Ok(())
}

fn write_head(out: &mut String, sale: &Sale, name: &str) -> std::fmt::Result {
    let (first, last) = (sale.minutes.first(), sale.minutes.last());
    let when = match (first, last) {
        (Some(first), Some(last)) => {
            format!("From {} to {} (UTC).", shown(first.at_ms), shown(last.at_ms))
        }
        _ => "Nobody came.".into(),
    };
    let gap = match sale.gap_to {
        0 => String::new(),
        to => format!(" Events up to {} were no longer kept.", number(to)),
    };
    writeln!(
        out,
        "<header>\n<p class=\"eyebrow\">waitroom report</p>\n<h1>{name}</h1>\n\
         <p class=\"lead\">{} people came, <b>{}</b> were let in, <b>{}</b> came through. {when}{gap}\
         </p>\n</header>",
        number(sale.joined),
        number(sale.admitted),
        number(sale.completed),
    )
}

/// `2026-05-01 10:00`.
fn shown(at_ms: u64) -> String {
    utc(at_ms).replace('T', " ").chars().take(16).collect()
}

fn write_figures(out: &mut String, sale: &Sale) -> std::fmt::Result {
    let everyone = |of: fn(&waitroom_outbox::sale::Waits) -> u64| {
        // Lane 0 is everybody's; others have their rows in the table below.
        sale.waits.first().map_or("–".into(), |it| duration(of(it)))
    };
    let over = sale
        .minutes
        .iter()
        .filter(|it| it.limit_per_minute.is_some_and(|limit| it.paced as f64 > limit.ceil()));
    let fairness = sale.fairness.first().and_then(|it| it.rank_correlation);
    let figures = [
        ("let in", share(sale.admitted, sale.joined), "of those who came"),
        ("came through", share(sale.completed, sale.admitted), "of those let in"),
        ("no-shows", share(sale.no_shows, sale.admitted), "of those let in"),
        ("half waited up to", everyone(|it| it.p50_ms), ""),
        ("nine of ten up to", everyone(|it| it.p90_ms), ""),
        ("longest wait", everyone(|it| it.longest_ms), ""),
        ("minutes above the pace", number(over.count() as u64), "a burst may be"),
        (
            "fairness",
            fairness.map_or("–".into(), |it| format!("{it:.4}")),
            "1 = first come, first served",
        ),
    ];
    out.push_str("<dl class=\"figures\">\n");
    for (name, value, note) in figures {
        writeln!(out, "<div><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>")?;
    }
    out.push_str("</dl>\n");
    Ok(())
}

fn write_charts(out: &mut String, sale: &Sale) -> std::fmt::Result {
    let minutes = &every_minute(&sale.minutes);
    let begin = minutes.first().map_or(0, |it| it.at_ms);
    let points = |of: &dyn Fn(&Minute) -> Option<f64>| -> Vec<(f64, f64)> {
        let at = |it: &Minute| (it.at_ms - begin) as f64 / 1_000.0;
        minutes.iter().filter_map(|it| Some((at(it), of(it)?))).collect()
    };
    let end_s = minutes.last().map_or(1.0, |it| (it.at_ms - begin) as f64 / 1_000.0).max(60.0);
    let chart = |title, says, value, bands, rows| Chart {
        title,
        says,
        end_s,
        value,
        bands,
        rows,
        marks: vec![],
    };
    chart(
        "Coming",
        "How many joined in each minute.",
        short as fn(f64) -> String,
        vec![Band::under("joined", points(&|it| Some(it.joined as f64)))],
        vec![],
    )
    .write(out, &table(minutes, &["joined"], |it| vec![number(it.joined)]))?;
    chart(
        "Entering",
        "Filled: admissions of each minute at the pace. The line: the pace that was set. By hand is \
         outside the pace, and in the table.",
        short,
        vec![Band::under("paced", points(&|it| Some(it.paced as f64)))],
        vec![Row { name: "limit", points: points(&|it| it.limit_per_minute) }],
    )
    .write(
        out,
        &table(minutes, &["paced", "by hand", "limit"], |it| {
            let limit = it.limit_per_minute.map_or("–".into(), |it| format!("{it:.0}"));
            vec![number(it.paced), number(it.by_hand), limit]
        }),
    )?;
    let waited = |ms: Option<u64>| ms.map(|ms| ms as f64 / 60_000.0);
    chart(
        "Waits of those who enter",
        "Minutes waited by people let in at that time: half of them up to the line, nine of ten up \
         to the top of the band.",
        |minutes| format!("{} min", short(minutes)),
        vec![Band {
            name: "p50 to p90",
            low: points(&|it| waited(it.p50_ms)),
            high: points(&|it| waited(it.p90_ms)),
        }],
        vec![Row { name: "half up to", points: points(&|it| waited(it.p50_ms)) }],
    )
    .write(
        out,
        &table(minutes, &["p50", "p90"], |it| {
            [it.p50_ms, it.p90_ms].map(|ms| ms.map_or("–".into(), duration)).to_vec()
        }),
    )
}

/// A week. Of a room that was open for longer the charts join what there is.
const MINUTES_MAX: u64 = 7 * 24 * 60;

/// Also those in which nothing happened: a line through them would say that something did.
fn every_minute(known: &[Minute]) -> Vec<Minute> {
    let (Some(first), Some(last)) = (known.first(), known.last()) else { return vec![] };
    if (last.at_ms - first.at_ms) / 60_000 > MINUTES_MAX {
        return known.to_vec();
    }
    let mut known = known.iter().peekable();
    let minute = |at_ms| match known.next_if(|it| it.at_ms == at_ms) {
        Some(known) => known.clone(),
        None => Minute { at_ms, ..Minute::default() },
    };
    (first.at_ms..=last.at_ms).step_by(60_000).map(minute).collect()
}

/// The rows of a chart's table: the minutes, thinned out.
fn table(minutes: &[Minute], heads: &[&str], cells: impl Fn(&Minute) -> Vec<String>) -> String {
    let step = minutes.len().div_ceil(TABLE_ROWS).max(1);
    let rows = minutes.iter().step_by(step).map(|it| {
        let mut row = vec![shown(it.at_ms)];
        row.extend(cells(it));
        row
    });
    let heads: Vec<&str> = ["minute"].into_iter().chain(heads.iter().copied()).collect();
    html_table(&heads, rows)
}

fn write_tables(out: &mut String, sale: &Sale) -> std::fmt::Result {
    let rows = sale.waits.iter().map(|it| {
        let mut row = vec![format!("lane {}", it.lane), number(it.admitted)];
        row.extend([it.p50_ms, it.p90_ms, it.p95_ms, it.p99_ms, it.longest_ms].map(duration));
        row
    });
    let heads = ["waited", "let in", "p50", "p90", "p95", "p99", "longest"];
    write!(out, "<section>\n<h2>Waits</h2>\n{}</section>\n", html_table(&heads, rows))?;
    let rows = [
        ("came", sale.joined, String::new()),
        ("were let in", sale.admitted, share(sale.admitted, sale.joined)),
        ("began a session", sale.started, share(sale.started, sale.joined)),
        ("came through", sale.completed, share(sale.completed, sale.joined)),
    ];
    let rows = rows.into_iter().map(|(name, n, of)| vec![name.to_owned(), number(n), of]);
    let table = html_table(&["how far", "people", "of those who came"], rows);
    write!(out, "<section>\n<h2>From door to door</h2>\n{table}</section>\n")?;
    let rows = sale.drop_off.iter().map(|it| {
        let of = share(it.tickets, sale.joined);
        vec![it.stage.clone(), it.ending.replace('_', " "), number(it.tickets), of]
    });
    let table = html_table(&["from where", "why", "people", "of those who came"], rows);
    write!(out, "<section>\n<h2>Who went away</h2>\n{table}</section>\n")?;
    let rows = sale.fairness.iter().map(|it| {
        let correlation = it.rank_correlation.map_or("–".into(), |it| format!("{it:.6}"));
        vec![format!("lane {}", it.lane), number(it.admitted), correlation]
    });
    let table = html_table(&["fairness", "let in", "rank correlation"], rows);
    write!(
        out,
        "<section>\n<h2>Were they let in as they came?</h2>\n{table}<p class=\"muted\">Spearman's \
         rank correlation of joining and admission: 1 is first come, first served; about 0 is what \
         a draw aims at.</p>\n</section>\n"
    )
}
