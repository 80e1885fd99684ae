//! `waitroom repair`: goes on without what is damaged, because a person decided so.
//!
//! The store names the place when it refuses to open. Any other place is refused here: a cut
//! loses what was acknowledged behind it, and a slip of the finger must not.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::place::Place;

/// Ends the journal before a damaged place. What is cut is moved to `damaged/` in the data folder.
///
/// Everything acknowledged behind the cut is lost, for all rooms. Restore a backup if there is a
/// good one, and keep a copy of the data folder either way.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom repair --data data --cut data/journal/00000000000000000002.seg 51230")]
pub struct Repair {
    #[command(flatten)]
    data: Data,
    /// The place, as the refusal to open names it.
    #[arg(long, num_args = 2, value_names = ["FILE", "OFFSET"], required = true)]
    cut: Vec<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

impl Repair {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let asked = self.place()?;
        if !self.data.dir.join("journal").is_dir() {
            // It says what is wrong with the folder.
            self.data.open()?;
        }
        let found = self.data.damage()?;
        if !found.as_ref().is_some_and(|found| found.is_same(&asked)) {
            return Err(nothing_there(&self.data.dir, &asked, found.as_ref()));
        }
        let cut = waitroom_store::file::cut(&self.data.dir, asked.segment, asked.offset);
        let report = cut.map_err(|why| {
            let said = format!("data folder {}: the cut failed: {why}", self.data.dir.display());
            Failure::new(Exit::Io, said)
                .coded("WR-2013")
                .means("no room opens; what was moved is in damaged/, nothing was deleted")
                .advise("free space or mend the disk, then cut again at the place that is told")
        })?;
        let json = json!({
            "cut": { "file": asked.file, "offset": asked.offset },
            "moved": report.moved, "rooms": report.opened.rooms,
            "batches": report.opened.batches,
        });
        out.tell(format!("cut at {asked}\n{report}"), &json)?;
        Ok(Exit::Fine)
    }

    fn place(&self) -> Result<Place, Failure> {
        let [file, offset] = &self.cut[..] else { unreachable!("clap takes exactly two values") };
        let parsed = offset.to_str().and_then(|text| text.parse().ok());
        parsed.and_then(|offset| Place::parse(file, offset)).ok_or_else(|| {
            let said = format!("--cut {} {}: no place in a journal", file.display(), offset.display());
            Failure::new(Exit::Usage, said).advise(
                "give a segment and a byte, for example data/journal/00000000000000000002.seg 51230",
            )
        })
    }
}

fn nothing_there(data: &Path, asked: &Place, found: Option<&Place>) -> Failure {
    let said = format!("data folder {}: no damage begins at {asked}", data.display());
    let advice = match found {
        Some(place) => format!("cut where the damage is: --cut {place}"),
        None => "start the server, which tells what is wrong, if anything is".into(),
    };
    Failure::new(Exit::Usage, said).coded("WR-2012").means("nothing was cut").advise(advice)
}
