//! The threads of a file store: one that commits, one that reads, one for slow work.
//!
//! Lives here: the queue in front of the journal and the loop behind it. Whatever arrived while
//! the last sync ran is the next group: a lone request waits for one sync, a crowd shares one, and
//! there is no timer. Answers go out in the order of the requests.
//! Stays out: what a request does (`journal`).

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        mpsc::{SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use rustix::process::{getpriority_process, setpriority_process};
use tokio::sync::oneshot;

use crate::{
    disk::Disk,
    error::{AppendError, Error},
    file::{
        journal::Journal,
        outcome::{Control, Controlled, Failure, Staged},
        tidy::dispose,
    },
    lease::Lease,
    log::{Appended, Batch, Head},
    name::RoomName,
};

/// A group is closed at this size, so that the first of a great many need not wait for the last.
const GROUP_BYTES: usize = 4 << 20;
/// Reads or snapshots that may wait. Each has a caller who waits with it.
const DESK_MAX: usize = 4_096;

pub(crate) enum Request {
    Append {
        room: RoomName,
        lease: Lease,
        expected: Head,
        batch: Batch,
        answer: oneshot::Sender<Result<Appended, AppendError>>,
    },
    Control {
        control: Control,
        answer: oneshot::Sender<Result<Controlled, Error>>,
    },
    Seal {
        answer: oneshot::Sender<Result<Vec<u64>, Error>>,
    },
}

impl Request {
    fn bytes(&self) -> usize {
        match self {
            Request::Append { batch, .. } => batch.payload.len(),
            _ => 0,
        }
    }
}

/// Requests on their way to the journal.
struct Line {
    queue: Mutex<Queue>,
    arrived: Condvar,
    requests_max: usize,
    bytes_max: usize,
}

#[derive(Default)]
struct Queue {
    requests: Vec<Request>,
    bytes: usize,
    closed: bool,
    /// The journal's thread sleeps; otherwise waking it would be a system call for nothing.
    asleep: bool,
}

impl Line {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("nobody panics while changing the queue")
    }

    fn close(&self) {
        self.queue().closed = true;
        self.arrived.notify_all();
    }

    /// Moves everything that arrived into `taken`; false when there will be nothing more.
    fn take(&self, taken: &mut Vec<Request>, may_sleep: bool) -> bool {
        let mut queue = self.queue();
        while may_sleep && queue.requests.is_empty() && !queue.closed {
            queue.asleep = true;
            queue = self.arrived.wait(queue).expect("nobody panics while changing the queue");
        }
        queue.asleep = false;
        queue.bytes = 0;
        std::mem::swap(&mut queue.requests, taken);
        !(queue.closed && taken.is_empty())
    }
}

/// The commit thread, as the rest of the store sees it.
pub(crate) struct Committer {
    line: Arc<Line>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    pub fn start<D: Disk>(journal: Journal<D>, slow: Arc<Desk>) -> Committer {
        let options = &journal.shared().options;
        let line = Arc::new(Line {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            requests_max: options.queue_max,
            bytes_max: options.queue_bytes_max,
        });
        let closing = CloseOnExit(line.clone());
        let run = move || drive(journal, &closing.0, &slow);
        let thread = thread::Builder::new().name("waitroom-journal".into()).spawn(run);
        let thread = Some(thread.expect("a process that cannot start a thread cannot serve"));
        Committer { line, thread }
    }

    /// Puts a request in line, or gives it back when the line is full.
    pub fn send(&self, request: Request) -> Result<(), &'static str> {
        let mut queue = self.line.queue();
        if queue.closed {
            return Err("the store is closed");
        }
        let bytes = queue.bytes + request.bytes();
        if queue.requests.len() >= self.line.requests_max || bytes > self.line.bytes_max {
            return Err("too many requests wait for the disk");
        }
        queue.bytes = bytes;
        queue.requests.push(request);
        if queue.asleep {
            queue.asleep = false;
            drop(queue);
            self.line.arrived.notify_one();
        }
        Ok(())
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.line.close();
        if let Some(thread) = self.thread.take() {
            // A panic over there was printed there; waiting callers got `Unknown`.
            let _ = thread.join();
        }
    }
}

/// Should the thread panic, nobody must wait for ever: senders are dropped, new ones turned away.
struct CloseOnExit(Arc<Line>);

impl Drop for CloseOnExit {
    fn drop(&mut self) {
        if let Ok(mut queue) = self.0.queue.lock() {
            queue.closed = true;
            queue.requests.clear();
        }
    }
}

/// A staged request whose caller waits for the group.
enum Waiting {
    Append(oneshot::Sender<Result<Appended, AppendError>>, Result<Staged, AppendError>),
    Control(oneshot::Sender<Result<Controlled, Error>>, Result<Controlled, Error>),
}

