//! The texts that only we check: ticket tokens, live tickets, the gate's cookie.

use waitroom_core::{Holder, id::TicketId};
use waitroom_pass::{
    Binding, CheckedPass, CheckedPasses, IpPrefix, LIVE_TICKET_LIFE_MS, LiveRefused, LiveTicket,
    LiveTickets, Pass, Presented, TicketToken, TicketTokens, WrongSecrets,
};

const OLD: (u8, [u8; 32]) = (1, [0x11; 32]);
const NEW: (u8, [u8; 32]) = (2, [0x22; 32]);
const TICKET: TicketId = TicketId::from_bytes(*b"a ticket, by id.");
const SAID: TicketToken =
    TicketToken { id: TICKET, holder: Holder(3), issued_s: 1_790_000_000, newest: true };

fn write(tokens: &TicketTokens) -> String {
    tokens.write("sale", SAID.id, SAID.holder, SAID.issued_s).to_string()
}

fn pass(binding: Binding) -> Pass {
    Pass {
        ticket: TICKET.to_string(),
        room: "sale".into(),
        issued_at: 1_000,
        expires_at: 2_000,
        binding,
        session_id: None,
        user_id: None,
        event_id: None,
    }
}

#[test]
fn a_ticket_token_says_what_it_was_told_and_keeps_its_shape() {
    let tokens = TicketTokens::new(&[OLD]).expect("a secret");
    let text = write(&tokens);
    assert_eq!(tokens.read("sale", &text), Some(SAID));
    assert_eq!(text.len(), 55);
    assert!(text.starts_with("wt1_"));
    // Old tokens must stay readable: this text was made by another implementation.
    let first = "wt1_AWEgdGlja2V0LCBieSBpZC4DarE7gPdjKuDogjzi0mGAuZS3z8c";
    assert_eq!(text, first);
}

#[test]
fn a_ticket_token_means_nothing_in_another_room() {
    let tokens = TicketTokens::new(&[OLD]).expect("a secret");
    let text = write(&tokens);
    for room in ["", "sal", "sales", "Sale", "other"] {
        assert_eq!(tokens.read(room, &text), None, "{room}");
    }
}

#[test]
fn the_newest_secret_signs_and_the_old_ones_still_check() {
    let before = TicketTokens::new(&[OLD]).expect("a secret");
    let during = TicketTokens::new(&[OLD, NEW]).expect("two secrets");
    let after = TicketTokens::new(&[NEW]).expect("a secret");
    let old = TicketToken { newest: false, ..SAID };
    assert_eq!(during.read("sale", &write(&before)), Some(old), "good, and to be replaced");
    assert_eq!(after.read("sale", &write(&during)), Some(SAID));
    assert_eq!(after.read("sale", &write(&before)), None);
    // The same id with another secret is another key.
    let renamed = TicketTokens::new(&[(1, NEW.1)]).expect("a secret");
    assert_eq!(renamed.read("sale", &write(&before)), None);
}

#[test]
fn a_list_of_secrets_that_cannot_work_is_refused() {
    assert_eq!(TicketTokens::new(&[]).err(), Some(WrongSecrets::None));
    let twice = TicketTokens::new(&[OLD, (OLD.0, NEW.1)]);
    assert_eq!(twice.err(), Some(WrongSecrets::SameId { id: 1 }));
}

#[test]
fn a_text_has_one_spelling() {
    let tokens = TicketTokens::new(&[OLD]).expect("a secret");
    let text = write(&tokens);
    let last = text.chars().last().expect("not empty");
    for other in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".chars() {
        let altered = format!("{}{other}", &text[..text.len() - 1]);
        assert_eq!(tokens.read("sale", &altered).is_some(), other == last, "{altered}");
    }
    for altered in [format!("{text}="), format!(" {text}"), format!("{text} "), text.to_uppercase()]
    {
        assert_eq!(tokens.read("sale", &altered), None, "{altered}");
    }
}

#[test]
fn a_text_of_one_kind_is_no_text_of_another() {
    let keys = [OLD];
    let tickets = TicketTokens::new(&keys).expect("a secret");
    let live = LiveTickets::new(&keys, 10).expect("a secret");
    let checked = CheckedPasses::new(&keys).expect("a secret");
    let nobody = Presented::default();
    let texts = [
        write(&tickets),
        live.write("sale", TICKET, Holder(0), 0).to_string(),
        checked.write(&pass(Binding::default()), &nobody, 1_500).expect("writable").to_string(),
    ];
    for (kind, text) in texts.iter().enumerate() {
        for prefix in ["wt1_", "wl1_", "wc1_"] {
            let text = format!("{prefix}{}", &text[4..]);
            assert_eq!(tickets.read("sale", &text).is_some(), kind == 0 && prefix == "wt1_");
            let taken = live.take("sale", &text, 0);
            assert_eq!(taken.is_ok(), kind == 1 && prefix == "wl1_");
            let read = checked.read("sale", &text, 1_100, &nobody);
            assert_eq!(read.is_some(), kind == 2 && prefix == "wc1_");
        }
    }
}

