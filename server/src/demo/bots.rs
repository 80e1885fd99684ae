//! What bots try at the demo, over and over, and what becomes of it. All of it must be refused.
//!
//! | bot | tries |
//! |---|---|
//! | gatecrasher | the shop's own address, with no pass at all, past the gate |
//! | line jumper | the shop's path through the gate, without a pass |
//! | forger | passes that nobody signed, with keys that never were, or that say `alg: none` |
//! | hoarder | many places from one address |
//! | poller | its place, many times a second |
//!
//! The crowd's own mischief (altered tokens, tickets of other rooms, double joins) comes besides.
//! To add a bot: a function, a line in [`run`], its row in the report.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use base64::Engine as _;
use tokio::sync::watch;

use super::story::ROOM;
use super::wire::Browser;

/// Where they try.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    pub gate: SocketAddr,
    pub shop: SocketAddr,
}

#[derive(Debug, Default)]
pub struct Tries {
    pub gatecrasher: Kind,
    pub line_jumper: Kind,
    pub forger: Kind,
    pub hoarder: Kind,
    pub poller: Kind,
}

/// What one kind of bot came to.
#[derive(Debug, Default)]
pub struct Kind {
    pub tried: AtomicU64,
    pub refused: AtomicU64,
    /// Got in, or got what only people should get.
    pub through: AtomicU64,
}

impl Kind {
    fn note(&self, refused: bool) {
        self.tried.fetch_add(1, Relaxed);
        let count = if refused { &self.refused } else { &self.through };
        count.fetch_add(1, Relaxed);
    }

    pub fn numbers(&self) -> [u64; 3] {
        [&self.tried, &self.refused, &self.through].map(|it| it.load(Relaxed))
    }
}

impl Tries {
    pub fn kinds(&self) -> [(&'static str, &Kind); 5] {
        [
            ("gatecrasher", &self.gatecrasher),
            ("line_jumper", &self.line_jumper),
            ("forger", &self.forger),
            ("hoarder", &self.hoarder),
            ("poller", &self.poller),
        ]
    }

    pub fn refused(&self) -> u64 {
        self.kinds().iter().map(|(_, kind)| kind.numbers()[1]).sum()
    }

    /// Who got in without a pass: none of these ever may.
    pub fn got_in(&self) -> u64 {
        [&self.gatecrasher, &self.line_jumper, &self.forger].iter().map(|it| it.numbers()[2]).sum()
    }
}

/// All bots, until the end.
pub async fn run(to: Targets, every: Duration, tries: Arc<Tries>, mut end: watch::Receiver<bool>) {
    let bots = async {
        tokio::join!(
            gatecrash(to, every, &tries.gatecrasher),
            jump(to, every, &tries.line_jumper),
            forge(to, every, &tries.forger),
            hoard(to, every, &tries.hoarder),
            poll(to, every, &tries.poller),
        )
    };
    tokio::select! {
        _ = bots => {}
        _ = end.wait_for(|end| *end) => {}
    }
}

const SEATS: &str = "seat=1&seat=2&seat=3&seat=4";

async fn gatecrash(to: Targets, every: Duration, kind: &Kind) {
    loop {
        tokio::time::sleep(every).await;
        // The headers that the gate would write are no proof, and cost nothing to write.
        let mut bot = Browser::new(to.shop)
            .with("waitroom-ticket", "f6c27f05-d2af-f92a-5843-7f42f274da53")
            .with("waitroom-room", ROOM);
        if let Ok(got) = bot.post("/reserve", SEATS).await {
            kind.note(got.status == 403 || got.status == 503);
        }
        if let Ok(got) = bot.get("/").await {
            kind.note(got.status == 403 || got.status == 503);
        }
    }
}

async fn jump(to: Targets, every: Duration, kind: &Kind) {
    loop {
        tokio::time::sleep(every).await;
        let mut bot = Browser::new(to.gate).coming_from(Some("10.66.0.1".into()));
        for path in ["/reserve", "/pay", "/%72eserve", "//reserve"] {
            if let Ok(got) = bot.post(path, SEATS).await {
                kind.note(is_turned_away(got.status));
            }
        }
    }
}

/// 503 and 429 are the waiting page, 401 and 403 say no, 400 is no request at all.
fn is_turned_away(status: u16) -> bool {
    matches!(status, 400 | 401 | 403 | 429 | 503)
}

async fn forge(to: Targets, every: Duration, kind: &Kind) {
    let claims = |room: &str| {
        let claims = format!(
            "{{\"sub\":\"f6c27f05-d2af-f92a-5843-7f42f274da53\",\"room\":\"{room}\",\"iat\":1,\"exp\":99999999999}}"
        );
        base64url(claims.as_bytes())
    };
    let heads = [
        r#"{"alg":"none","typ":"JWT"}"#,
        r#"{"alg":"HS256","typ":"JWT","kid":"a"}"#,
        r#"{"alg":"ES256","typ":"JWT","kid":"a"}"#,
    ];
    let signatures = ["".to_owned(), base64url(&[0; 64]), base64url(&[7; 64])];
    for round in 0.. {
        tokio::time::sleep(every).await;
        let head = base64url(heads[round % heads.len()].as_bytes());
        let signature = &signatures[round / heads.len() % signatures.len()];
        let pass = format!("{head}.{}.{signature}", claims(ROOM));
        let mut bot = Browser::new(to.gate)
            .coming_from(Some("10.66.0.2".into()))
            .with("waitroom-pass", pass.clone());
        if let Ok(got) = bot.post("/reserve", SEATS).await {
            kind.note(is_turned_away(got.status));
        }
        // At the shop's own door too.
        let mut bot = Browser::new(to.shop).with("waitroom-pass", pass);
        if let Ok(got) = bot.post("/reserve", SEATS).await {
            kind.note(got.status == 403 || got.status == 503);
        }
    }
}

/// From one address. Families share one, so some places are given; the rest is refused.
async fn hoard(to: Targets, every: Duration, kind: &Kind) {
    loop {
        tokio::time::sleep(every / 4).await;
        let mut bot = Browser::new(to.gate).coming_from(Some("10.66.0.3".into()));
        let join = format!("/.waitroom/v1/rooms/{ROOM}/join");
        if let Ok(got) = bot.post(&join, "").await {
            kind.note(!matches!(got.status, 200 | 201));
        }
    }
}

async fn poll(to: Targets, every: Duration, kind: &Kind) {
    loop {
        tokio::time::sleep(every).await;
        let mut bot = Browser::new(to.gate).coming_from(Some("10.66.0.4".into()));
        let join = format!("/.waitroom/v1/rooms/{ROOM}/join");
        let Ok(joined) = bot.post(&join, "").await else { continue };
        let joined: serde_json::Value = serde_json::from_str(&joined.body).unwrap_or_default();
        let Some(token) = joined["token"].as_str() else {
            tokio::time::sleep(every * 20).await;
            continue;
        };
        let mut bot = bot.with("authorization", format!("Bearer {token}"));
        // A minute's worth of looks at once, and as many again: the second half is too much.
        for _ in 0..120 {
            let status = format!("/.waitroom/v1/rooms/{ROOM}/status");
            if let Ok(got) = bot.get(&status).await {
                kind.note(got.status == 429);
            }
            tokio::time::sleep(every / 40).await;
        }
        // A bot that was caught comes back as another.
        tokio::time::sleep(every * 20).await;
    }
}

fn base64url(bytes: &[u8]) -> String {
    base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