fn drive<D: Disk>(mut journal: Journal<D>, line: &Line, slow: &Desk) {
    let mut requests = Vec::new();
    let mut waiting = Vec::new();
    let mut tidying = false;
    while line.take(&mut requests, !tidying) {
        for request in requests.drain(..) {
            match request {
                Request::Append { room, lease, expected, batch, answer } => {
                    let staged = journal.stage_append(&room, &lease, expected, &batch);
                    waiting.push(Waiting::Append(answer, staged));
                }
                Request::Control { control, answer } => {
                    waiting.push(Waiting::Control(answer, journal.stage(control)));
                }
                Request::Seal { answer } => {
                    commit(&mut journal, &mut waiting);
                    let sealed = journal.seal();
                    let _ = answer.send(sealed.map_err(|failure| Error::from(&failure)));
                }
            }
            if journal.staged_bytes() >= GROUP_BYTES {
                commit(&mut journal, &mut waiting);
            }
        }
        commit(&mut journal, &mut waiting);
        tidying = tidy(&mut journal, &mut |shared, number, len| {
            let shared = shared.clone();
            // If the desk is full, the file comes back at the next opening and is let go again.
            let _ = slow.send(move || dispose(&shared, number, len));
        });
    }
    journal.close();
}

fn commit<D: Disk>(journal: &mut Journal<D>, waiting: &mut Vec<Waiting>) {
    let group: Result<(), Failure> = journal.commit();
    // Whoever no longer waits has dropped the other end; that is theirs to decide.
    for waiting in waiting.drain(..) {
        match waiting {
            Waiting::Append(answer, staged) => {
                let _ = answer.send(Staged::settle(staged, &group));
            }
            Waiting::Control(answer, staged) => {
                let _ = answer.send(Controlled::settle(staged, &group));
            }
        }
    }
}

/// One step of housekeeping; true if there is more to do.
pub(crate) fn tidy<D: Disk>(
    journal: &mut Journal<D>,
    dispose: &mut impl FnMut(&Arc<crate::file::book::Shared<D>>, u64, u64),
) -> bool {
    for (number, len) in journal.detach_free() {
        dispose(journal.shared(), number, len);
    }
    journal.stage_carry() && journal.commit().is_ok()
}

type Job = Box<dyn FnOnce() + Send>;

/// Nicer than the rest by this. Linux keeps it for each thread, so the others are not touched.
const BACKGROUND_NICE: i32 = 10;

/// A thread that does one thing after another, for work that would hold others up.
pub(crate) struct Desk {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Desk {
    pub fn start(name: &str) -> Desk {
        Desk::with(name, || ())
    }

    /// A desk whose work can wait a little: on a busy machine it takes the processor when the room
    /// does not need it, or a tenth of it.
    pub fn in_the_background(name: &str) -> Desk {
        Desk::with(name, || {
            // Elsewhere it would be the whole process that becomes nicer.
            if cfg!(target_os = "linux") {
                let nicer = |nice: i32| setpriority_process(None, (nice + BACKGROUND_NICE).min(19));
                // Without the right to do so it is as loud as before, and nothing else is wrong.
                let _ = getpriority_process(None).and_then(nicer);
            }
        })
    }

    fn with(name: &str, prepare: impl FnOnce() + Send + 'static) -> Desk {
        let (jobs, inbox) = sync_channel::<Job>(DESK_MAX);
        let run = move || {
            prepare();
            inbox.iter().for_each(|job| job());
        };
        let thread = thread::Builder::new().name(format!("waitroom-{name}")).spawn(run);
        let thread = Some(thread.expect("a process that cannot start a thread cannot serve"));
        Desk { jobs: Some(jobs), thread }
    }

    pub fn send(&self, job: impl FnOnce() + Send + 'static) -> Result<(), &'static str> {
        let jobs = self.jobs.as_ref().expect("there until it is dropped");
        jobs.try_send(Box::new(job)).map_err(|_| "too many requests wait for the disk")
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) =
            self.thread.take().filter(|it| it.thread().id() != thread::current().id())
        {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn nice_of(desk: &Desk) -> i32 {
        let (tell, told) = mpsc::channel();
        desk.send(move || tell.send(getpriority_process(None)).expect("somebody waits"))
            .expect("the desk is idle");
        told.recv().expect("the desk does its work").expect("a thread may ask for its own")
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn slow_work_gives_way_to_the_room_and_nothing_else_does() {
        let own = getpriority_process(None).expect("a thread may ask for its own");
        let slow = Desk::in_the_background("slow");
        assert_eq!(nice_of(&slow), (own + BACKGROUND_NICE).min(19));
        assert_eq!(nice_of(&Desk::start("reading")), own);
        assert_eq!(getpriority_process(None).expect("a thread may ask for its own"), own);
    }
}
