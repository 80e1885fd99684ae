//! What every command does to a ticket in every status: a table without a hole.
//!
//! Each cell is run on a room of its own and compared with `TABLE` below, and the same table is in
//! `docs/lifecycle.md` (`UPDATE_DOCS=1` writes it there). Complete by construction: columns come
//! from `Status::ALL`, every variant of `Command` names its rows in `rows_of`, and a cell that is
//! missing or too many fails. See it with
//! `cargo test -p waitroom-core --test promises lifecycle -- --nocapture`.

use crate::script::World;
use std::collections::{BTreeMap, BTreeSet};
use waitroom_core::{Command, EndHow, Hold, Status};

/// A ticket that was never given, one in each status, and one that was forgotten.
fn columns() -> Vec<String> {
    let statuses = Status::ALL.iter().map(|status| format!("{status:?}").to_lowercase());
    let all = ["none".into()].into_iter().chain(statuses).chain(["forgotten".into()]);
    all.collect()
}

/// What happens, by row and column.
type Cells = BTreeMap<(String, String), String>;

/// A row: its name, what comes before, and the command it is about. `+` is time from then on.
struct Row {
    name: &'static str,
    before: &'static [&'static str],
    command: &'static str,
}

const fn row(name: &'static str, command: &'static str) -> Row {
    Row { name, before: &[], command }
}

const ROWS: &[Row] = &[
    row("join by identity", "+0s join x id=ann"),
    row("join by key", "+0s join x key=k"),
    row("join holding it", "+0s join x holding=ana"),
    row("admit by hand", "+0s admit 1"),
    Row { name: "tick: its turn", before: &["+0s set rate=1000/1s"], command: "+1s tick" },
    Row {
        name: "tick: its turn, claimed on admission",
        before: &["+0s set rate=1000/1s claim=on_admission"],
        command: "+1s tick",
    },
    row("tick: claim_by has come", "+60s tick"),
    row("tick: the session is over", "+100s tick"),
    row("tick: the pass is dead", "+105s tick"),
    row("tick: older than ticket_life", "+200s tick"),
    row("claim", "+0s claim ana"),
    row("claim: claim_by has come", "+60s claim ana"),
    row("renew", "+50s renew ana"),
    row("renew: the session is over", "+100s renew ana"),
    row("leave", "+0s leave ana"),
    row("end: completed", "+0s complete ana"),
    row("end: checkout failed", "+0s checkout_fails ana"),
    row("end: checkout expired", "+0s checkout_expires ana"),
    row("end: revoked", "+0s revoke ana"),
    row("lapse", "+0s lapse ana"),
    row("release", "+0s release ana"),
    row("hand over", "+0s hand_over ana to=x"),
    Row {
        name: "claim with an old token",
        before: &["+0s hand_over ana to=x"],
        command: "+0s claim ana",
    },
    row("move to another lane", "+0s move ana lane=2 to=x"),
    row("move to its own lane", "+0s move ana lane=0 to=x"),
    row("pause", "+0s pause jam"),
    row("maintenance", "+0s maintenance till"),
    row("drain", "+0s drain enough"),
    Row {
        name: "claim during maintenance for all",
        before: &["+0s set keep_inside=no", "+0s maintenance till"],
        command: "+0s claim ana",
    },
    Row { name: "resume", before: &["+0s pause jam"], command: "+0s resume" },
    row("finish", "+0s sold_out gone"),
    Row { name: "reopen", before: &["+0s sold_out gone"], command: "+0s reopen" },
    row("configure", "+0s set max_active=9"),
    row("open: a new epoch", "+0s open 2"),
];

