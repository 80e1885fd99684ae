//! Plain tables for the terminal: columns as wide as their widest cell.

/// Which side of its column a cell leans to. Numbers lean right, so that digits line up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lean {
    Left,
    Right,
}

/// One line per row, two blanks between columns, no trailing blanks.
pub fn render(leans: &[Lean], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..leans.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(leans.iter().zip(&widths))
            .map(|(cell, (lean, &width))| match lean {
                Lean::Left => format!("{cell:<width$}"),
                Lean::Right => format!("{cell:>width$}"),
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_line_up_on_the_right_and_words_on_the_left() {
        let rows = [vec!["fmt".into(), "1.0".into()], vec!["clippy".into(), "12.5".into()]];
        assert_eq!(render(&[Lean::Left, Lean::Right], &rows), "fmt      1.0\nclippy  12.5\n");
    }
}
