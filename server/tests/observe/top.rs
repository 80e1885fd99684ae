//! `waitroom top`, as a script reads it and as a person sees it in a real terminal.

use std::process::{Command, Output};

use serde_json::Value;

use crate::instance::{Instance, KEY, soon};

fn top(server: &Instance, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .arg("top")
        .args(arguments)
        .env("WAITROOM_SERVER", &server.admin)
        .env("WAITROOM_ADMIN_KEY", KEY)
        .output()
        .expect("it runs")
}

#[test]
fn one_picture_is_for_scripts() {
    let server = Instance::start();
    (1..=3).for_each(|who| drop(server.join(who)));
    let shown = soon("the join is on the board", || {
        let told = top(&server, &["--once", "--every", "200ms", "--json"]);
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        let picture: Value = serde_json::from_slice(&told.stdout).expect("one object");
        (picture["rooms"][0]["waiting"] == 3.0).then_some(picture)
    });
    let room = &shown["rooms"][0];
    assert_eq!((&shown["ready"], &room["room"]), (&true.into(), &"default".into()));
    assert_eq!((&room["joined"], &room["slots_max"]), (&3.0.into(), &100_000.0.into()));
    let told = top(&server, &["--once", "--every", "200ms"]);
    let text = String::from_utf8(told.stdout).expect("text");
    let row = text.lines().find(|line| line.starts_with("default")).expect("the room's row");
    assert!(row.contains("running") && row.contains("by hand"), "{text}");
    let lost = top(&server, &[]);
    assert_eq!(lost.status.code(), Some(64), "no terminal, and not asked for one picture");
    assert!(String::from_utf8_lossy(&lost.stderr).contains("--once"));
}

/// A terminal of 80 by 24 on a tmux server of its own.
struct Tmux {
    socket: String,
}

impl Tmux {
    fn open(server: &Instance) -> Tmux {
        let tmux = Tmux { socket: format!("waitroom-{}", std::process::id()) };
        let program = env!("CARGO_BIN_EXE_waitroom");
        let command = format!(
            "env NO_COLOR=1 WAITROOM_SERVER={} WAITROOM_ADMIN_KEY={KEY} {program} top --every 200ms",
            server.admin
        );
        tmux.run(&["new-session", "-d", "-s", "top", "-x", "80", "-y", "24", &command]);
        tmux
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new("tmux")
            .args(["-L", &self.socket, "-f", "/dev/null"])
            .args(arguments)
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("tmux is needed for this test: apt-get install tmux")
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.run(&["capture-pane", "-p", "-t", "top"]).stdout).into_owned()
    }

    fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys", "-t", "top"], keys].concat());
    }

    fn see(&self, text: &str) -> String {
        soon(text, || Some(self.screen()).filter(|screen| screen.contains(text)))
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[test]
fn a_person_watches_pauses_and_resumes_in_a_real_terminal() {
    let server = Instance::start();
    (1..=3).for_each(|who| drop(server.join(who)));
    let tmux = Tmux::open(&server);
    let screen = tmux.see("in line   3");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    assert!(screen.contains("up, down: room   p: pause   r: resume   q: quit"), "{screen}");
    let paused = || {
        let room = server.operate("GET", "/admin/v1/rooms/default", "").json();
        (room["status"] == "paused").then(|| room["reason"].clone())
    };
    tmux.press(&["p"]);
    tmux.see("Pause default (Enter, or Esc)? Visitors read: _");
    tmux.press(&["-l", "Payment is down"]);
    tmux.see("Payment is down_");
    assert_eq!(paused(), None, "nothing happens before Enter");
    tmux.press(&["Enter"]);
    assert_eq!(soon("the pause", paused), "Payment is down");
    tmux.see("! paused: Payment is down");
    tmux.press(&["r"]);
    tmux.see("Resume default? y or n");
    tmux.press(&["y"]);
    soon("the resume", || paused().is_none().then_some(()));
    tmux.see("nothing is wrong");
    // The last picture stays when nobody answers.
    drop(server);
    let screen = tmux.see("NO ANSWER");
    assert!(screen.contains("in line   3") && screen.contains("what is shown is old"), "{screen}");
    tmux.press(&["q"]);
    soon("the end of top", || (!tmux.run(&["has-session"]).status.success()).then_some(()));
}
