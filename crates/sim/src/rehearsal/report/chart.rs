//! Charts as inline SVG, tables, and the style sheet of both; also for reports of real sales.
//! Lives here: scales, axes, lines, bands, bars. Stays out: what is shown.
//! Colours are classes of the style sheet, so that charts follow light and dark by themselves.

use std::fmt::Write as _;

/// For pages that hold charts and tables; light and dark.
pub const STYLE: &str = include_str!("style.css");

/// The drawing area in its own units; the page scales it to the width at hand.
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 34.0;

/// A line.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// A filled stretch between two lines.
#[derive(Debug)]
pub struct Band {
    pub name: &'static str,
    pub low: Vec<(f64, f64)>,
    pub high: Vec<(f64, f64)>,
}

impl Band {
    /// Everything below a line.
    pub fn under(name: &'static str, high: Vec<(f64, f64)>) -> Self {
        let low = high.iter().map(|&(x, _)| (x, 0.0)).collect();
        Band { name, low, high }
    }
}

/// A dashed line across, such as a limit.
#[derive(Debug)]
pub struct Mark {
    pub name: &'static str,
    pub at: f64,
}

/// Values over time, in seconds since the doors opened.
#[derive(Debug)]
pub struct Chart {
    pub title: &'static str,
    pub says: &'static str,
    pub end_s: f64,
    pub value: fn(f64) -> String,
    pub bands: Vec<Band>,
    pub rows: Vec<Row>,
    pub marks: Vec<Mark>,
}

impl Chart {
    /// Writes the figure; `table` holds the same numbers for those who cannot see it.
    pub fn write(&self, out: &mut String, table: &str) -> std::fmt::Result {
        let top = nice_top(self.greatest());
        let end = self.end_s.max(1.0);
        let x = |t: f64| LEFT + (t / end).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT);
        let y = |v: f64| HEIGHT - BOTTOM - (v / top).clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM);
        let (title, says) = (escape(self.title), escape(self.says));
        write!(
            out,
            "<figure>\n<figcaption><h2>{title}</h2><p>{says}</p></figcaption>\n\
             <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}. {says} The \
             numbers are in the table below.\">\n"
        )?;
        for i in 0..=4 {
            let v = top * f64::from(i) / 4.0;
            let label = escape(&(self.value)(v));
            writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
                 <text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                WIDTH - RIGHT,
                y(v),
                y(v),
                LEFT - 8.0,
                y(v) + 4.0
            )?;
        }
        for t in time_ticks(end) {
            writeln!(
                out,
                "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                x(t),
                HEIGHT - 10.0,
                time_label(t, end)
            )?;
        }
        for band in &self.bands {
            let mut d = String::new();
            trace(&mut d, "M", band.high.iter().map(|&(t, v)| (x(t), y(v))))?;
            trace(&mut d, "L", band.low.iter().rev().map(|&(t, v)| (x(t), y(v))))?;
            if !d.is_empty() {
                writeln!(
                    out,
                    "<path class=\"band\" d=\"{d}Z\"><title>{}</title></path>",
                    band.name
                )?;
            }
            let mut edge = String::new();
            trace(&mut edge, "M", band.high.iter().map(|&(t, v)| (x(t), y(v))))?;
            writeln!(out, "<path class=\"edge\" d=\"{edge}\"/>")?;
        }
        for row in &self.rows {
            let mut d = String::new();
            trace(&mut d, "M", row.points.iter().map(|&(t, v)| (x(t), y(v))))?;
            writeln!(out, "<path class=\"line\" d=\"{d}\"><title>{}</title></path>", row.name)?;
        }
        for mark in &self.marks {
            let at = y(mark.at);
            writeln!(
                out,
                "<line class=\"mark\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"markname\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{} {}</text>",
                WIDTH - RIGHT,
                WIDTH - RIGHT,
                // Above the line, unless that is outside the drawing.
                if at < TOP + 14.0 { at + 16.0 } else { at - 6.0 },
                mark.name,
                escape(&(self.value)(mark.at))
            )?;
        }
        write!(
            out,
            "</svg>\n<details><summary>{title} as a table</summary>\n{table}</details>\n</figure>\n"
        )
    }

    fn greatest(&self) -> f64 {
        let rows = self.rows.iter().flat_map(|row| &row.points);
        let bands = self.bands.iter().flat_map(|band| &band.high);
        let drawn = rows.chain(bands).map(|&(_, v)| v);
        let marks = self.marks.iter().map(|mark| mark.at);
        drawn.chain(marks).fold(0.0, f64::max)
    }
}

