//! A line: what must be durable, in the order in which it was asked for.
//!
//! Lives here: the queue and the task behind it. All that gathers while one group is on its way is
//! the next group: one pipeline, one wait for the replicas. A room is always in the same line, so
//! its order holds; rooms of different servers are in different lines, so that one server that is
//! away holds up only its own.
//! Stays out: what is sent, and what the answers mean (`group.rs`).

use std::sync::Arc;

use redis::Value;
use tokio::sync::{mpsc, oneshot};
use waitroom_store::{AppendError, Appended, Batch, Head, Lease, RoomName};

use crate::{
    ask::Asker,
    group::Runner,
    keys::{Keys, SLOTS, slot},
    known::Known,
    now::Now,
    script::Call,
    trouble::Trouble,
};

/// Lines in a Cluster. Servers mostly have slots in a few long ranges, so most lines meet one
/// server only; more lines than that would only make groups smaller.
const LINES: usize = 16;
/// Requests in one group: what a server does well within a millisecond or two.
const GROUP_MAX: usize = 256;

/// Something that is answered when it is durable.
#[derive(Debug)]
pub enum Job {
    Append(Append),
    Change { call: Call, answer: oneshot::Sender<Result<Value, Trouble>> },
}

#[derive(Debug)]
pub struct Append {
    pub room: RoomName,
    pub lease: Lease,
    pub expected: Head,
    pub batch: Batch,
    pub answer: oneshot::Sender<Result<Appended, AppendError>>,
}

#[derive(Debug)]
pub struct Lines(Vec<mpsc::Sender<Job>>);

impl Lines {
    /// Must be called within a runtime, which runs them until the lines are dropped.
    pub fn start(asker: &Arc<Asker>, known: &Arc<Known>, keys: &Keys, now: &Now) -> Lines {
        let lines = if asker.place.is_cluster() { LINES } else { 1 };
        let line = |_| {
            let (jobs, queue) = mpsc::channel(asker.options.queue_max);
            let runner = Runner::new(asker.clone(), known.clone(), keys.clone(), now.clone());
            tokio::spawn(run(queue, runner));
            jobs
        };
        Lines((0..lines).map(line).collect())
    }

    fn line(&self, key: &str) -> &mpsc::Sender<Job> {
        &self.0[usize::from(slot(key)) * self.0.len() / usize::from(SLOTS)]
    }

    /// Puts an append into its line at once, or refuses it at once.
    pub fn append(&self, key: &str, append: Append) {
        if let Err(error) = self.line(key).try_send(Job::Append(append)) {
            let (mpsc::error::TrySendError::Full(Job::Append(append))
            | mpsc::error::TrySendError::Closed(Job::Append(append))) = error
            else {
                return;
            };
            let why = "too much waits to be written to Redis".into();
            let _ = append.answer.send(Err(AppendError::Refused { why }));
        }
    }

    /// Does something, and answers when it is durable.
    pub async fn change(&self, call: Call) -> Result<Value, Trouble> {
        let (answer, answered) = oneshot::channel();
        let line = self.line(call.key()).clone();
        let closed = |_| Trouble::Away("the store is closed".into());
        line.send(Job::Change { call, answer }).await.map_err(closed)?;
        let lost = |_| Trouble::Unknown("the store was closed meanwhile".into());
        answered.await.map_err(lost)?
    }
}

async fn run(mut queue: mpsc::Receiver<Job>, mut runner: Runner) {
    let mut jobs = Vec::with_capacity(GROUP_MAX);
    loop {
        if runner.has_commits() {
            // Others wait to see what is durable: with the next group, or at once without one.
            while jobs.len() < GROUP_MAX
                && let Ok(job) = queue.try_recv()
            {
                jobs.push(job);
            }
        } else if queue.recv_many(&mut jobs, GROUP_MAX).await == 0 {
            return;
        }
        runner.run(std::mem::take(&mut jobs)).await;
    }
}
