//! Impossible settings: each mistake names its field and its bound, all are told at once, and
//! nothing is half applied.

use crate::script::{World, apply, check};
use waitroom_core::settings::{DrawSettings, LaneSettings, METADATA_MAX, Rate};
use waitroom_core::{Actor, Command, Invalid, LaneId, Millis, Refusal, Reply, Settings};

/// A change of the settings to something that cannot be, and the field and bound it must name.
struct Wrong {
    change: fn(&mut Settings),
    field: &'static str,
    bound: &'static str,
}

fn lane(name: &str, weight: u32) -> LaneSettings {
    LaneSettings { name: name.into(), weight }
}

const WRONG: &[Wrong] = &[
    Wrong { change: |s| apply(s, "lanes=none"), field: "lanes", bound: "1 to 16 lanes" },
    Wrong {
        change: |s| s.lanes = (0..17).map(|i| lane(&format!("l{i}"), 1)).collect(),
        field: "lanes",
        bound: "1 to 16 lanes",
    },
    Wrong {
        change: |s| apply(s, "lanes=0:0"),
        field: "lanes.weight",
        bound: "at least one lane with a weight above 0",
    },
    Wrong { change: |s| apply(s, "lanes=1:1001"), field: "lanes[1].weight", bound: "0 to 1000" },
    Wrong {
        change: |s| s.lanes = vec![lane("", 1)],
        field: "lanes[0].name",
        bound: "1 to 64 bytes, not \"returning\"",
    },
    Wrong {
        change: |s| s.lanes = vec![lane(&"n".repeat(65), 1)],
        field: "lanes[0].name",
        bound: "1 to 64 bytes, not \"returning\"",
    },
    Wrong {
        change: |s| s.lanes = vec![lane("returning", 1)],
        field: "lanes[0].name",
        bound: "1 to 64 bytes, not \"returning\"",
    },
    Wrong {
        change: |s| s.lanes = vec![lane("a", 1), lane("a", 1)],
        field: "lanes[1].name",
        bound: "a name no other lane has",
    },
    Wrong {
        change: |s| apply(s, "returning=0%/60s"),
        field: "returning.share",
        bound: "1 to 90 percent",
    },
    Wrong {
        change: |s| apply(s, "returning=91%/60s"),
        field: "returning.share",
        bound: "1 to 90 percent",
    },
    Wrong {
        change: |s| apply(s, "returning=20%/999ms"),
        field: "returning.within",
        bound: "1s to 3600s",
    },
    Wrong {
        change: |s| apply(s, "returning=20%/3600.001s"),
        field: "returning.within",
        bound: "1s to 3600s",
    },
    Wrong { change: |s| s.max_active = 0, field: "max_active", bound: "1 to 10000000" },
    Wrong { change: |s| s.max_active = 10_000_001, field: "max_active", bound: "1 to 10000000" },
    Wrong {
        change: |s| s.max_waiting = (1 << 40) + 1,
        field: "max_waiting",
        bound: "0 to 1099511627776",
    },
    Wrong {
        change: |s| apply(s, "rate=0/1s"),
        field: "rate.count",
        bound: "1 or more; leave the rate out for manual admits only",
    },
    Wrong { change: |s| apply(s, "rate=1/0s"), field: "rate.per", bound: "1ms to 1h" },
    Wrong { change: |s| apply(s, "rate=1/3600.001s"), field: "rate.per", bound: "1ms to 1h" },
    Wrong {
        change: |s| apply(s, "rate=1000001/1s"),
        field: "rate",
        bound: "at most 1000000 a second",
    },
    Wrong {
        change: |s| apply(s, "rate=1001/1ms"),
        field: "rate",
        bound: "at most 1000000 a second",
    },
    Wrong { change: |s| s.burst = Some(0), field: "burst", bound: "1 to 1000000" },
    Wrong { change: |s| s.burst = Some(1_000_001), field: "burst", bound: "1 to 1000000" },
    Wrong { change: |s| apply(s, "tick=19ms"), field: "tick", bound: "20ms to 10s" },
    Wrong { change: |s| apply(s, "tick=10001ms"), field: "tick", bound: "20ms to 10s" },
    Wrong { change: |s| s.shuffle_window = 0, field: "shuffle_window", bound: "1, or 16 to 65536" },
    Wrong { change: |s| s.shuffle_window = 2, field: "shuffle_window", bound: "1, or 16 to 65536" },
    Wrong {
        change: |s| s.shuffle_window = 15,
        field: "shuffle_window",
        bound: "1, or 16 to 65536",
    },
    Wrong {
        change: |s| s.shuffle_window = 65_537,
        field: "shuffle_window",
        bound: "1, or 16 to 65536",
    },
    Wrong {
        change: |s| apply(s, "claim_within=0s"),
        field: "claim_within",
        bound: "1s to 31622400s",
    },
    Wrong {
        change: |s| apply(s, "claim_within=8784.001h"),
        field: "claim_within",
        bound: "1s to 31622400s",
    },
    Wrong {
        change: |s| apply(s, "session_timeout=999ms"),
        field: "session_timeout",
        bound: "1s to 31622400s",
    },
    Wrong {
        change: |s| apply(s, "heartbeat_timeout=0s"),
        field: "heartbeat_timeout",
        bound: "3s to 31622400s",
    },
    Wrong {
        change: |s| apply(s, "heartbeat_timeout=2999ms"),
        field: "heartbeat_timeout",
        bound: "3s to 31622400s",
    },
    Wrong { change: |s| apply(s, "memory=599.999s"), field: "memory", bound: "600s to 31622400s" },
    Wrong {
        change: |s| apply(s, "pass_leeway=300.001s"),
        field: "pass_leeway",
        bound: "0 to 300s",
    },
    Wrong { change: |s| apply(s, "pass_life=999ms"), field: "pass_life", bound: "1s to 600s" },
    Wrong { change: |s| apply(s, "pass_life=600.001s"), field: "pass_life", bound: "1s to 600s" },
    Wrong {
        change: |s| apply(s, "ticket_life=119.999s"),
        field: "ticket_life",
        bound: "120s to 31622400s",
    },
    Wrong {
        change: |s| {
            apply(s, "opens_at=10s");
            apply(s, "starts_at=9.999s");
        },
        field: "starts_at",
        bound: "not before opens_at (1800000010000)",
    },
    Wrong {
        change: |s| {
            apply(s, "starts_at=10s");
            apply(s, "ends_at=10s");
        },
        field: "ends_at",
        bound: "after the start (1800000010000)",
    },
    Wrong {
        change: |s| {
            apply(s, "opens_at=10s");
            apply(s, "ends_at=10s");
        },
        field: "ends_at",
        bound: "after the start (1800000010000)",
    },
    Wrong {
        change: |s| s.draw = Some(DrawSettings { beacon: None }),
        field: "draw",
        bound: "a draw needs starts_at, the moment it closes",
    },
    Wrong {
        change: |s| {
            apply(s, "starts_at=10s");
            s.draw = Some(DrawSettings { beacon: Some(String::new()) });
        },
        field: "draw.beacon",
        bound: "1 to 256 bytes",
    },
    Wrong {
        change: |s| {
            apply(s, "starts_at=10s");
            s.draw = Some(DrawSettings { beacon: Some("b".repeat(257)) });
        },
        field: "draw.beacon",
        bound: "1 to 256 bytes",
    },
    Wrong { change: |s| s.title = "t".repeat(2_049), field: "title", bound: "at most 2048 bytes" },
    Wrong {
        change: |s| s.target_url = "t".repeat(2_049),
        field: "target_url",
        bound: "at most 2048 bytes",
    },
    Wrong {
        change: |s| s.heartbeat_interval = s.heartbeat_timeout,
        field: "heartbeat_interval",
        bound: "0, or 1s to less than heartbeat_timeout (120s)",
    },
    Wrong {
        change: |s| s.heartbeat_interval = Millis(999),
        field: "heartbeat_interval",
        bound: "0, or 1s to less than heartbeat_timeout (120s)",
    },
    Wrong {
        change: |s| s.allowed_origins = vec!["https://shop.example".into(); 33],
        field: "allowed_origins",
        bound: "at most 32",
    },
];

