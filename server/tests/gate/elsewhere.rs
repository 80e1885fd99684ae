//! Two gates before one site, as two processes: one runs the room, the other asks it. A slot is
//! free only when neither can accept its pass any more, also while the other one is cut off.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::house::House;
use crate::instance::{KEY, soon};
use crate::origin::Origin;

/// A wire between two processes that can be cut.
struct Wire {
    address: SocketAddr,
    cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    fn to(url: &str) -> Wire {
        let target = url.strip_prefix("http://").expect("a plain address").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let wire = Wire { address, cut: Arc::default(), open: Arc::default() };
        let (cut, open) = (wire.cut.clone(), wire.open.clone());
        std::thread::spawn(move || {
            for here in listener.incoming().flatten() {
                let Ok(there) = TcpStream::connect(&target) else { continue };
                let mut open = open.lock().expect("nobody panics with it");
                if cut.load(SeqCst) {
                    continue;
                }
                for (from, to) in [(&here, &there), (&there, &here)] {
                    let (from, to) = (from.try_clone().expect("one"), to.try_clone().expect("one"));
                    open.push(from.try_clone().expect("one"));
                    std::thread::spawn(move || pump(from, to));
                }
            }
        });
        wire
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn cut(&self) {
        let open = self.open.lock().expect("nobody panics with it");
        self.cut.store(true, SeqCst);
        open.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 4_096];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

struct Two {
    owner: House,
    edge: House,
    wires: [Wire; 2],
    key: PathBuf,
}

impl Two {
    /// A room for one, whose sessions last this long.
    fn start(session: &str) -> Two {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let origin = Origin::start();
        let owner = House::serve(&format!(
            "[rooms.default]\nrate = \"100/s\"\nmax_active = 1\nsession_timeout = \"{session}\"\n\
             session_renewal = false\npass_leeway = \"2s\"\n[sites.shop]\nroom = \"default\"\n\
             origins = [\"{}\"]\nonly_way_in = true\ngates = [\"edge\"]\n",
            origin.url()
        ));
        let key = format!("key-{}-{}", std::process::id(), COUNT.fetch_add(1, SeqCst));
        let key = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(key);
        std::fs::write(&key, format!("{KEY}\n")).expect("a file");
        let wires = [Wire::to(&owner.url), Wire::to(&owner.admin)];
        let edge = Two::gate("edge", &origin, &wires, &key);
        Two { owner, edge, wires, key }
    }

    fn gate(name: &str, origin: &Origin, wires: &[Wire; 2], key: &std::path::Path) -> House {
        House::serve(&format!(
            "[sites.shop]\nroom = \"default\"\norigins = [\"{}\"]\nchecked_for = \"1h\"\n\
             room_at = \"{}\"\nroom_admin_at = \"{}\"\nroom_key_file = \"{}\"\ngate_name = \"{name}\"\n",
            origin.url(),
            wires[0].url(),
            wires[1].url(),
            key.display()
        ))
    }

    /// Somebody who joined and claimed at the gate elsewhere and is inside at both, and the next.
    fn one_inside_and_one_waiting(&self) -> (Value, String, Value) {
        let ticket = self.edge.join();
        let claimed = soon("the visitor's turn", || {
            let got = self.edge.claim(&ticket);
            (got.status == 200).then(|| got.json())
        });
        let pass = format!("Waitroom-Pass: {}", claimed["pass"].as_str().expect("a pass"));
        soon("the gate elsewhere has heard the owner", || accepts(&self.edge, &pass).then_some(()));
        assert!(accepts(&self.owner, &pass));
        let next = self.owner.join();
        assert_eq!(self.status(&next), "waiting", "one is inside");
        (ticket, pass, next)
    }

    fn status(&self, ticket: &Value) -> String {
        let token = ticket["token"].as_str().expect("a token");
        let bearer = format!("Authorization: Bearer {token}");
        let got = self.owner.get("/.waitroom/v1/rooms/default/status", &["-H", &bearer]);
        got.json()["status"].as_str().expect("a status").to_owned()
    }

    fn revoke(&self, ticket: &Value) {
        let id = ticket["ticket"].as_str().expect("an id");
        let path = format!("/admin/v1/rooms/default/tickets/{id}/revoke");
        let done = self.owner.operate("POST", &path, "{}");
        assert!(done.status < 300, "{done:?}");
    }

    /// Until the next is let in; then neither gate may accept the pass. Says how often the one
    /// elsewhere still accepted it.
    fn until_the_next_is_in(&self, pass: &str, next: &Value) -> usize {
        let (until, mut accepted) = (Instant::now() + Duration::from_secs(120), 0);
        loop {
            // In this order: a gate that refuses never accepts again.
            let status = self.status(next);
            let elsewhere = accepts(&self.edge, pass);
            if status == "admitted" {
                assert!(!elsewhere, "the slot was given away while a gate accepted its pass");
                assert!(!accepts(&self.owner, pass));
                return accepted;
            }
            accepted += usize::from(elsewhere);
            assert!(Instant::now() < until, "the slot was never free");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Two {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.key);
    }
}

fn accepts(gate: &House, pass: &str) -> bool {
    gate.get("/seen", &["-H", pass]).status == 200
}

fn signal(house: &House, name: &str) {
    let done = Command::new("kill").args([name, &house.child.id().to_string()]).status();
    assert!(done.is_ok_and(|status| status.success()));
}

#[test]
fn a_session_that_ended_frees_its_slot_as_soon_as_both_gates_refuse_it() {
    for completed in [true, false] {
        // Far longer than the test: only the word of both gates frees the slot.
        let two = Two::start("1h");
        let (ticket, pass, next) = two.one_inside_and_one_waiting();
        match completed {
            true => assert_eq!(two.owner.get("/complete", &["-H", &pass]).status, 200),
            false => two.revoke(&ticket),
        }
        two.until_the_next_is_in(&pass, &next);
        // One that begins afterwards heard nothing of it, and refuses all the same.
        let late = Two::gate("edge", &Origin::start(), &two.wires, &two.key);
        let got = soon("it has heard the owner", || {
            let got = late.get("/seen", &["-H", &pass, "-H", "Accept: application/json"]);
            (got.json()["code"] == "pass_required").then_some(got)
        });
        assert_eq!(got.status, 503);
    }
}

#[test]
fn while_the_other_gate_is_cut_off_the_slot_is_held_until_the_pass_is_over() {
    let two = Two::start("20s");
    let (ticket, pass, next) = two.one_inside_and_one_waiting();
    two.wires.iter().for_each(Wire::cut);
    two.revoke(&ticket);
    soon("the owner refuses it", || (!accepts(&two.owner, &pass)).then_some(()));
    let accepted = two.until_the_next_is_in(&pass, &next);
    assert!(accepted > 0, "the one that is cut off knows nothing of the end");
}

#[test]
fn while_the_other_gate_stands_still_nobody_gets_the_slot() {
    let two = Two::start("1h");
    let (ticket, pass, next) = two.one_inside_and_one_waiting();
    signal(&two.edge, "-STOP");
    two.revoke(&ticket);
    // The owner looks every second whether slots can be free.
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        assert_eq!(two.status(&next), "waiting");
    }
    signal(&two.edge, "-CONT");
    two.until_the_next_is_in(&pass, &next);
}

#[test]
fn a_session_that_ran_out_frees_its_slot_when_neither_gate_takes_its_pass() {
    let two = Two::start("20s");
    let (_, pass, next) = two.one_inside_and_one_waiting();
    two.until_the_next_is_in(&pass, &next);
}

#[test]
fn a_gate_elsewhere_has_the_worker_of_the_owners_pages() {
    let two = Two::start("1h");
    let path = "/.waitroom/push/worker.js?lang=fr";
    let (here, there) = (two.edge.get(path, &[]), two.owner.get(path, &[]));
    assert_eq!((here.status, &here.body), (200, &there.body), "{here:?}");
    for name in ["content-type", "cache-control", "content-security-policy"] {
        assert_eq!(here.header(name), there.header(name), "{name}");
    }
}

#[test]
fn a_gate_that_the_owner_does_not_know_lets_nobody_in() {
    let two = Two::start("1h");
    let (_, pass, _) = two.one_inside_and_one_waiting();
    let origin = Origin::start();
    let stranger = Two::gate("nobody", &origin, &two.wires, &two.key);
    // It has asked, and was told nothing.
    let path = "/admin/v1/rooms/default/gates/nobody";
    assert_eq!(two.owner.operate("GET", path, "").status, 404);
    for _ in 0..20 {
        assert!(!accepts(&stranger, &pass));
    }
    assert_eq!(origin.asked(), 0);
    // And it sends strangers to the owner's page, where they get a place in line.
    let page = stranger.get("/sale", &["-L", "-c", "/dev/null"]);
    assert_eq!(page.status, 303);
    assert!(page.body.contains("HTTP/1.1 200 OK") && page.body.contains("You are in line"));
}
