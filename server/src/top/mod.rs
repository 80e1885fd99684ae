//! `waitroom top`: a running server, live in the terminal.
//!
//! Lives here: the command, and its two forms: a screen for people, one picture for scripts.
//! `source.rs` asks the server, `scrape.rs` reads its figures, `picture.rs` makes of two looks what
//! is worth showing, `draw.rs` shows it, `keys.rs` knows what a key means. Nothing here decides:
//! pause and resume are the same calls as `waitroom pause` and `resume`.

mod draw;
mod keys;
mod picture;
mod plain;
mod scrape;
mod screen;
mod source;

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use waitroom_sim::rehearsal::human::parse_duration;

use crate::client::To;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use picture::Picture;
use source::Source;

/// Shows a running server live: rooms, who waits and enters, the pace, the disk, and what is wrong.
#[derive(Debug, Args)]
#[command(
    after_help = "Keys: up and down choose a room, p pauses it (visitors read the reason that you \
                  type), r resumes it, q ends.\nColours are left out when NO_COLOR is set.\n\n\
                  Example:\n  waitroom top\n  waitroom top --once\n  waitroom top --once --json | jq .rooms"
)]
pub struct Top {
    /// Prints one picture and ends: for scripts, and where there is no terminal. Two looks, one
    /// `--every` apart, because a pace needs two.
    #[arg(long)]
    once: bool,
    /// Time between two looks.
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = every)]
    every: Duration,
    #[command(flatten)]
    pub to: To,
}

/// Faster than this shows nothing more: boards are published five times a second.
const EVERY_MIN: Duration = Duration::from_millis(200);
const EVERY_MAX: Duration = Duration::from_secs(60);

fn every(text: &str) -> Result<Duration, String> {
    let span = Duration::from_millis(parse_duration(text)?);
    if (EVERY_MIN..=EVERY_MAX).contains(&span) {
        return Ok(span);
    }
    Err("between 200ms and 1m".to_owned())
}

impl Top {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let source = Source::new(self.to.client()?);
        if self.once || out.json {
            let first = source.look()?;
            std::thread::sleep(self.every);
            let picture = Picture::between(&first, &source.look()?);
            out.tell(plain::text(&picture).trim_end(), &plain::json(&picture))?;
            return Ok(Exit::Fine);
        }
        if !std::io::stdout().is_terminal() {
            return Err(Failure::new(Exit::Usage, "there is no terminal to show it on")
                .advise("give --once for one picture, with --json for a script"));
        }
        // The first look before the screen is taken, so that a wrong key is told as ever.
        let first = source.look()?;
        screen::show(source, first, self.every)
    }
}