fn refused(world: &mut World, settings: Settings) -> Vec<Invalid> {
    let before = format!("{:?}", world.room);
    let command = Command::Configure { settings: Box::new(settings), by: Actor::new("op") };
    let mut events = Vec::new();
    let reply = world.decide(&command, &mut events);
    assert_eq!(events, [], "a refusal leaves no event");
    assert_eq!(format!("{:?}", world.room), before, "a refusal changes nothing");
    match reply {
        Reply::Refused(Refusal::Settings(wrong)) => wrong,
        reply => panic!("this cannot be set, but: {reply:?}"),
    }
}

#[test]
fn every_mistake_names_its_field_and_its_bound() {
    for Wrong { change, field, bound } in WRONG {
        let mut settings = Settings::default();
        change(&mut settings);
        // A room whose doors are shut, for later the draw cannot be changed at all.
        let wrong = refused(&mut World::room("opens_at=60s"), settings);
        let named: Vec<_> = wrong.iter().map(|it| (&*it.field, &*it.bound)).collect();
        assert_eq!(named, [(*field, *bound)]);
        assert!(!wrong[0].found.is_empty(), "{field}: says what was found");
    }
}

#[test]
fn a_new_room_refuses_the_same_mistakes() {
    for Wrong { change, field, .. } in WRONG {
        let mut settings = Settings::default();
        change(&mut settings);
        let mut world = World::empty();
        world.line("0s open 1");
        assert_eq!(refused(&mut world, settings)[0].field, *field);
        assert_eq!(world.line("0s join ana"), "refused not_ready");
    }
}

