//! Notices of the real binary: a real mail server, an address for text messages and a push service,
//! all in Python with other people's libraries; and addresses that are nowhere else.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::instance::{Instance, KEY, curl, soon};
use crate::parts::scratch;
use crate::round_trip::joins;
use crate::shop::Program;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// People enter by hand only.
const SALE: &str = r#"{"title":"Spring sale","queue_all":true,"rate":null,"max_active":100,
    "claim":"explicit","target_url":"https://shop.example/spring","heartbeat_timeout":"10m"}"#;
/// What must be nowhere but in a sealed file, and then not even there.
const PLANTED: [&str; 4] =
    ["planted-ana@example.org", "planted-eve@example.org", "4915112345678", "planted-subscription"];

fn notify(server: &Instance, visitor: &Value, body: &Value) -> (u16, Value) {
    let token = format!("Authorization: Bearer {}", visitor["token"].as_str().expect("a token"));
    let (json, body) = ("Content-Type: application/json", body.to_string());
    let got = server.post("/v1/rooms/sale/notify", &["-H", &token, "-H", json, "-d", &body]);
    (got.status, got.json())
}

/// Every file below the folder in which one of the planted words stands.
fn planted_in(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(planted_in(&path));
            continue;
        }
        let bytes = fs::read(&path).unwrap_or_default();
        let has = |word: &&str| bytes.windows(word.len()).any(|it| it == word.as_bytes());
        found.extend(PLANTED.iter().filter(|it| has(it)).map(|it| format!("{it} in {path:?}")));
    }
    found
}

fn kept(server: &Instance) -> usize {
    fs::read_dir(server.data.join("notify/sale")).map_or(0, Iterator::count)
}

