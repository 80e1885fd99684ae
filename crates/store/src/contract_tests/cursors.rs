//! Cursors: how far each sink has come, and what becomes of one that stays behind.
//!
//! Lives here: the clauses under "Cursors" on [`Store`].
//! Stays out: the other things that hold a trim up (`snapshots`).

use super::{
    Fixture, wait,
    writer::{Writer, room, sink},
};
use crate::{Cursor, Error, Gap, Head, Retention, Store};

pub fn cursors_never_go_back(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(9, "a");
    let sink = sink("s");
    let advance = |to| wait(store.advance(&room("r"), &sink, Head(to)));
    assert_eq!(wait(store.cursor(&writer.room, &sink)), Ok(None));
    assert_eq!(advance(0).expect("a beginning").at, Head(0));
    assert_eq!(advance(5).expect("forward").at, Head(5));
    assert_eq!(advance(5).expect("a repeat").at, Head(5));
    assert!(matches!(advance(4), Err(Error::Refused { .. })));
    assert!(matches!(advance(10), Err(Error::Refused { .. })));
    assert_eq!(wait(store.cursor(&writer.room, &sink)).unwrap().unwrap().at, Head(5));
    let all = wait(store.cursors(&writer.room)).expect("readable");
    assert_eq!(all, [(sink.clone(), Cursor { at: Head(5), ..Cursor::default() })]);
}

pub fn a_dropped_cursor_pins_nothing(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(9, "a");
    writer.snapshot("a");
    wait(store.advance(&writer.room, &sink("s"), Head(2))).expect("in the log");
    assert!(writer.trim(9).is_err());
    for _ in 0..2 {
        assert_eq!(wait(store.drop_cursor(&writer.room, &sink("s"))), Ok(()));
    }
    assert_eq!(wait(store.drop_cursor(&room("nowhere"), &sink("s"))), Ok(()));
    assert_eq!(wait(store.cursor(&writer.room, &sink("s"))), Ok(None));
    assert_eq!(writer.trim(9), Ok(()));
}

pub fn a_cursor_cannot_begin_in_the_trimmed_part(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(9, "a");
    writer.snapshot("a");
    assert_eq!(writer.trim(5), Ok(()));
    let begin = |to| wait(store.advance(&room("r"), &sink("s"), Head(to)));
    assert_eq!(begin(4), Err(Error::Trimmed { to: Head(5) }));
    assert_eq!(begin(5).expect("the first still there").at, Head(5));
}

pub fn a_broken_cursor_pins_nothing_and_tells_its_gap(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(9, "a");
    writer.snapshot("a");
    let s = sink("s");
    let give_up = |to| wait(store.mark_broken(&room("r"), &s, Head(to)));
    assert!(matches!(give_up(3), Err(Error::Refused { .. })), "no such cursor yet");
    wait(store.advance(&writer.room, &s, Head(2))).expect("in the log");
    assert!(matches!(give_up(1), Err(Error::Refused { .. })));
    assert!(matches!(give_up(10), Err(Error::Refused { .. })));
    assert_eq!(give_up(4), Ok(Gap { after: Head(2), to: Head(4) }));
    assert_eq!(give_up(6), Ok(Gap { after: Head(2), to: Head(6) }), "one gap grows");
    assert_eq!(writer.trim(8), Ok(()));
    let advance = |to| wait(store.advance(&room("r"), &s, Head(to)));
    assert!(matches!(advance(5), Err(Error::Refused { .. })), "those were given up");
    assert_eq!(advance(7), Err(Error::Trimmed { to: Head(8) }));
    assert_eq!(give_up(8), Ok(Gap { after: Head(2), to: Head(8) }));
    let back = advance(8).expect("past the gap");
    let gap = Some(Gap { after: Head(2), to: Head(8) });
    assert_eq!(back, Cursor { at: Head(8), broken: false, gap });
    assert!(writer.trim(9).is_err(), "it pins again");
    assert_eq!(give_up(9), Ok(Gap { after: Head(8), to: Head(9) }), "a new gap begins");
}

pub fn retire_breaks_only_cursors_that_hold_trimming_up(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    let (dead, slow, fast) = (sink("dead"), sink("slow"), sink("fast"));
    for _ in 0..10 {
        writer.append(1, "0123456789");
        made.advance(100);
    }
    for (sink, at) in [(&dead, 0), (&slow, 6), (&fast, 10)] {
        wait(store.advance(&writer.room, sink, Head(at))).expect("in the log");
    }
    let retire = |keep_bytes, keep_age_ms| {
        wait(store.retire(&room("r"), Retention { keep_bytes, keep_age_ms }))
    };
    assert_eq!(retire(1, 1), Ok(vec![]), "nothing could be trimmed anyway: no snapshot");
    writer.snapshot("ten");
    assert_eq!(retire(100, 1_000), Ok(vec![]), "at the cap is not over it");
    // Over by bytes: the dead one. It is given up as far as the slow one lets the trim go.
    let gap = Gap { after: Head(0), to: Head(6) };
    assert_eq!(retire(99, 100_000), Ok(vec![(dead.clone(), gap)]));
    assert!(wait(store.cursor(&writer.room, &dead)).unwrap().unwrap().broken);
    assert_eq!(writer.trim(6), Ok(()));
    assert_eq!(retire(99, 100_000), Ok(vec![]), "once");
    // Over by age: batch 7 is 400 ms old by now.
    assert_eq!(retire(100_000, 400), Ok(vec![]));
    made.advance(1);
    let gap = Gap { after: Head(6), to: Head(10) };
    assert_eq!(retire(100_000, 400), Ok(vec![(slow, gap)]));
    assert_eq!(writer.trim(10), Ok(()));
}
