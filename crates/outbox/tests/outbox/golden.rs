//! What outsiders are told, letter by letter. A contract: whoever changes a line here changes what
//! other people's programs read.

use std::path::Path;
use std::sync::Arc;

use waitroom_core::{
    Actor, AdmitWhy, Ending, Entry, Epoch, Event, FinishCause, Hold, Joined, Millis, Session,
    Settings, Status, Ticket, Timestamp, What,
};
use waitroom_outbox::body::{self, ReadyToken};
use waitroom_outbox::translate::{NotKnownYet, Place, translate};
use waitroom_outbox::{Kind, Message, Names, Pending};

use crate::house::{TestNames, room_name};

const BEGIN: u64 = 1_777_629_600_000;

fn story() -> Vec<Event> {
    let (ana, bo, cy) = (Ticket::new(0, 0), Ticket::new(0, 1), Ticket::new(1, 0));
    let at = |seconds: u64| Timestamp(BEGIN + seconds * 1_000);
    let by = || Actor::new("operator");
    let user = || Some(Arc::from(&b"ana@example.org"[..]));
    let session = Session { issued_at: at(60), expires_at: at(660), pass_expires_at: at(660) };
    let joined =
        |ticket, waiting| Joined { ticket, waiting_in_lane: waiting, waiting, ..Joined::default() };
    let ended = |ticket, was, ending| What::Ended {
        ticket,
        was,
        ending,
        waited: Millis(61_500),
        waiting: 4,
        held_until: None,
        sealed_user: None,
        by: by(),
    };
    let admitted = |ticket, entry, sealed_user| What::Admitted {
        ticket,
        joined_at: at(2),
        waiting: 7,
        why: AdmitWhy::Paced,
        entry,
        sealed_user,
    };
    let metadata = Some(Arc::from(&br#"{"seats":2}"#[..]));
    let settings = Settings { title: "Spring".into(), ..Settings::default() };
    let mut story = vec![
        What::Opened { epoch: Epoch(1) },
        What::Configured { settings: Arc::new(settings), by: by() },
        What::Joined(Joined { metadata, sealed_user: user(), ..joined(ana, 1) }),
        What::Joined(joined(bo, 2)),
        admitted(ana, Entry::Claimed(session), user()),
        admitted(bo, Entry::MustClaim { by: at(120) }, None),
        What::Claimed { ticket: bo, session },
        What::Renewed { ticket: bo, session },
        What::Moved { from: bo, to: cy, joined_at: at(3), by: by() },
        What::Held { hold: Hold::Paused { reason: "lunch".into() }, by: by() },
        What::Held { hold: Hold::Maintenance { reason: "paint".into() }, by: by() },
        What::Held { hold: Hold::Draining { reason: "night".into() }, by: by() },
        What::Resumed { by: by() },
        What::AdmittedNow { asked: 10, granted: 4, by: by() },
        What::DoorsOpened,
        What::SaleStarted,
        What::SaleEnded {
            cause: FinishCause::SoldOut,
            reason: "all gone".into(),
            closed: 12,
            by: by(),
        },
        What::Reopened { by: by() },
        What::Released { ticket: ana },
        What::Opened { epoch: Epoch(2) },
    ];
    for was in [Status::Waiting, Status::Admitted, Status::Active] {
        story.extend(Ending::ALL.map(|ending| ended(ana, was, ending)));
    }
    story.into_iter().enumerate().map(|(i, what)| what.at(at(i as u64))).collect()
}

fn told(names: &dyn Names) -> Vec<Message> {
    let room = room_name("spring-sale");
    let mut all = Vec::new();
    for (head, event) in (1..).zip(story()) {
        let place = Place { room: &room, head, epoch: Epoch(1) };
        translate(place, &event, names, &mut all).expect("everybody is known");
    }
    all
}

fn lines() -> String {
    let mut lines = String::new();
    for message in told(&TestNames(None)) {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("JSON is text");
        lines += &format!("{} {}\n", message.kind.event_type(), message.id);
        for (name, value) in body::attributes(&message) {
            lines += &format!("  ce-{name}: {value}\n");
        }
        lines += &format!("  envelope {}\n", text(body::envelope(&message, ReadyToken::On)));
        if let Some((topic, body)) = body::queue_event(&message, ReadyToken::On) {
            lines += &format!("  {topic:?} {}\n", text(body));
        }
    }
    lines
}

/// To take a change over: `WAITROOM_PIN=1 cargo test --workspace --test outbox golden`.
#[test]
fn what_is_told_is_what_is_pinned() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outbox/golden.txt");
    let made = lines();
    if std::env::var_os("WAITROOM_PIN").is_some() {
        std::fs::write(&path, &made).expect("tests can be written");
    }
    let pinned = std::fs::read_to_string(&path).unwrap_or_default();
    for (made, pinned) in made.lines().zip(pinned.lines()) {
        assert_eq!(made, pinned, "look at the change, then pin it with WAITROOM_PIN=1");
    }
    assert_eq!(made.lines().count(), pinned.lines().count());
}

#[test]
fn the_story_has_every_kind_in_it() {
    let told = told(&TestNames(None));
    for kind in Kind::ALL {
        assert!(told.iter().any(|it| it.kind == *kind), "{kind:?}");
    }
}

#[test]
fn a_pass_is_told_only_where_that_is_wanted() {
    for message in told(&TestNames(None)) {
        let off = body::envelope(&message, ReadyToken::Off);
        assert!(!String::from_utf8_lossy(&off).contains("pass of"), "{message:?}");
        if let Some((_, off)) = body::queue_event(&message, ReadyToken::Off) {
            assert!(!String::from_utf8_lossy(&off).contains("pass of"), "{message:?}");
        }
    }
    assert!(lines().contains("pass of"));
}

/// Knows nobody.
#[derive(Debug)]
struct Behind(TestNames);

impl Names for Behind {
    fn epoch_of(&self, _: Ticket) -> Option<Epoch> {
        None
    }
    fn id(&self, ticket: Ticket, epoch: Epoch) -> waitroom_core::id::TicketId {
        self.0.id(ticket, epoch)
    }
    fn user(&self, sealed: &[u8]) -> Option<String> {
        self.0.user(sealed)
    }
    fn pass(
        &self,
        id: waitroom_core::id::TicketId,
        user: Option<String>,
        session: &Session,
    ) -> String {
        self.0.pass(id, user, session)
    }
    fn known_up_to(&self, _: u64) -> Pending<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[test]
fn an_event_whose_ticket_is_not_known_yet_leaves_nothing_behind() {
    let (room, names) = (room_name("spring-sale"), Behind(TestNames(None)));
    let mut waits = 0;
    for (head, event) in (1..).zip(story()) {
        let mut out = Vec::new();
        let place = Place { room: &room, head, epoch: Epoch(1) };
        if translate(place, &event, &names, &mut out) == Err(NotKnownYet) {
            waits += 1;
            assert_eq!(out, vec![], "{event:?}");
        }
    }
    assert_eq!(waits, 2 + 2 + 1 + 27, "admitted, inside, moved, ended");
}
