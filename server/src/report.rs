//! `waitroom report`: how a sale went, as a page, as JSON or in a few lines.
//!
//! Lives here: where the figures come from, and the lines. The figures are worked out in
//! `outbox::sale`, the page is in `report/page.rs`.

mod page;

use std::path::PathBuf;

use clap::Args;
use waitroom_core::codec;
use waitroom_outbox::mirror::{Access, Place};
use waitroom_outbox::postgres;
use waitroom_outbox::sale::{Counting, Sale};
use waitroom_sim::rehearsal::human::{duration, number, percent};
use waitroom_store::{RoomName, Store};

use crate::data::{Data, Room, each_batch, failed, must_be_new, now, untrusted};
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Tells how a sale went: waits, conversion, drop-off, no-shows, pace and fairness.
///
/// From the log in a data folder that no server is using (or a restored backup of it), or from the
/// tables that a running server keeps in PostgreSQL ([events.postgres]).
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom report spring-sale --data data --html spring-sale.html\n  \
    waitroom report spring-sale --from postgres://waitroom@db/waitroom --json")]
pub struct Report {
    /// The room.
    #[arg(value_parser = RoomName::parse)]
    room: RoomName,
    /// The data folder; no server may be running on it.
    #[arg(long, value_name = "DIR", required_unless_present = "from", conflicts_with = "from")]
    data: Option<PathBuf>,
    /// The database: postgres://…
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// A file with the password of the database.
    #[arg(long, value_name = "FILE", requires = "from")]
    secret_file: Option<PathBuf>,
    /// Writes a page that needs nothing else; the file must not exist.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

impl Report {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let html = self.html.as_deref().map(|path| must_be_new("report", path)).transpose()?;
        let sale = match (&self.data, &self.from) {
            (Some(dir), _) => self.of_log(Data { dir: dir.clone() })?,
            (None, Some(from)) => self.of_tables(from)?,
            (None, None) => unreachable!("the command line asks for one of them"),
        };
        if let Some(path) = html {
            std::fs::write(&path, page::page(&sale)).map_err(|error| {
                Failure::new(Exit::Io, format!("cannot write {}: {error}", path.display()))
            })?;
        }
        let figures = serde_json::to_value(&sale).expect("figures are plain");
        out.tell(lines(&sale).join("\n"), &figures)?;
        Ok(Exit::Fine)
    }

    fn of_log(&self, data: Data) -> Result<Sale, Failure> {
        let store = data.open()?;
        let asked = Room { name: self.room.clone() };
        let room = asked.find(&data, &store)?;
        let begins = now(store.trimmed_to(room)).map_err(|error| failed("read the log", &error))?;
        let mut counting = Counting::after(begins.0);
        each_batch(&store, room, |batch| {
            let mut index = batch.after.0;
            let read = codec::decode(&batch.payload, |event| {
                index += 1;
                if index > begins.0 {
                    counting.take(&event);
                }
            });
            let bad = |why: &str| {
                untrusted(format!("room \"{room}\": after event {}: {why}", batch.after))
            };
            read.map_err(|damaged| bad(damaged.0))
        })?;
        Ok(counting.finish(room.as_str()))
    }

    fn of_tables(&self, from: &str) -> Result<Sale, Failure> {
        let place =
            Place::parse(from, Access { secret: self.secret_file.clone(), ..Access::default() });
        let Ok(Place::Postgres(link)) = place else {
            let said = "reports come from a data folder or from PostgreSQL; write postgres://…";
            return Err(Failure::new(Exit::Usage, said).means("nothing was read"));
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Failure::new(Exit::Io, format!("no thread to run on: {error}")))?;
        let sale = runtime.block_on(postgres::sale::read(&link, &self.room));
        let sale = sale.map_err(|trouble| {
            Failure::new(Exit::Unavailable, trouble.why)
                .means("nothing was read")
                .advise("look at the address, and whether the server has [events.postgres]")
        })?;
        sale.ok_or_else(|| {
            let said = format!("room \"{}\": the tables know nothing of it", self.room);
            Failure::new(Exit::NotThere, said)
                .coded("WR-2006")
                .means("nothing was changed")
                .advise("look at the name, and at `rooms` of [events.postgres]")
        })
    }
}

fn share(of: u64, all: u64) -> String {
    if all == 0 { "–".into() } else { percent(of as f64 / all as f64) }
}

fn lines(sale: &Sale) -> Vec<String> {
    let mut lines = vec![format!("room {}: up to event {}", sale.room, number(sale.head))];
    let mut put = |name: &str, said: String| lines.push(format!("  {name:<11} {said}"));
    put("joined", number(sale.joined));
    let admitted = share(sale.admitted, sale.joined);
    put("let in", format!("{} ({admitted} of those who came)", number(sale.admitted)));
    let completed = share(sale.completed, sale.admitted);
    put("completed", format!("{} ({completed} of those let in)", number(sale.completed)));
    let missed = share(sale.no_shows, sale.admitted);
    put("no-shows", format!("{} ({missed})", number(sale.no_shows)));
    for it in &sale.waits {
        let [half, most, longest] = [it.p50_ms, it.p90_ms, it.longest_ms].map(duration);
        let said = format!("lane {}: half up to {half}, nine of ten up to {most}", it.lane);
        put("waited", format!("{said}, the longest {longest}"));
    }
    for it in &sale.drop_off {
        put("went away", format!("{} while {}: {}", number(it.tickets), it.stage, it.ending));
    }
    for it in &sale.fairness {
        if let Some(correlation) = it.rank_correlation {
            put("fairness", format!("lane {}: {correlation:.4} (1 is as they came)", it.lane));
        }
    }
    if sale.gap_to > 0 {
        put("note", format!("events up to {} were no longer kept", number(sale.gap_to)));
    }
    lines
}