/// The rows that a command is tested in. A new command does not compile until it is here.
fn rows_of(command: &Command) -> &'static [&'static str] {
    match command {
        Command::Open { .. } => &["open: a new epoch"],
        // To a ticket, a change of the pace is a change of settings.
        Command::Configure { .. } | Command::Pace { .. } => &["configure"],
        Command::Join(join) if join.identity.is_some() => &["join by identity"],
        Command::Join(join) if join.key.is_some() => &["join by key"],
        Command::Join(_) => &["join holding it"],
        Command::Claim(_) => &[
            "claim",
            "claim: claim_by has come",
            "claim with an old token",
            "claim during maintenance for all",
        ],
        Command::Leave(_) => &["leave"],
        Command::Renew(_) => &["renew", "renew: the session is over"],
        Command::End { how: EndHow::Completed, .. } => &["end: completed"],
        Command::End { how: EndHow::CheckoutFailed, .. } => &["end: checkout failed"],
        Command::End { how: EndHow::CheckoutExpired, .. } => &["end: checkout expired"],
        Command::End { how: EndHow::Revoked, .. } => &["end: revoked"],
        Command::Lapse { .. } => &["lapse"],
        Command::Release { .. } => &["release"],
        Command::HandOver(_) => &["hand over"],
        Command::Move { .. } => &["move to another lane", "move to its own lane"],
        Command::Hold { hold: Hold::Paused { .. }, .. } => &["pause"],
        Command::Hold { hold: Hold::Maintenance { .. }, .. } => &["maintenance"],
        Command::Hold { hold: Hold::Draining { .. }, .. } => &["drain"],
        Command::Resume { .. } => &["resume"],
        Command::AdmitNow { .. } => &["admit by hand"],
        Command::Finish { .. } => &["finish"],
        Command::Reopen { .. } => &["reopen"],
        // They change the order of all and the status of none; see `draw_room.rs`.
        Command::CommitDraw { .. } | Command::Draw { .. } => &[],
        Command::Tick { .. } => &[
            "tick: its turn",
            "tick: its turn, claimed on admission",
            "tick: claim_by has come",
            "tick: the session is over",
            "tick: the pass is dead",
            "tick: older than ticket_life",
        ],
    }
}

/// A room at `10s` in which `ana` has this status, and the moment at which the command comes.
fn in_status(column: &str) -> (World, u64) {
    let mut world = World::room(
        "rate=none lanes=1:1:1 claim_within=60s session_timeout=100s ticket_life=200s \
         pass_leeway=5s heartbeat_timeout=60s memory=600s",
    );
    let path: &[&str] = match column {
        "none" => &[],
        "waiting" => &["join"],
        "admitted" => &["join", "admit 1"],
        "active" => &["join", "admit 1", "claim ana"],
        "completed" => &["join", "admit 1", "claim ana", "complete ana"],
        "expired" => &["join", "admit 1", "claim ana", "checkout_expires ana"],
        "left" => &["join", "leave ana"],
        "moved" => &["join", "move ana lane=1 to=new"],
        // Reopened, so that the column tells of the ticket and not of the room.
        "closed" => &["join", "finish over", "reopen"],
        "revoked" => &["join", "admit 1", "claim ana", "revoke ana"],
        "forgotten" => &["join", "leave ana"],
        other => panic!("a status has come: say how a ticket gets there: {other}"),
    };
    for step in path {
        let step = if *step == "join" { "join ana id=ann key=k" } else { step };
        let said = world.line(&format!("10s {step}"));
        assert!(!said.starts_with("refused"), "{column}: {said}");
    }
    if column == "none" {
        world.name_nobodys("ana", "0:0@1");
    }
    (world, if column == "forgotten" { 610 } else { 10 })
}

/// What the command does: its events or its answer without times, and the status it leads to.
fn cell(row: &Row, column: &str) -> (String, Option<(Status, Status)>) {
    let (mut world, from) = in_status(column);
    let run = |world: &mut World, line: &str| {
        let (after, command) = line.split_once(' ').expect("a time and a command");
        let after: u64 = after[1..after.len() - 1].parse().expect("+10s");
        world.line(&format!("{}s {command}", from + after))
    };
    for line in row.before {
        run(&mut world, line);
    }
    let subject = world.ticket(if column == "moved" { "new" } else { "ana" });
    let status = |world: &World| world.witness.lives.get(&subject).map(|life| life.status);
    let before = status(&world);
    let said = run(&mut world, row.command);
    let asked = world.asked.as_ref().expect("a command was asked");
    assert!(rows_of(asked).contains(&row.name), "{}: asks {asked:?}", row.name);
    for name in rows_of(asked) {
        assert!(ROWS.iter().any(|row| row.name == *name), "{name}: a row without a test");
    }
    let change = before.zip(status(&world)).filter(|(before, after)| before != after);
    let mut said = without_times(&said).replace(" ana", "");
    if let Some((_, after)) = change {
        said.push_str(&format!(" ⇒ {}", format!("{after:?}").to_lowercase()));
    }
    (said, change)
}

