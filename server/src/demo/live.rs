//! The live view: a small panel that is drawn again where there is a terminal, a line a second
//! where there is none. On stderr: stdout is for the report.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::Duration;

use waitroom_crowd::report::number;

/// One look at everything.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    pub at: Duration,
    pub arrived: u64,
    pub visitors: u64,
    pub waiting: u64,
    pub inside: u64,
    pub capacity: u64,
    /// Admissions a minute.
    pub pace: Option<u64>,
    pub ceiling: u64,
    pub sold: u64,
    pub held: u64,
    pub seats: u64,
    pub bots_refused: u64,
    pub shop_is_slow: bool,
    pub room: String,
}

#[derive(Debug)]
pub struct View {
    panel: bool,
    drawn: usize,
    /// Things that happened, with their moment.
    notes: Vec<(Duration, String)>,
}

/// As many as one can read at a glance.
const NOTES_SHOWN: usize = 6;
const BAR: usize = 30;

impl View {
    pub fn new(quiet: bool) -> Option<View> {
        (!quiet).then(|| View {
            panel: std::io::stderr().is_terminal(),
            drawn: 0,
            notes: Vec::new(),
        })
    }

    /// Something happened that is worth a line.
    pub fn note(&mut self, at: Duration, said: String) {
        if !self.panel {
            eprintln!("{:>4} s  * {said}", at.as_secs());
        }
        self.notes.push((at, said));
    }

    pub fn show(&mut self, glance: &Glance) {
        if self.panel {
            let text = self.panel(glance);
            let up =
                if self.drawn > 0 { format!("\x1b[{}A\x1b[J", self.drawn) } else { String::new() };
            self.drawn = text.lines().count();
            let mut err = std::io::stderr().lock();
            // A terminal that is gone is no reason to end the sale.
            let _ = write!(err, "{up}{text}");
            let _ = err.flush();
        } else {
            eprintln!("{}", line(glance));
        }
    }

    fn panel(&self, glance: &Glance) -> String {
        let mut text = String::from("\n");
        let _ = writeln!(
            text,
            "  {:>4} s   {} of {} have come   room {}",
            glance.at.as_secs(),
            number(glance.arrived),
            number(glance.visitors),
            glance.room
        );
        let mut row = |name: &str, value: u64, most: u64, said: String| {
            let _ = writeln!(text, "  {name:<8} {}  {said}", bar(value, most));
        };
        row("waiting", glance.waiting, glance.visitors, number(glance.waiting));
        let inside = format!("{} of {}", number(glance.inside), number(glance.capacity));
        row("inside", glance.inside, glance.capacity, inside);
        row("pace", glance.pace.unwrap_or(0), glance.ceiling, pace(glance));
        let sold = format!(
            "{} of {} seats, {} in baskets",
            number(glance.sold),
            number(glance.seats),
            number(glance.held)
        );
        row("sold", glance.sold, glance.seats, sold);
        let _ = writeln!(text, "  bots     {} attempts refused", number(glance.bots_refused));
        let first = self.notes.len().saturating_sub(NOTES_SHOWN);
        for (at, said) in &self.notes[first..] {
            let _ = writeln!(text, "  {:>4} s   {said}", at.as_secs());
        }
        text
    }
}

fn line(glance: &Glance) -> String {
    format!(
        "{:>4} s  {} waiting, {} of {} inside, {}; {} of {} seats sold, {} in baskets; {} bots refused",
        glance.at.as_secs(),
        number(glance.waiting),
        number(glance.inside),
        number(glance.capacity),
        pace(glance),
        number(glance.sold),
        number(glance.seats),
        number(glance.held),
        number(glance.bots_refused)
    )
}

fn pace(glance: &Glance) -> String {
    let slow = if glance.shop_is_slow { " (the shop is slow)" } else { "" };
    match glance.pace {
        Some(pace) => format!("{} let in a minute{slow}", number(pace)),
        None => format!("pace unknown{slow}"),
    }
}

fn bar(value: u64, most: u64) -> String {
    let share = (value * BAR as u64).checked_div(most).unwrap_or(0);
    let filled = share.min(BAR as u64) as usize;
    let filled = if value > 0 { filled.max(1) } else { filled };
    format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_something_when_there_is_something_and_never_too_much() {
        assert_eq!(bar(0, 100), "░".repeat(BAR));
        assert_eq!(bar(1, 1_000).chars().filter(|it| *it == '█').count(), 1);
        assert_eq!(bar(500, 100), "█".repeat(BAR));
        assert_eq!(bar(3, 0).chars().count(), BAR);
    }

    #[test]
    fn a_panel_has_the_figures_and_the_last_notes() {
        let mut view = View { panel: true, drawn: 0, notes: Vec::new() };
        for second in 0..9 {
            view.notes.push((Duration::from_secs(second), format!("note {second}")));
        }
        let glance =
            Glance { sold: 12, seats: 240, pace: Some(600), ceiling: 600, ..Glance::default() };
        let text = view.panel(&glance);
        assert!(text.contains("12 of 240 seats") && text.contains("600 let in a minute"), "{text}");
        assert!(text.contains("note 8") && !text.contains("note 2\n"), "{text}");
    }
}
