//! Waiting for many sockets at once.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::failure::{OrFail, Outcome};

/// Sockets by number, and which of them have something to read.
pub struct Poll {
    epoll: OwnedFd,
    ready: Vec<epoll::Event>,
}

impl std::fmt::Debug for Poll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poll").field("epoll", &self.epoll).finish_non_exhaustive()
    }
}

/// Ready ones that are told of at a time.
const READY_MAX: usize = 1_024;

impl Poll {
    pub fn new() -> Outcome<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).or_fail(|| "make an epoll")?;
        Ok(Self { epoll, ready: Vec::with_capacity(READY_MAX) })
    }

    pub fn add(&self, socket: impl AsFd, number: u64) -> Outcome {
        let data = epoll::EventData::new_u64(number);
        epoll::add(&self.epoll, socket, data, epoll::EventFlags::IN).or_fail(|| "watch a socket")
    }

    pub fn remove(&self, socket: impl AsFd) -> Outcome {
        epoll::delete(&self.epoll, socket).or_fail(|| "forget a socket")
    }

    /// Waits until some have something to read, or `patience` ends; how many have.
    pub fn wait(&mut self, patience: Option<Duration>) -> Outcome<usize> {
        let patience = patience.map(|it| Timespec::try_from(it).expect("seconds are a time"));
        self.ready.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.ready), patience.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(self.ready.len()),
            Err(error) => Err(error).or_fail(|| "wait for sockets"),
        }
    }

    /// The number of the one at `index` among those that the last wait found.
    pub fn ready(&self, index: usize) -> u64 {
        self.ready[index].data.u64()
    }
}