fn without_times(said: &str) -> String {
    let times = ["claim_by=", "until=", "held=", "pass=", "opens_at="];
    let kept = said.split(' ').map(|word| {
        if times.iter().any(|time| word.starts_with(time)) {
            if word.ends_with(',') { "," } else { "" }
        } else {
            word
        }
    });
    let words: Vec<&str> = kept.filter(|word| !word.is_empty()).collect();
    words.join(" ").replace(" ,", ",")
}

fn table() -> (Cells, BTreeSet<(Status, Status)>) {
    let mut cells = BTreeMap::new();
    let mut changes = BTreeSet::new();
    for row in ROWS {
        for column in columns() {
            let (said, change) = cell(row, &column);
            changes.extend(change);
            cells.insert((row.name.into(), column), said);
        }
    }
    (cells, changes)
}

fn expected() -> Cells {
    let mut cells = BTreeMap::new();
    let mut row = "";
    for line in TABLE.lines().filter(|line| !line.trim().is_empty()) {
        match line.split_once('|') {
            None => row = line.trim(),
            Some((columns, said)) => {
                for column in columns.split_whitespace() {
                    let before = cells.insert((row.into(), column.into()), said.trim().into());
                    assert!(before.is_none(), "{row}, {column}: said twice");
                }
            }
        }
    }
    cells
}

/// The table as `TABLE` is written: columns with the same cell stand together.
fn as_data(cells: &Cells) -> String {
    let mut text = String::new();
    for row in ROWS {
        text.push_str(&format!("{}\n", row.name));
        let mut said: Vec<(&String, Vec<String>)> = Vec::new();
        for column in columns() {
            let cell = &cells[&(row.name.to_owned(), column.clone())];
            match said.iter_mut().find(|(other, _)| *other == cell) {
                Some((_, columns)) => columns.push(column),
                None => said.push((cell, vec![column])),
            }
        }
        for (cell, columns) in said {
            text.push_str(&format!("    {} | {cell}\n", columns.join(" ")));
        }
    }
    text
}

fn as_markdown(cells: &Cells) -> String {
    let columns = columns();
    let mut text = format!("| command | {} |\n", columns.join(" | "));
    text.push_str(&format!("|---|{}\n", "---|".repeat(columns.len())));
    for row in ROWS {
        let cell = |column: &String| cells[&(row.name.to_owned(), column.clone())].clone();
        let said: Vec<String> = columns.iter().map(cell).collect();
        text.push_str(&format!("| **{}** | {} |\n", row.name, said.join(" | ")));
    }
    text
}

#[test]
fn every_command_does_in_every_status_what_the_table_says() {
    let (actual, _) = table();
    assert_eq!(actual.len(), ROWS.len() * (Status::ALL.len() + 2));
    println!("{}", as_markdown(&actual));
    let expected = expected();
    let mut differences = String::new();
    for key in actual.keys().chain(expected.keys()).collect::<BTreeSet<_>>() {
        let (is, should) = (actual.get(key), expected.get(key));
        if is != should {
            differences.push_str(&format!("{key:?}\n  table  {should:?}\n  actual {is:?}\n"));
        }
    }
    let copy = as_data(&actual);
    assert!(differences.is_empty(), "{differences}\nto copy, if that is right:\n{copy}");
}

#[test]
fn every_row_belongs_to_a_command_and_has_its_own_name() {
    let names: BTreeSet<&str> = ROWS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), ROWS.len());
}

#[test]
fn a_ticket_changes_its_status_only_as_the_design_says() {
    use Status::*;
    let allowed = BTreeSet::from([
        (Waiting, Admitted),
        (Waiting, Active),
        (Waiting, Expired),
        (Waiting, Left),
        (Waiting, Moved),
        (Waiting, Closed),
        (Waiting, Revoked),
        (Admitted, Active),
        (Admitted, Completed),
        (Admitted, Expired),
        (Admitted, Revoked),
        (Active, Completed),
        (Active, Expired),
        (Active, Revoked),
    ]);
    assert_eq!(table().1, allowed);
}