#[test]
fn a_live_ticket_opens_once_and_for_half_a_minute() {
    let live = LiveTickets::new(&[OLD], 10).expect("a secret");
    let said = LiveTicket { id: TICKET, holder: Holder(3) };
    let first = live.write("sale", TICKET, Holder(3), 1_000);
    let second = live.write("sale", TICKET, Holder(3), 1_000);
    assert_ne!(*first, *second, "two tickets of one moment are two");
    assert_eq!(live.take("other", &first, 1_000), Err(LiveRefused::NotOurs));
    assert_eq!(live.take("sale", &first, 1_000), Ok(said));
    assert_eq!(live.take("sale", &first, 1_001), Err(LiveRefused::UsedBefore));
    let end = 1_000 + LIVE_TICKET_LIFE_MS;
    assert_eq!(live.take("sale", &second, end), Err(LiveRefused::Expired));
}

#[test]
fn a_live_ticket_is_used_up_where_it_was_written_whoever_it_is_shown_to() {
    let [one, other] = [(); 2].map(|()| LiveTickets::new(&[OLD], 10).expect("a secret"));
    let text = one.write("sale", TICKET, Holder(3), 1_000);
    assert_eq!(other.take("sale", &text, 1_000), Err(LiveRefused::NotOurs), "it cannot know");
    let (said, mark) = other.read("sale", &text).expect("it can read it");
    assert_eq!(said, LiveTicket { id: TICKET, holder: Holder(3) });
    assert_eq!(mark.writer, one.writer());
    assert_eq!(one.use_up(&mark, 1_000), Ok(()));
    assert_eq!(one.use_up(&mark, 1_000), Err(LiveRefused::UsedBefore));
    assert_eq!(one.take("sale", &text, 1_000), Err(LiveRefused::UsedBefore));
}

#[test]
fn a_checked_pass_holds_until_its_end_and_never_beyond_the_pass() {
    let checked = CheckedPasses::new(&[OLD]).expect("a secret");
    let nobody = Presented::default();
    let said =
        |checked_until_s| Some(CheckedPass { ticket: TICKET, expires_s: 2_000, checked_until_s });
    let text = checked.write(&pass(Binding::default()), &nobody, 1_060).expect("writable");
    assert_eq!(checked.read("sale", &text, 1_059, &nobody), said(1_060));
    assert_eq!(checked.read("sale", &text, 1_060, &nobody), None);
    assert_eq!(checked.read("other", &text, 1_000, &nobody), None);
    let long = checked.write(&pass(Binding::default()), &nobody, 9_000).expect("writable");
    assert_eq!(checked.read("sale", &long, 1_999, &nobody), said(2_000));
    assert_eq!(checked.read("sale", &long, 2_000, &nobody), None);
}

#[test]
fn a_bound_pass_gives_a_bound_cookie() {
    let checked = CheckedPasses::new(&[OLD]).expect("a secret");
    let ticket = TICKET.to_string();
    let ip = "192.0.2.7".parse().expect("an address");
    let shown = Presented { nonce: Some("n"), ip: Some(ip), user_agent: Some("ua") };
    let all = Binding::default()
        .to_nonce(&ticket, "n")
        .to_ip(&ticket, ip, IpPrefix::default())
        .to_user_agent(&ticket, "ua");
    let text = checked.write(&pass(all.clone()), &shown, 1_500).expect("writable");
    let near = Presented { ip: Some("192.0.2.200".parse().expect("an address")), ..shown };
    assert!(checked.read("sale", &text, 1_100, &shown).is_some());
    assert!(checked.read("sale", &text, 1_100, &near).is_some());
    for other in [
        Presented { nonce: Some("m"), ..shown },
        Presented { nonce: None, ..shown },
        Presented { ip: Some("192.0.3.7".parse().expect("an address")), ..shown },
        Presented { ip: Some("2001:db8::1".parse().expect("an address")), ..shown },
        Presented { user_agent: Some("other"), ..shown },
        Presented { user_agent: None, ..shown },
    ] {
        assert_eq!(checked.read("sale", &text, 1_100, &other), None, "{other:?}");
    }
    let unseen = Presented { nonce: None, ..shown };
    assert_eq!(checked.write(&pass(all), &unseen, 1_500), None);
    let free = checked.write(&pass(Binding::default()), &shown, 1_500).expect("writable");
    assert!(checked.read("sale", &free, 1_100, &Presented::default()).is_some());
}

#[test]
fn debug_output_never_shows_a_token_or_a_secret() {
    let tokens = TicketTokens::new(&[(7, [0x5a; 32])]).expect("a secret");
    let text = tokens.write("sale", TICKET, Holder(0), 0);
    let said = format!("{text:?} {tokens:?}");
    assert!(!said.contains(&text[8..]), "{said}");
    assert!(!said.contains("90, 90"), "{said}");
}