fn admit(server: &Instance, count: u32) {
    let body = format!(r#"{{"count":{count}}}"#);
    assert!(server.operate("POST", "/admin/v1/rooms/sale/admit", &body).status < 300);
}

#[test]
fn who_asked_for_it_hears_once_when_the_turn_comes_near_and_the_address_is_gone() {
    let carriers = Program::start("notices.py", &[SECRET]);
    let at = carriers.reads("where they are", |it| it["smtp"].is_u64());
    let folder = scratch("notices");
    let secret = folder.join("secret").display().to_string();
    fs::write(&secret, SECRET).expect("a file");
    let (smtp, sms) =
        (format!("127.0.0.1:{}", at["smtp"]), format!("http://127.0.0.1:{}/sms", at["services"]));
    let push = format!("127.0.0.1:{}", at["services"]);
    let server = Instance::with(&[
        ("WAITROOM_NOTIFY_ROOMS", "sale"),
        ("WAITROOM_NOTIFY_NEAR_AHEAD", "1"),
        ("WAITROOM_NOTIFY_NEAR_WAIT", "0s"),
        ("WAITROOM_NOTIFY_SMTP", &smtp),
        ("WAITROOM_NOTIFY_SMTP_TLS", "never"),
        ("WAITROOM_NOTIFY_FROM", "Waiting room <queue@shop.example>"),
        ("WAITROOM_NOTIFY_SMS_URL", &sms),
        ("WAITROOM_NOTIFY_SMS_SECRET_FILE", &secret),
        ("WAITROOM_NOTIFY_PUSH_SUBJECT", "mailto:ops@shop.example"),
        ("WAITROOM_NOTIFY_PUSH_HOSTS", &push),
        ("WAITROOM_NOTIFY_ALLOW_PRIVATE", "true"),
        ("WAITROOM_LOG_LEVEL", "trace"),
    ]);
    assert!(server.operate("PUT", "/admin/v1/rooms/sale", SALE).status < 300);
    let people: Vec<Value> = (0..8).map(|who| joins(&server, &format!("v{who}"))).collect();
    let email = |address: &str| json!({ "channel": "email", "address": address });
    let sms = |number: &str| json!({ "channel": "sms", "address": number });
    // Somebody only asks what there is; somebody sends nonsense, which is not repeated.
    let (status, offered) = notify(&server, &people[2], &json!({}));
    assert_eq!((status, &offered["channels"]), (200, &json!(["email", "sms", "push"])));
    assert_eq!(offered["notify"], Value::Null);
    for wrong in [
        email("nobody"),
        email("a@b\r\nBcc: planted-eve@example.org"),
        sms("12"),
        json!({ "channel": "pigeon", "address": "x" }),
        json!({ "channel": "push", "subscription": { "endpoint": "x", "keys": {} } }),
    ] {
        let (status, said) = notify(&server, &people[2], &wrong);
        assert_eq!(status, 400, "{said}");
        assert!(!said.to_string().contains("planted"), "{said}");
    }
    // Two by e-mail, two by text message, one by push; nobody is near yet.
    let push = json!({ "channel": "push", "subscription": at["subscription"] });
    let wishes = [
        (2, email("planted-ana@example.org")),
        (3, sms("+4915112345678")),
        (4, push),
        (5, sms("+4915112345000")),
        (6, email("planted-eve@example.org")),
    ];
    for (who, wish) in &wishes {
        let (status, said) = notify(&server, &people[*who], wish);
        assert_eq!((status, &said["notify"]), (200, &json!("waiting")), "{who}: {said}");
    }
    assert_eq!((kept(&server), planted_in(&server.data)), (5, vec![]), "sealed");
    // One changes their mind.
    let (_, said) = notify(&server, &people[6], &json!({ "channel": "none" }));
    assert_eq!((&said["notify"], kept(&server)), (&Value::Null, 4));
    // One enters, and the one behind the next is near.
    admit(&server, 1);
    let mail = carriers.reads("an e-mail", |it| it["by"] == "email");
    assert_eq!(mail["to"], json!(["planted-ana@example.org"]));
    assert_eq!(mail["subject"], "Your turn comes near: Spring sale");
    assert_eq!(mail["sender"], "Waiting room <queue@shop.example>");
    let text = mail["text"].as_str().expect("a text");
    assert!(
        text.contains("1 person is before you") && text.contains("shop.example/spring"),
        "{text}"
    );
    soon("it is marked", || {
        (notify(&server, &people[2], &json!({})).1["notify"] == "sent").then_some(())
    });
    // Whoever had their message cannot have another sent, to nobody.
    let (_, said) = notify(&server, &people[2], &email("planted-eve@example.org"));
    assert_eq!(said["notify"], "sent");
    admit(&server, 3);
    let text = carriers.reads("a text message", |it| it["by"] == "sms" && it["status"] == 201);
    assert_eq!(text["to"], "+4915112345678");
    let pushed = carriers.reads("a push message", |it| it["by"] == "push");
    let message = &pushed["message"];
    assert_eq!((&message["room"], &message["name"]), (&json!("sale"), &json!("Spring sale")));
    assert_eq!(
        (&message["ahead"], &message["title"]),
        (&json!(0), &json!("Your turn comes near: Spring sale"))
    );
    let body = message["body"].as_str().expect("a text");
    assert!(body.starts_with("You are next in line.") && !body.contains("://"), "{body}");
    assert_eq!(message["url"], "https://shop.example/spring", "a link is a field of its own");
    assert_eq!(pushed["claims"]["sub"], "mailto:ops@shop.example");
    assert_eq!(pushed["key"], offered["push_key"], "the key that pages are told");
    carriers.reads("the number that does not exist", |it| it["status"] == 404);
    let page =
        || curl(&[&format!("{}/metrics", server.admin), "-H", &format!("X-Api-Key: {KEY}")]).body;
    soon("all are counted", || {
        let page = page();
        let has = |line: &str| page.contains(line);
        (has(r#"waitroom_notices_total{channel="email",outcome="sent"} 1"#)
            && has(r#"waitroom_notices_total{channel="sms",outcome="failed"} 1"#)
            && has(r#"waitroom_notices_total{channel="push",outcome="sent"} 1"#)
            && has(r#"waitroom_notices_waiting{room="sale"} 0"#))
        .then_some(())
    });
    // The sale ends, and with it every mark.
    assert!(server.operate("POST", "/admin/v1/rooms/sale/finish", "{}").status < 300);
    soon("nothing is left", || {
        // Those who were let in go their own way first.
        for visitor in &people[..5] {
            let token = format!("Authorization: Bearer {}", visitor["token"].as_str()?);
            server.post("/v1/rooms/sale/leave", &["-H", &token]);
        }
        (kept(&server) == 0).then_some(())
    });
    let log = server.operate("GET", "/admin/v1/rooms/sale/log?limit=1000", "").body;
    let audit = server.operate("GET", "/admin/v1/audit", "").body;
    assert_eq!(planted_in(&server.data), Vec::<String>::new());
    let mails = carriers.read().iter().filter(|it| it["by"] == "email").count();
    assert_eq!(mails, 1, "one message for one ticket");
    let said = server.stop();
    for (where_, text) in [("the log", log), ("the audit", audit), ("the server's lines", said)] {
        for word in PLANTED {
            assert!(!text.contains(word), "{word} in {where_}: {text}");
        }
    }
}

#[test]
fn a_room_that_was_not_told_to_asks_nobody_for_an_address() {
    let server = Instance::start();
    assert!(server.operate("PUT", "/admin/v1/rooms/sale", SALE).status < 300);
    let ana = joins(&server, "ana");
    let wish = json!({ "channel": "email", "address": "planted-ana@example.org" });
    let (status, said) = notify(&server, &ana, &wish);
    assert_eq!((status, &said["code"]), (404, &json!("not_found")), "{said}");
    server.stop();
}