#[test]
fn the_table_in_the_docs_is_this_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lifecycle.md");
    let (begin, end) = ("<!-- begin of the table -->\n", "<!-- end of the table -->");
    let table = as_markdown(&table().0);
    let text = std::fs::read_to_string(path).expect("docs/lifecycle.md is there");
    let (head, rest) = text.split_once(begin).expect("the table's beginning is marked");
    let (found, tail) = rest.split_once(end).expect("the table's end is marked");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{head}{begin}{table}{end}{tail}")).expect("it is ours");
    } else {
        assert_eq!(found, table, "docs/lifecycle.md is old: run the tests with UPDATE_DOCS=1");
    }
}

const TABLE: &str = "
join by identity
    none completed expired left closed revoked forgotten | joined x
    waiting admitted active | repeat
    moved | repeat new
join by key
    none forgotten | joined x
    waiting admitted active completed expired left closed revoked | repeat
    moved | repeat new
join holding it
    none completed expired left closed revoked forgotten | joined x
    waiting admitted active | repeat
    moved | repeat new
admit by hand
    none admitted active completed expired left closed revoked forgotten | admitted_now asked=1 granted=0
    waiting | admitted_now asked=1 granted=1, admitted manual ⇒ admitted
    moved | admitted_now asked=1 granted=1, admitted new manual ⇒ admitted
tick: its turn
    none admitted active completed expired left closed revoked forgotten | nothing
    waiting | admitted ⇒ admitted
    moved | admitted new ⇒ admitted
tick: its turn, claimed on admission
    none admitted active completed expired left closed revoked forgotten | nothing
    waiting | admitted ⇒ active
    moved | admitted new ⇒ active
tick: claim_by has come
    none waiting active completed expired left moved closed revoked forgotten | nothing
    admitted | no_show ⇒ expired
tick: the session is over
    none waiting completed expired left moved closed revoked forgotten | nothing
    admitted | no_show ⇒ expired
    active | session_over ⇒ expired
tick: the pass is dead
    none waiting left moved closed forgotten | nothing
    admitted | no_show ⇒ expired
    active | session_over ⇒ expired
    completed expired revoked | released
tick: older than ticket_life
    none left closed forgotten | nothing
    waiting | too_old ⇒ expired
    admitted | no_show ⇒ expired
    active | session_over ⇒ expired
    completed expired revoked | released
    moved | too_old new ⇒ expired
claim
    none | refused place_lost
    waiting moved | refused wrong_status status=waiting
    admitted | claimed ⇒ active
    active | repeat
    completed | refused wrong_status status=completed
    expired | refused wrong_status status=expired
    left | refused wrong_status status=left
    closed | refused wrong_status status=closed
    revoked | refused wrong_status status=revoked
    forgotten | refused forgotten
claim: claim_by has come
    none | refused place_lost
    waiting moved | refused wrong_status status=waiting
    admitted | refused claim_too_late
    active | repeat
    completed | refused wrong_status status=completed
    expired | refused wrong_status status=expired
    left | refused wrong_status status=left
    closed | refused wrong_status status=closed
    revoked | refused wrong_status status=revoked
    forgotten | refused forgotten
renew
    none | refused place_lost
    waiting moved | refused wrong_status status=waiting
    admitted | refused wrong_status status=admitted
    active | renewed
    completed | refused wrong_status status=completed
    expired | refused wrong_status status=expired
    left | refused wrong_status status=left
    closed | refused wrong_status status=closed
    revoked | refused wrong_status status=revoked
    forgotten | refused forgotten
renew: the session is over
    none | refused place_lost
    waiting moved | refused wrong_status status=waiting
    admitted | refused wrong_status status=admitted
    active expired | refused wrong_status status=expired
    completed | refused wrong_status status=completed
    left | refused wrong_status status=left
    closed | refused wrong_status status=closed
    revoked | refused wrong_status status=revoked
    forgotten | refused forgotten
leave
    none | refused place_lost
    waiting | left ⇒ left
    admitted active | completed ⇒ completed
    completed | over completed
    expired | over expired
    left | over left
    moved | left new ⇒ left
    closed | over closed
    revoked | over revoked
    forgotten | refused forgotten
