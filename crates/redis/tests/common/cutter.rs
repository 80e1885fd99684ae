//! A way to a server that can be cut: every connection through it ends at once, in the middle of
//! whatever it carried, and new ones may be made or not.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

#[derive(Debug, Clone)]
pub struct Cutter {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Both ends of every connection.
    open: Vec<TcpStream>,
    closed: bool,
    /// Answers of the server that are still let through; then everything is cut.
    answers_left: Option<u32>,
    /// Where the way leads.
    to: u16,
}

impl Cutter {
    /// A way to `port` of this machine.
    pub fn to(port: u16) -> Cutter {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let cutter = Cutter {
            port: listener.local_addr().expect("it is bound").port(),
            state: Arc::new(Mutex::new(State { to: port, ..State::default() })),
        };
        let state = cutter.state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let mut known = state.lock().expect("nobody panics while holding it");
                if known.closed {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", known.to)) else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let both = [client.try_clone(), server.try_clone()];
                known.open.extend(both.into_iter().flatten());
                drop(known);
                carry(client.try_clone(), server.try_clone(), None);
                carry(server.try_clone(), client.try_clone(), Some(state.clone()));
            }
        });
        cutter
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends every connection now.
    pub fn cut(&self) {
        self.state().cut();
    }

    /// Lets the server answer so often, then ends every connection: what it did last was done and
    /// not told.
    pub fn cut_after(&self, answers: u32) {
        self.state().answers_left = Some(answers);
    }

    /// Nobody comes through until it is opened.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.cut();
    }

    pub fn open(&self) {
        let mut state = self.state();
        state.closed = false;
        state.answers_left = None;
    }

    /// From now on the way leads to another server: what a virtual address does.
    pub fn lead_to(&self, port: u16) {
        let mut state = self.state();
        state.to = port;
        state.cut();
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }
}

impl State {
    fn cut(&mut self) {
        for stream in self.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Whether an answer may pass.
    fn may_answer(&mut self) -> bool {
        match &mut self.answers_left {
            None => true,
            Some(0) => {
                self.answers_left = None;
                self.cut();
                false
            }
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

fn carry(
    from: std::io::Result<TcpStream>,
    to: std::io::Result<TcpStream>,
    answers: Option<Arc<Mutex<State>>>,
) {
    let (Ok(mut from), Ok(mut to)) = (from, to) else { return };
    let _ = to.set_write_timeout(Some(Duration::from_secs(10)));
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let may = |state: &Arc<Mutex<State>>| {
                state.lock().expect("nobody panics while holding it").may_answer()
            };
            if !answers.as_ref().is_none_or(may) || to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}
