//! What every proxy with our verdict must keep, whichever it is.

use serde_json::Value;

use crate::house::House;
use crate::instance::{Got, curl, soon};
use crate::origin::Origin;
use crate::part::{Part, deployed};

/// What `deploy/` says, and two more rooms: one whose passes are worth nothing here, one whose
/// passes are soon over.
fn rooms() -> String {
    deployed("waitroom.toml", &[("10/s", "100/s"), ("public = \"127.0.0.1:8080\"\n", "")])
        + "[rooms.other]\nrate = \"100/s\"\n\
           [rooms.brief]\nrate = \"100/s\"\nsession_timeout = \"6s\"\nsession_renewal = false\n"
}

/// What happens while waitroom cannot be asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Alone {
    /// It asks about each request, so this is what everybody gets.
    NobodyComesIn { status: u16 },
    /// It checks signatures by itself, and knows of nothing else.
    HoldersComeIn,
}

/// Starts a proxy before a shop at this address, which asks this waitroom about a room.
pub type Start = fn(room: &str, house: &House, shop: &str) -> Part;

/// Goes through the whole list with a proxy.
pub fn only_holders_come_in(start: Start, alone: Alone) {
    let (house, origin) = (House::serve(&rooms()), Origin::start());
    let shop = origin.address.to_string();
    let proxy = start("default", &house, &shop);
    let front = Front { url: proxy.url(), origin: &origin };
    front.a_stranger_waits();
    front.without_javascript_one_joins_waits_and_enters();
    let pass = front.a_holder_comes_in(alone);
    front.no_other_pass_will_do(&pass);
    front.no_word_of_a_visitor_chooses_room_or_address();
    front.an_ended_session_is_out(alone);
    let brief = start("brief", &house, &shop);
    Front { url: brief.url(), ..front }.a_pass_ends();

    drop(house);
    let got = curl(&[&format!("{}/seen", proxy.url()), "-H", &pass]);
    let expected = match alone {
        Alone::NobodyComesIn { status } => status,
        Alone::HoldersComeIn => 200,
    };
    assert_eq!(got.status, expected, "{got:?}");
}

#[derive(Clone)]
struct Front<'a> {
    url: String,
    origin: &'a Origin,
}