end: completed
    none | refused place_lost
    waiting moved | refused wrong_status status=waiting
    admitted active | completed ⇒ completed
    completed | over completed
    expired | over expired
    left | over left
    closed | over closed
    revoked | over revoked
    forgotten | refused forgotten
end: checkout failed
    none | refused place_lost
    waiting moved | refused wrong_status status=waiting
    admitted | refused wrong_status status=admitted
    active | checkout_failed ⇒ expired
    completed | over completed
    expired | over expired
    left | over left
    closed | over closed
    revoked | over revoked
    forgotten | refused forgotten
end: checkout expired
    none | refused place_lost
    waiting moved | refused wrong_status status=waiting
    admitted | refused wrong_status status=admitted
    active | checkout_expired ⇒ expired
    completed | over completed
    expired | over expired
    left | over left
    closed | over closed
    revoked | over revoked
    forgotten | refused forgotten
end: revoked
    none | refused place_lost
    waiting admitted active | revoked ⇒ revoked
    completed | over completed
    expired | over expired
    left | over left
    moved | revoked new ⇒ revoked
    closed | over closed
    revoked | over revoked
    forgotten | refused forgotten
lapse
    none admitted active completed expired left moved closed revoked forgotten | nothing
    waiting | silent ⇒ expired
release
    none waiting admitted active left moved closed forgotten | nothing
    completed expired revoked | released
hand over
    none | refused place_lost
    waiting admitted active | handed_over holder=1
    completed | refused wrong_status status=completed
    expired | refused wrong_status status=expired
    left | refused wrong_status status=left
    moved | handed_over new holder=1
    closed | refused wrong_status status=closed
    revoked | refused wrong_status status=revoked
    forgotten | refused forgotten
claim with an old token
    none | refused place_lost
    waiting admitted active moved | refused moved_elsewhere
    completed | refused wrong_status status=completed
    expired | refused wrong_status status=expired
    left | refused wrong_status status=left
    closed | refused wrong_status status=closed
    revoked | refused wrong_status status=revoked
    forgotten | refused forgotten
move to another lane
    none | refused place_lost
    waiting | moved to=x lane=2 ⇒ moved
    admitted | refused wrong_status status=admitted
    active | refused wrong_status status=active
    completed | refused wrong_status status=completed
    expired | refused wrong_status status=expired
    left | refused wrong_status status=left
    moved | moved new to=x lane=2 ⇒ moved
    closed | refused wrong_status status=closed
    revoked | refused wrong_status status=revoked
    forgotten | refused forgotten
move to its own lane
    none | refused place_lost
    waiting | stays
    admitted | refused wrong_status status=admitted
    active | refused wrong_status status=active
    completed | refused wrong_status status=completed
    expired | refused wrong_status status=expired
    left | refused wrong_status status=left
    moved | moved new to=x ⇒ moved
    closed | refused wrong_status status=closed
    revoked | refused wrong_status status=revoked
    forgotten | refused forgotten
pause
    none waiting admitted active completed expired left moved closed revoked forgotten | paused jam
maintenance
    none waiting admitted active completed expired left moved closed revoked forgotten | maintenance till
drain
    none waiting admitted active completed expired left moved closed revoked forgotten | draining enough
claim during maintenance for all
    none | refused place_lost
    waiting moved | refused wrong_status status=waiting
    admitted | refused maintenance till
    active | repeat
    completed | refused wrong_status status=completed
    expired | refused wrong_status status=expired
    left | refused wrong_status status=left
    closed | refused wrong_status status=closed
    revoked | refused wrong_status status=revoked
    forgotten | refused forgotten
resume
    none waiting admitted active completed expired left moved closed revoked forgotten | resumed
finish
    none admitted active completed expired left closed revoked forgotten | sale_ended sold_out closed=0
    waiting moved | sale_ended sold_out closed=1 ⇒ closed
reopen
    none waiting admitted active completed expired left moved closed revoked forgotten | reopened
configure
    none waiting admitted active completed expired left moved closed revoked forgotten | configured
open: a new epoch
    none waiting admitted active completed expired left moved closed revoked forgotten | opened epoch=2
";
