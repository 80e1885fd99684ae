//! Notices whose carrier is away, under injected time; and what is left of an address.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use waitroom_outbox::notify::{Asked, Notice, NoticeFigures, Notices, Sms, Stand, Voices, Wish};
use waitroom_outbox::webhook::{Line, Manners, Reach, Secrets, SystemResolver};
use waitroom_store::seal::MasterKey;
use waitroom_store::{MachineClock, Shelf};

use crate::house::room_name;
use crate::parts::scratch;

const TICKET: &str = "00112233-4455-6677-8899-aabbccddeeff";
const NUMBER: &str = "+4915112345678";

fn notices(folder: &Path) -> Notices {
    let shelf =
        Shelf::open(&folder.join("shelf"), MasterKey::from_bytes([4; 32])).expect("a shelf");
    Notices::on(shelf).expect("what was kept opens")
}

fn wish() -> Wish {
    Wish::Sms { address: NUMBER.to_owned() }
}

/// A carrier that nobody reaches: its port was somebody's a moment ago.
fn away(folder: &Path) -> Voices {
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/sms", port.local_addr().expect("its address"));
    drop(port);
    let within = Duration::from_secs(1);
    let manners = Manners { reach: Reach::Anywhere, within, ca: None };
    let line = Line::to(&url.parse().expect("a URL"), manners, Arc::new(SystemResolver));
    let secret = folder.join("secret");
    fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a file");
    let secrets = Secrets::load(&secret).expect("a secret");
    let clock = Arc::new(MachineClock::new());
    Voices { sms: Some(Sms { line: line.expect("usable"), secrets, clock }), ..Voices::default() }
}

fn near(ticket: &str) -> Stand {
    Stand::Near(Notice {
        room: room_name("sale"),
        title: "Sale".into(),
        ahead: Some(3),
        link: String::new(),
        ticket: ticket.into(),
    })
}

fn failed(figures: &NoticeFigures) -> u64 {
    figures.all().filter(|it| it.1 == "failed").map(|it| it.2).sum()
}

#[tokio::test(start_paused = true)]
async fn a_carrier_that_is_away_is_tried_for_a_while_and_then_the_address_is_let_go() {
    let folder = scratch("notices");
    let (voices, figures) = (away(&folder), NoticeFigures::default());
    assert_eq!(notices(&folder).ask(TICKET, &wish()).await, Ok(Asked::Kept));
    // Another process: what was asked for is still there.
    let kept = notices(&folder);
    assert_eq!((kept.of(TICKET), kept.waiting()), (Some(false), 1));
    let began = Instant::now();
    while kept.waiting() > 0 {
        assert!(began.elapsed() < Duration::from_secs(3_600), "it is never given up");
        kept.look_round(&voices, &figures, near).await;
        sleep(Duration::from_secs(1)).await;
    }
    let took = began.elapsed();
    assert!(took > Duration::from_secs(300) && took < Duration::from_secs(1_500), "{took:?}");
    assert_eq!(failed(&figures), 1);
    // A mark is left, with no address in it, and no second message can be asked for.
    let shelf =
        Shelf::open(&folder.join("shelf"), MasterKey::from_bytes([4; 32])).expect("a shelf");
    let mark = shelf.get(TICKET).expect("readable").expect("there");
    assert!(!String::from_utf8_lossy(&mark).contains("4915"), "{mark:?}");
    assert_eq!(kept.ask(TICKET, &wish()).await, Ok(Asked::DoneBefore));
    // The ticket is over, and nothing is left at all.
    kept.look_round(&voices, &figures, |_| Stand::Over).await;
    assert_eq!(fs::read_dir(folder.join("shelf")).expect("readable").count(), 0);
    assert_eq!(kept.of(TICKET), None);
}

#[tokio::test]
async fn who_is_far_away_or_takes_it_back_is_not_written_to() {
    let folder = scratch("notices");
    let (voices, figures) = (away(&folder), NoticeFigures::default());
    let kept = notices(&folder);
    kept.ask(TICKET, &wish()).await.expect("kept");
    kept.look_round(&voices, &figures, |_| Stand::Far).await;
    assert_eq!((kept.waiting(), failed(&figures)), (1, 0));
    assert_eq!(kept.forget(TICKET).await, Ok(true));
    assert_eq!(kept.forget(TICKET).await, Ok(false));
    assert_eq!(fs::read_dir(folder.join("shelf")).expect("readable").count(), 0);
}

#[test]
fn a_wish_in_a_log_line_shows_no_address() {
    let shown = format!("{:?}", wish());
    assert!(shown.contains("sms") && !shown.contains("4915"), "{shown}");
}

#[test]
fn addresses_are_looked_at_before_they_are_kept() {
    let email = |address: &str| Wish::Email { address: address.to_owned() }.check().is_ok();
    assert!(email("ana@example.org") && email("ana+queue@example.co.uk"));
    let long = format!("{}@example.org", "a".repeat(260));
    for wrong in ["", "ana", "@example.org", "a@b\r\nBcc: c@d.org", "Ana <ana@example.org>", &long]
    {
        assert!(!email(wrong), "{wrong:?}");
    }
    let sms = |address: &str| Wish::Sms { address: address.to_owned() }.check().is_ok();
    assert!(sms(NUMBER));
    for wrong in ["", "+", "015112345678", "+49 151 1234", "+12345678901234567", "+49151abcdef"] {
        assert!(!sms(wrong), "{wrong:?}");
    }
    let push = |endpoint: &str, p256dh: &str, auth: &str| {
        let keys = serde_json::json!({ "p256dh": p256dh, "auth": auth });
        let said = serde_json::json!({ "channel": "push",
            "subscription": { "endpoint": endpoint, "expirationTime": null, "keys": keys } });
        serde_json::from_value::<Wish>(said).is_ok_and(|it| it.check().is_ok())
    };
    // The example of RFC 8291.
    let point =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    let auth = "BTBZMqHH6r4Tts7J_aSIgg";
    assert!(push("https://push.example.net/p/1", point, auth));
    assert!(!push("ftp://push.example.net/p/1", point, auth));
    assert!(!push("https://a:b@push.example.net/p/1", point, auth));
    assert!(!push("https://push.example.net/p/1", &point[2..], auth));
    assert!(!push("https://push.example.net/p/1", point, "AAAA"));
}