impl Front<'_> {
    fn get(&self, path: &str, more: &[&str]) -> Got {
        curl(&[&["--path-as-is", &format!("{}{path}", self.url)], more].concat())
    }

    /// The answer to somebody who must wait, of which the shop heard nothing.
    fn waits(&self, path: &str, more: &[&str]) -> Got {
        let before = self.origin.asked();
        let got = self.get(path, more);
        assert_eq!(self.origin.asked(), before, "the shop was asked: {path} {more:?} {got:?}");
        assert!(matches!(got.status, 303 | 403 | 503), "{path} {more:?} {got:?}");
        got
    }

    /// A pass of somebody who really joined and claimed, as a header.
    fn visitor(&self, room: &str) -> (String, Value) {
        let address = |verb: &str| format!("{}/.waitroom/v1/rooms/{room}/{verb}", self.url);
        let joined = curl(&["-X", "POST", &address("join")]);
        assert_eq!(joined.status, 201, "{joined:?}");
        let joined = joined.json();
        let bearer =
            format!("Authorization: Bearer {}", joined["token"].as_str().expect("a token"));
        let claimed = soon("the visitor's turn", || {
            let got = curl(&["-X", "POST", &address("claim"), "-H", &bearer]);
            (got.status == 200).then(|| got.json())
        });
        (format!("Waitroom-Pass: {}", claimed["pass"].as_str().expect("a pass")), joined)
    }

    fn a_stranger_waits(&self) {
        let got = self.waits("/some/page?x=1", &["-H", "Accept: text/html"]);
        let there = "/.waitroom/wait?to=";
        match got.header("location") {
            Some(to) => assert!(to.starts_with(there), "{got:?}"),
            None => assert!(got.body.contains(there) && got.body.contains("<h1"), "{got:?}"),
        }
        self.waits("/some/page", &["-X", "POST", "-d", "x=1"]);
        assert!(self.waits("/", &["-I"]).body.is_empty());
    }

    fn without_javascript_one_joins_waits_and_enters(&self) {
        let jar = crate::part::folder("jar").join("cookies");
        let jar = jar.to_str().expect("a path");
        let mut next = "/.waitroom/wait?to=/seen".to_owned();
        let seen = soon("the shop's own page", || {
            let got = self.get(&next, &["-c", jar, "-b", jar]);
            match got.header("location") {
                Some(to) => next = to,
                None if got.body.contains("GET /seen HTTP/1.1") => return Some(got),
                None => assert_eq!(got.status, 200, "{got:?}"),
            }
            None
        });
        assert_eq!(seen.status, 200);
        assert!(seen.body.contains("wr-pass-default="), "the shop may check it too: {seen:?}");
    }

    fn a_holder_comes_in(&self, alone: Alone) -> String {
        let (pass, joined) = self.visitor("default");
        let lies = ["-H", "Waitroom-Ticket: mine", "-H", "Waitroom-Room: mine"];
        let got = self.get("/seen?a=b", &[&["-H", pass.as_str()][..], &lies].concat());
        assert_eq!(got.status, 200, "{got:?}");
        let body = got.body.to_ascii_lowercase();
        let ticket = joined["ticket"].as_str().expect("an id");
        assert!(body.contains("get /seen?a=b http/1.1"), "{got:?}");
        assert!(body.contains(&format!("waitroom-ticket: {ticket}\r\n")), "{got:?}");
        assert!(!body.contains("mine"), "{got:?}");
        // What waitroom gives those inside comes through: so does a renewed pass.
        let given = got.header("set-cookie").unwrap_or_default();
        let asks = alone != Alone::HoldersComeIn;
        assert_eq!(given.starts_with("wr-gate-default=wc1_"), asks, "{got:?}");
        let cookie = pass.replace("Waitroom-Pass: ", "Cookie: wr-pass-default=");
        assert_eq!(self.get("/seen", &["-H", &cookie]).status, 200, "a browser's way");
        let posted = self.get("/seen", &["-H", &pass, "-X", "POST", "-d", "so=much"]);
        assert!(posted.status == 200 && posted.body.ends_with("so=much"), "{posted:?}");
        pass
    }

    /// At once where waitroom is asked; else when the pass is over.
    fn an_ended_session_is_out(&self, alone: Alone) {
        let (pass, joined) = self.visitor("default");
        let ask = || self.get("/seen", &["-H", &pass]).status == 200;
        assert!(ask());
        let ticket = joined["ticket"].as_str().expect("an id");
        let bearer =
            format!("Authorization: Bearer {}", joined["token"].as_str().expect("a token"));
        let url = format!("{}/.waitroom/v1/sessions/{ticket}/complete", self.url);
        let done = curl(&["-X", "POST", &url, "-H", &bearer]);
        assert_eq!(done.status, 200, "{done:?}");
        match alone {
            Alone::NobodyComesIn { .. } => soon("they are out", || (!ask()).then_some(())),
            Alone::HoldersComeIn => assert!(ask(), "it cannot know"),
        }
    }

    fn no_other_pass_will_do(&self, pass: &str) {
        // Each part altered: a letter in the middle, so that no stray bits are all that changed.
        let text = pass.strip_prefix("Waitroom-Pass: ").expect("a pass");
        let parts: Vec<&str> = text.split('.').collect();
        for altered in 0..3 {
            let mut parts: Vec<String> = parts.iter().map(|&it| it.to_owned()).collect();
            let at = parts[altered].len() / 2;
            let other = if parts[altered].as_bytes()[at] == b'A' { "B" } else { "A" };
            parts[altered].replace_range(at..=at, other);
            self.waits("/seen", &["-H", &format!("Waitroom-Pass: {}", parts.join("."))]);
        }
        // {"alg":"none","typ":"JWT"} with the same claims, with and without something behind.
        let none = format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{}", parts[1]);
        for forged in [format!("{none}."), none.clone(), format!("{none}.{}", parts[2])] {
            self.waits("/seen", &["-H", &format!("Waitroom-Pass: {forged}")]);
            self.waits("/seen", &["-H", &format!("Cookie: wr-pass-default={forged}")]);
        }
        for nonsense in ["", ".", "..", "a.b.c", "wc1_x"] {
            self.waits("/seen", &["-H", &format!("Cookie: wr-pass-default={nonsense}")]);
        }
        let (foreign, _) = self.visitor("other");
        self.waits("/seen", &["-H", &foreign]);
    }

    /// With a pass of another room, whatever is said besides.
    fn no_word_of_a_visitor_chooses_room_or_address(&self) {
        let (foreign, _) = self.visitor("other");
        for path in
            ["/seen?room=other&as=status", "/seen?as=status&room=other", "/other/status/seen"]
        {
            self.waits(path, &["-H", &foreign]);
        }
        for lie in [
            "X-Original-URI: /free",
            "X-Original-URL: /free?room=other",
            "X-Forwarded-Uri: /free",
            "X-Original-Method: OPTIONS",
            "X-Forwarded-Method: OPTIONS",
            "X-Original-Host: free.example",
            "X-Forwarded-Host: free.example",
            "Waitroom-Room: other",
            "Waitroom-Ticket: mine",
            "X-Envoy-Original-Path: /.waitroom/",
            "X-Rewrite-Url: /.waitroom/",
        ] {
            self.waits("/seen", &["-H", &foreign, "-H", lie]);
        }
        // Our own addresses lead to us, however they are spelled, and never to the shop.
        for path in ["/.waitroom/../seen", "/.waitroom/%2e%2e/seen", "/.waitroom/..%2fseen"] {
            let before = self.origin.asked();
            let got = self.get(path, &[]);
            assert_eq!(self.origin.asked(), before, "{path}: {got:?}");
        }
    }

    /// This front is before the room whose passes are soon over.
    fn a_pass_ends(&self) {
        let (pass, _) = self.visitor("brief");
        assert_eq!(self.get("/seen", &["-H", &pass]).status, 200);
        soon("the pass is over", || {
            (self.get("/seen", &["-H", &pass]).status != 200).then_some(())
        });
        self.waits("/seen", &["-H", &pass]);
    }
}