/// Shares as horizontal bars, with the stretch they should end in.
pub fn bars(
    out: &mut String,
    title: &str,
    rows: &[(&str, f64)],
    aim: (f64, f64),
) -> std::fmt::Result {
    const NAME: f64 = 130.0;
    const STEP: f64 = 34.0;
    let height = rows.len() as f64 * STEP + 40.0;
    let x = |share: f64| NAME + share.clamp(0.0, 1.0) * (WIDTH - NAME - 70.0);
    let title = escape(title);
    writeln!(
        out,
        "<svg class=\"bars\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}. \
         The numbers are in the table below.\">\n\
         <rect class=\"aim\" x=\"{:.1}\" y=\"4\" width=\"{:.1}\" height=\"{:.1}\"/>\n\
         <text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">aim {:.0} to {:.0} %</text>",
        x(aim.0),
        x(aim.1) - x(aim.0),
        height - 34.0,
        (x(aim.0) + x(aim.1)) / 2.0,
        height - 12.0,
        aim.0 * 100.0,
        aim.1 * 100.0
    )?;
    for (i, &(name, share)) in rows.iter().enumerate() {
        let y = i as f64 * STEP + 8.0;
        writeln!(
            out,
            "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect class=\"bar\" x=\"{NAME}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"22\" rx=\"3\"/>\
             <text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{:.1} %</text>",
            NAME - 10.0,
            y + 16.0,
            escape(name),
            (x(share) - NAME).max(1.0),
            x(share).max(x(aim.1)) + 8.0,
            y + 16.0,
            share * 100.0
        )?;
    }
    out.push_str("</svg>\n");
    Ok(())
}

fn trace(
    d: &mut String,
    first: &str,
    points: impl Iterator<Item = (f64, f64)>,
) -> std::fmt::Result {
    for (i, (x, y)) in points.enumerate() {
        write!(d, "{}{x:.1} {y:.1}", if i == 0 { first } else { "L" })?;
    }
    Ok(())
}

/// The least round number that has room for `greatest`.
fn nice_top(greatest: f64) -> f64 {
    if greatest <= 0.0 || !greatest.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(greatest.log10().floor());
    // Each of these divides by four into numbers one can read.
    [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|&top| top >= greatest * 1.001)
        .unwrap_or(power * 12.0)
}

fn time_ticks(end_s: f64) -> impl Iterator<Item = f64> {
    const STEPS: [f64; 14] = [
        10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0,
        21_600.0, 43_200.0, 86_400.0,
    ];
    let step = STEPS.into_iter().find(|step| end_s / step <= 5.5).unwrap_or(172_800.0);
    (0..).map(move |i| f64::from(i) * step).take_while(move |&t| t <= end_s)
}

fn time_label(t: f64, end_s: f64) -> String {
    let s = t as u64;
    if end_s < 120.0 {
        format!("{s} s")
    } else if end_s < 7_200.0 {
        format!("{} min", s / 60)
    } else if s.is_multiple_of(3_600) {
        format!("{} h", s / 3_600)
    } else {
        format!("{}:{:02} h", s / 3_600, s % 3_600 / 60)
    }
}

/// A table that scrolls by itself where it is too wide.
pub fn html_table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut out = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
    for head in heads {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(head));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (i, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            let _ = if i == 0 {
                write!(out, "<th scope=\"row\">{cell}</th>")
            } else {
                write!(out, "<td>{cell}</td>")
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    out
}

/// Text as HTML shows it. Lane names come from outside.
pub fn escape(text: &str) -> String {
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