#[test]
fn what_stands_on_its_bound_is_allowed() {
    let bounds = [
        "max_active=1",
        "max_active=10000000",
        "max_waiting=1099511627776",
        "rate=1000000/1s",
        "rate=1000/1ms",
        "rate=1/3600s",
        "burst=1",
        "burst=1000000",
        "tick=20ms",
        "tick=10s",
        "window=16",
        "window=65536",
        "claim_within=1s",
        "claim_within=8784h",
        "session_timeout=8784h",
        "heartbeat_timeout=3s",
        "memory=600s",
        "pass_leeway=300s",
        "pass_life=1s",
        "pass_life=600s",
        "ticket_life=120s",
        "returning=1%/1s",
        "returning=90%/3600s",
        "lanes=1000:0",
        "lanes=1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1",
        "title=2048",
    ];
    for word in bounds {
        let mut settings = Settings::default();
        apply(&mut settings, word);
        assert_eq!(settings.check(), Ok(()), "{word}");
    }
    let mut together = Settings::default();
    apply(&mut together, "opens_at=10s");
    apply(&mut together, "starts_at=10s");
    apply(&mut together, "ends_at=10.001s");
    assert_eq!(together.check(), Ok(()));
}

fn origin_fits(origin: &str) -> bool {
    let allowed_origins = vec!["*".into(), origin.into()];
    match (Settings { allowed_origins, ..Settings::default() }).check() {
        Ok(()) => true,
        Err(wrong) => {
            let fields: Vec<&str> = wrong.iter().map(|it| &*it.field).collect();
            assert_eq!(fields, ["allowed_origins[1]"]);
            false
        }
    }
}

#[test]
fn an_origin_is_what_a_browser_would_send() {
    let longest = format!("https://{}.example", "a".repeat(63));
    let good = [
        "*",
        "https://shop.example",
        "http://localhost:3000",
        "https://shop.example:8443",
        "http://127.0.0.1:8080",
        "http://[::1]:8080",
        "https://[2001:db8::1]",
        "https://xn--bcher-kva.example",
        &longest,
    ];
    for origin in good {
        assert!(origin_fits(origin), "{origin}");
    }
}

#[test]
fn what_no_browser_sends_as_origin_is_refused() {
    let too_long = format!("https://{}.example", "a".repeat(64));
    let bad = [
        "",
        "null",
        "shop.example",
        "https://",
        "https://shop.example/",
        "https://shop.example/path",
        "https://Shop.example",
        "HTTPS://shop.example",
        "https://*.shop.example",
        "https://shop.example:443",
        "http://shop.example:80",
        "https://shop.example:",
        "https://shop.example:0",
        "https://shop.example:+1",
        "https://shop.example:65536",
        "https://user@shop.example",
        "https://shop..example",
        "https://shop.example https://other.example",
        "ftp://shop.example",
        "https://[::1",
        "https://[0:0::1]",
        "https://a:b:1",
        &too_long,
    ];
    for origin in bad {
        assert!(!origin_fits(origin), "{origin}");
    }
}

#[test]
fn settings_of_an_older_log_get_what_they_lack() {
    let mut old = serde_json::to_value(Settings::default()).expect("settings are JSON");
    let fields = old.as_object_mut().expect("an object");
    fields.remove("allowed_origins").expect("a field of today");
    fields.remove("heartbeat_interval").expect("a field of today");
    let read: Settings = serde_json::from_value(old).expect("an old log is read");
    assert_eq!(read, Settings::default());
}

