//! Lines over time, as an SVG, with the same numbers as a table for those who cannot see it.

use std::fmt::Write as _;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 32.0;

/// Rows of the table: as many as one still reads.
const TABLE_ROWS: usize = 24;

pub(super) struct Chart<'a> {
    pub title: &'a str,
    pub says: &'a str,
    /// One or two lines; the first is filled if it is alone.
    pub lines: &'a [(&'a str, &'a dyn Fn(usize) -> u64)],
    pub seconds: &'a [u64],
    pub value: fn(u64) -> String,
}

impl Chart<'_> {
    pub fn write(&self, out: &mut String) -> std::fmt::Result {
        let Chart { title, says, .. } = self;
        let count = self.seconds.len();
        let all = self.lines.iter().flat_map(|(_, at)| (0..count).map(at));
        let top = round_up(all.max().unwrap_or(1).max(1));
        let end = self.seconds.last().copied().unwrap_or(1).max(1) as f64;
        let x = |second: u64| LEFT + second as f64 / end * (WIDTH - LEFT - RIGHT);
        let y = |value: u64| HEIGHT - BOTTOM - value as f64 / top as f64 * (HEIGHT - TOP - BOTTOM);
        write!(
            out,
            "<figure>\n<figcaption><h2>{title}</h2><p>{says}</p></figcaption>\n\
             <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}. {says} The \
             numbers are in the table below.\">\n"
        )?;
        for quarter in 0..=4 {
            let value = top * quarter / 4;
            writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
                 <text class=\"axis\" x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                y(value),
                y(value),
                LEFT - 8.0,
                y(value) + 4.0,
                (self.value)(value)
            )?;
        }
        for quarter in 0..=4u64 {
            let second = (end * quarter as f64 / 4.0) as u64;
            let anchor = if quarter == 4 { "end" } else { "middle" };
            writeln!(
                out,
                "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{second} s\
                 </text>",
                x(second),
                HEIGHT - 10.0
            )?;
        }
        for (n, (name, at)) in self.lines.iter().enumerate() {
            let mut path = String::new();
            for (i, second) in self.seconds.iter().enumerate() {
                let word = if i == 0 { 'M' } else { 'L' };
                write!(path, "{word}{:.1} {:.1}", x(*second), y(at(i)))?;
            }
            if self.lines.len() == 1 && count > 1 {
                let (from, to) = (x(self.seconds[0]), x(self.seconds[count - 1]));
                let base = y(0);
                writeln!(
                    out,
                    "<path class=\"band\" d=\"{path}L{to:.1} {base:.1}L{from:.1} {base:.1}Z\"/>"
                )?;
            }
            let class = if n == 0 { "line" } else { "line second" };
            writeln!(out, "<path class=\"{class}\" d=\"{path}\"><title>{name}</title></path>")?;
        }
        out.push_str("</svg>\n");
        if self.lines.len() > 1 {
            out.push_str("<ul class=\"legend\">");
            for (n, (name, _)) in self.lines.iter().enumerate() {
                let class = if n == 0 { "line" } else { "line second" };
                write!(
                    out,
                    "<li><svg viewBox=\"0 0 26 8\" aria-hidden=\"true\"><path class=\"{class}\" \
                     d=\"M0 4L26 4\"/></svg>{name}</li>"
                )?;
            }
            out.push_str("</ul>\n");
        }
        self.table(out)?;
        out.push_str("</figure>\n");
        Ok(())
    }

    fn table(&self, out: &mut String) -> std::fmt::Result {
        write!(
            out,
            "<details><summary>{} as a table</summary><div class=\"scroll\"><table>\n\
             <thead><tr><th scope=\"col\">second</th>",
            self.title
        )?;
        for (name, _) in self.lines {
            write!(out, "<th scope=\"col\">{name}</th>")?;
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        let step = self.seconds.len().div_ceil(TABLE_ROWS).max(1);
        for (i, second) in self.seconds.iter().enumerate().step_by(step) {
            write!(out, "<tr><th scope=\"row\">{second}</th>")?;
            for (_, at) in self.lines {
                write!(out, "<td>{}</td>", (self.value)(at(i)))?;
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div></details>\n");
        Ok(())
    }
}

/// The least round number that has room and whose quarters are whole.
fn round_up(most: u64) -> u64 {
    let mut power = 1u64;
    loop {
        for step in [4, 6, 8, 12, 16, 20, 28] {
            if power == 1 && step == 6 {
                continue;
            }
            if let Some(top) = power.checked_mul(step).filter(|top| *top >= most) {
                return top;
            }
        }
        match power.checked_mul(10) {
            Some(next) => power = next,
            None => return most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_ends_at_a_number_that_divides_by_four() {
        for (most, top) in [(1, 4), (4, 4), (5, 8), (21, 28), (29, 40), (402, 600), (999, 1_200)] {
            assert_eq!(round_up(most), top, "{most}");
        }
        assert!(round_up(u64::MAX) >= u64::MAX / 2);
    }
}
