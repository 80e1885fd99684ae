//! A whole sale in the real core; pages work their positions out from its public boards with the
//! page's own script, in Node, and are held against what the core says.
//!
//! Half of those who come draw lots; the others come while it runs. People give up all the time,
//! and once nine of ten of a whole region go at one moment.

use std::fmt::Write as _;
use std::io::Write;
use std::process::{Command as Process, Stdio};

use serde_json::{Value, json};
use waitroom_core::{
    Actor, Board, Command, Epoch, Join, Millis, Reply, Room, Settings, Status, Ticket, Timestamp,
    draw,
};

const PEOPLE: u64 = 200_000;
const DRAWN: u64 = 100_000;
/// So many of them have a page that is watched.
const PAGES: u64 = 500;

struct Sale {
    room: Room,
    now: Timestamp,
    head: u64,
    joined: u64,
}

impl Sale {
    fn ask(&mut self, command: &Command) -> Reply {
        let mut events = Vec::new();
        let reply = self.room.decide(self.now, command, &mut events);
        assert!(!matches!(reply, Reply::Refused(_)), "{command:?}: {reply:?}");
        events.iter().for_each(|event| self.room.absorb(event));
        self.head += events.len() as u64;
        reply
    }

    fn join(&mut self, count: u64) {
        for _ in 0..count {
            self.ask(&Command::Join(Join::default()));
        }
        self.joined += count;
    }

    fn waits(&self, number: u64) -> bool {
        self.room.state().position(Ticket::new(0, number)).is_some_and(|it| it > 0)
    }

    fn leave(&mut self, numbers: impl Iterator<Item = u64>) {
        let gone: Vec<Ticket> =
            numbers.filter(|&it| self.waits(it)).map(|it| Ticket::new(0, it)).collect();
        for some in gone.chunks(2_000) {
            self.ask(&Command::Lapse { tickets: some.to_vec() });
        }
    }

    /// The moment as Node reads it: the board, and each page's answer as the server would give it.
    fn moment(&self, lines: &mut String) {
        let board = Board::new(self.room.state().clone(), self.head, self.now);
        let public = board.public().expect("the board is public");
        let state = self.room.state();
        let answer = |page: u64| -> Option<Value> {
            let number = page * PEOPLE / PAGES;
            let ticket = Ticket::new(0, number);
            let presented = state.named(ticket).filter(|_| number < self.joined)?;
            let view = board.look(self.now, &presented).ok()?;
            let place = view.order.map(|order| json!({"lane": 0, "order": order.0}));
            Some(json!({
                "ticket": number, "version": self.head, "status": if view.status == Status::Waiting { "waiting" } else { "gone" },
                "place": place, "position": view.position,
            }))
        };
        let answers: Vec<Option<Value>> = (0..PAGES).map(answer).collect();
        let line = json!({"board": public, "answers": answers});
        writeln!(lines, "{line}").expect("a string takes everything");
    }
}

/// A number that looks random and is the same in every run.
fn noise(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33
}

#[test]
fn a_page_reads_its_position_off_the_board_over_a_whole_sale() {
    let start = Timestamp(1_800_000_000_000);
    let mut sale = Sale { room: Room::new(), now: start, head: 0, joined: 0 };
    sale.ask(&Command::Open { epoch: Epoch(1) });
    let settings = Settings {
        queue_all: true,
        rate: None,
        max_active: 1_000_000,
        heartbeat_timeout: Millis(3_600_000_000),
        starts_at: Some(start.after(Millis(60_000))),
        draw: Some(waitroom_core::settings::DrawSettings { beacon: None }),
        ..Settings::default()
    };
    let by = Actor::new("operator");
    sale.ask(&Command::Configure { settings: Box::new(settings), by: by.clone() });
    let commitment = draw::commitment(&[7; 32]);
    sale.ask(&Command::CommitDraw { commitment, sealed_seed: vec![], beacon: None });
    let mut lines = String::new();
    sale.join(DRAWN);
    sale.moment(&mut lines);
    sale.now = start.after(Millis(60_000));
    while sale.ask(&Command::Tick { entropy: [1; 16] }) != (Reply::Ticked { again: false }) {}
    sale.moment(&mut lines);
    let (seed, chain, by_draw) = ([7; 32], [9; 32], by.clone());
    sale.ask(&Command::Draw { seed, chain, beacon: None, waive_beacon: false, by: by_draw });
    sale.moment(&mut lines);
    let mut step = 0u64;
    while sale.joined < PEOPLE || sale.room.state().waiting() > 0 {
        step += 1;
        sale.now = sale.now.after(Millis(1_000));
        let coming = (PEOPLE - sale.joined).min(1_100);
        // A board between two joins: old for some, new for others.
        sale.join(coming / 2);
        sale.moment(&mut lines);
        sale.join(coming - coming / 2);
        let quits = (0..sale.joined).filter(|&it| noise(it ^ step << 32).is_multiple_of(700));
        sale.leave(quits.collect::<Vec<_>>().into_iter());
        if step == 60 {
            sale.leave((110_000..140_000u64).filter(|it| !it.is_multiple_of(10)));
        }
        let count = 400 + noise(step) % 700;
        sale.ask(&Command::AdmitNow { count, entropy: [0; 16], by: by.clone() });
        sale.moment(&mut lines);
    }
    let mut node = Process::new("node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/browser/sale.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Node is needed for this test: apt-get install nodejs");
    let mut stdin = node.stdin.take().expect("stdin is piped");
    stdin.write_all(lines.as_bytes()).expect("Node reads");
    drop(stdin);
    let out = node.wait_with_output().expect("Node ends");
    let said = String::from_utf8_lossy(&out.stdout);
    println!("{said}");
    assert!(out.status.success(), "{said}");
}
