//! `waitroom page preview`: every page of a room as a file, for a look before the sale.
//!
//! Lives here: files in, files out. What a page shows is in `crates/pages`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use waitroom_pages::{By, Mistake, STATES, Schedule, Template, Theme, Waiting, preview};

use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Shows what visitors will see.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom page preview --to preview --title \"Spring sale\"")]
pub struct Page {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Preview(Preview),
}

/// Writes every state of the waiting page into a folder, with invented people.
///
/// The pages stand still: they ask no server. A theme or a template with mistakes is told, all
/// of them at once, and nothing is written.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom page preview --to preview --title \"Spring sale\" --language de\n  \
    waitroom page preview --to preview --theme theme.json --template page.mustache")]
struct Preview {
    /// The folder; made if there is none.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// What the room is called.
    #[arg(long, default_value = "Spring sale")]
    title: String,
    /// Languages in the order of liking, as browsers say them: "de", "pt-BR,es".
    #[arg(long, default_value = "en")]
    language: String,
    /// Colours, logo and texts of the room, as JSON.
    #[arg(long, value_name = "FILE")]
    theme: Option<PathBuf>,
    /// What stands around the page.
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// Says what was written as one line of JSON.
    #[arg(long)]
    json: bool,
}

impl Page {
    pub fn json(&self) -> bool {
        let What::Preview(it) = &self.what;
        it.json
    }

    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let What::Preview(it) = self.what;
        it.run(out)
    }
}

impl Preview {
    fn run(&self, out: &mut Out) -> Result<Exit, Failure> {
        let theme = self.theme.as_deref().map(|file| read(file, Theme::read)).transpose()?;
        let template = self.template.as_deref().map(|file| read(file, Template::read));
        let template = template.transpose()?;
        let now_ms = std::time::UNIX_EPOCH.elapsed().map_or(0, |it| it.as_millis() as u64);
        let shown = Waiting {
            room: "preview",
            title: &self.title,
            base: "",
            accept_language: &self.language,
            answer: None,
            back_to: None,
            refresh_s: 0,
            message: None,
            schedule: Schedule { now_ms: Some(now_ms), ..Schedule::default() },
            privacy_url: Some("privacy.html"),
            theme: theme.as_ref(),
            template: template.as_ref(),
            notices: &[By::Push, By::Email, By::Sms],
        };
        fs::create_dir_all(&self.to).map_err(|error| unwritable(&self.to, &error))?;
        for state in STATES {
            let page = preview(state, &shown).expect("every state of the list can be shown");
            let file = self.to.join(format!("{state}.html"));
            fs::write(&file, page.html).map_err(|error| unwritable(&file, &error))?;
        }
        let folder = self.to.display().to_string();
        let text = format!("{} pages in {folder}: {}", STATES.len(), STATES.join(", "));
        out.tell(text, &json!({ "folder": folder, "states": STATES }))?;
        Ok(Exit::Fine)
    }
}

fn read<T>(file: &Path, read: impl Fn(&str) -> Result<T, Vec<Mistake>>) -> Result<T, Failure> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|error| {
        Failure::new(Exit::NotThere, format!("{shown} cannot be read: {error}"))
            .means("nothing was written")
    })?;
    read(&text).map_err(|mistakes| {
        let told: Vec<String> =
            mistakes.iter().map(|it| format!("  {}: {}", it.place, it.problem)).collect();
        let said = format!("{shown}: {} problems\n{}", mistakes.len(), told.join("\n"));
        Failure::new(Exit::Usage, said).means("nothing was written")
    })
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Io, format!("{} cannot be written: {error}", path.display()))
}