#[test]
fn all_mistakes_are_told_at_once() {
    let mut settings = Settings {
        max_active: 0,
        rate: Some(Rate { count: 0, per: Millis(0) }),
        heartbeat_timeout: Millis(0),
        lanes: vec![lane("a", 0), lane("a", 0)],
        title: "t".repeat(3_000),
        ..Settings::default()
    };
    apply(&mut settings, "opens_at=20s");
    apply(&mut settings, "starts_at=10s");
    let wrong = refused(&mut World::room(""), settings);
    let fields: Vec<&str> = wrong.iter().map(|it| &*it.field).collect();
    assert_eq!(
        fields,
        [
            "lanes.weight",
            "lanes[1].name",
            "max_active",
            "rate.count",
            "rate.per",
            "heartbeat_timeout",
            "starts_at",
            "title"
        ]
    );
}

#[test]
fn what_the_tickets_forbid_is_told_beside_the_rest() {
    let mut world = World::room("lanes=1:1 rate=none");
    world.line("1s join ana lane=1");
    let mut settings = Settings { max_active: 0, shuffle_window: 16, ..Settings::default() };
    apply(&mut settings, "lanes=1");
    let wrong = refused(&mut world, settings);
    let fields: Vec<&str> = wrong.iter().map(|it| &*it.field).collect();
    assert_eq!(fields, ["max_active", "shuffle_window", "lanes"]);
}

#[test]
fn a_mistake_leaves_the_old_settings_in_force() {
    check("
        room  max_active=1
        1s  join a*2                            | joined a1..a2
        1s  set max_active=9 heartbeat_timeout=0s | refused settings heartbeat_timeout: 0 does not fit; allowed: 3s to 31622400s
        1s  tick                                | admitted a1 claim_by=91s
        1s  tick                                | nothing
    ");
}

#[test]
fn the_same_settings_again_are_no_event() {
    check(
        "
        room  max_active=3
        1s  set               | done
        1s  set max_active=3  | done
        1s  set max_active=4  | configured
    ",
    );
}

#[test]
fn settings_need_an_owner() {
    let mut world = World::empty();
    let settings = Box::new(Settings::default());
    let command = Command::Configure { settings, by: Actor::new("op") };
    assert_eq!(world.ask(&command), "refused not_ready");
}

#[test]
fn a_pace_changes_the_rate_and_nothing_else_and_only_where_there_is_one() {
    let pace = |count, per_s| {
        let (rate, by) = (Rate { count, per: Millis::from_secs(per_s) }, Actor::new("gate"));
        Command::Pace { rate, by }
    };
    assert_eq!(World::empty().ask(&pace(5, 1)), "refused not_ready");
    let mut world = World::room("max_active=3 rate=10/1s");
    world.line("1s set max_active=9");
    assert_eq!(world.ask(&pace(5, 60)), "configured");
    let settings = world.room.state().settings().expect("it is configured").clone();
    assert_eq!(settings.rate, Some(Rate { count: 5, per: Millis::from_secs(60) }));
    assert_eq!(settings.max_active, 9, "what an operator has just set stays");
    assert_eq!(world.ask(&pace(5, 60)), "done", "the same again is no event");
    assert!(world.ask(&pace(5, 0)).starts_with("refused"), "no pace in no time");
    let mut by_hand = World::room("rate=none");
    assert_eq!(by_hand.ask(&pace(5, 1)), "done", "only operators let people in here");
    assert_eq!(by_hand.room.state().settings().and_then(|it| it.rate), None);
}

#[test]
fn refused_joins_name_what_was_wrong_and_leave_no_trace() {
    let mut world = World::room("rate=none max_waiting=1");
    world.line("1s join ana");
    let before = format!("{:?}", world.room);
    assert_eq!(world.line("1s join bo lane=7"), "refused unknown_lane lane=7");
    assert_eq!(world.line("1s join bo"), "refused full max_waiting=1");
    assert_eq!(format!("{:?}", world.room), before);
    world.line("1s leave ana");
    let before = format!("{:?}", world.room);
    let meta = METADATA_MAX + 1;
    let said = world.line(&format!("1s join bo meta={meta}"));
    assert_eq!(said, format!("refused metadata_too_large bytes_max={METADATA_MAX}"));
    assert_eq!(format!("{:?}", world.room), before);
    assert_eq!(world.room.state().issued(LaneId(0)), 1);
}

#[test]
fn a_message_can_be_read_at_night() {
    let mut settings = Settings::default();
    apply(&mut settings, "rate=60000000/1s");
    let wrong = settings.check().expect_err("too fast");
    assert_eq!(
        wrong[0].to_string(),
        "rate: 60000000 per 1s does not fit; allowed: at most 1000000 a second"
    );
}
