//! One connection's letters: at most one personal frame, one board and one goodbye.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

#[derive(Debug, Default)]
pub struct Mailbox {
    letters: Mutex<Letters>,
    /// Seconds of the hub's clock at which the other side was last heard of.
    heard_s: AtomicU32,
}

#[derive(Debug, Default)]
struct Letters {
    personal: Option<Bytes>,
    board: Option<Bytes>,
    /// The last thing that is sent; after it the connection closes.
    goodbye: Option<Bytes>,
    over: bool,
    ping: bool,
    waker: Option<Waker>,
}

/// What a connection should send next.
#[derive(Debug, PartialEq, Eq)]
pub enum Letter {
    Frame(Bytes),
    Ping,
    /// Say this, if anything, and close.
    Goodbye(Option<Bytes>),
}

impl Mailbox {
    /// A newer personal frame takes the place of one that was not sent yet. Returns whether there
    /// was none: whether the reader keeps up.
    pub fn tell(&self, personal: Bytes) -> bool {
        let mut kept_up = false;
        self.put(|letters| kept_up = letters.personal.replace(personal).is_none());
        kept_up
    }

    /// Returns whether the last board had been taken: whether the reader keeps up.
    pub fn show(&self, board: Bytes) -> bool {
        let mut kept_up = false;
        self.put(|letters| kept_up = letters.board.replace(board).is_none());
        kept_up
    }

    pub fn ping(&self) {
        self.put(|letters| letters.ping = true);
    }

    pub fn close(&self, goodbye: Option<Bytes>) {
        self.put(|letters| {
            letters.goodbye = goodbye;
            letters.over = true;
        });
    }

    pub fn heard(&self, now_s: u32) {
        self.heard_s.fetch_max(now_s, Ordering::Relaxed);
    }

    pub fn heard_at(&self) -> u32 {
        self.heard_s.load(Ordering::Relaxed)
    }

    fn put(&self, change: impl FnOnce(&mut Letters)) {
        let waker = {
            let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut letters);
            letters.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next letter, the personal one first: "come in" must not wait behind a picture.
    pub fn poll_take(&self, context: &mut Context<'_>) -> Poll<Letter> {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(frame) = letters.personal.take().or_else(|| letters.board.take()) {
            return Poll::Ready(Letter::Frame(frame));
        }
        if letters.over {
            return Poll::Ready(Letter::Goodbye(letters.goodbye.take()));
        }
        if std::mem::take(&mut letters.ping) {
            return Poll::Ready(Letter::Ping);
        }
        match &mut letters.waker {
            Some(waker) if waker.will_wake(context.waker()) => {}
            waker => *waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(mailbox: &Mailbox) -> Option<Letter> {
        match mailbox.poll_take(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(letter) => Some(letter),
            Poll::Pending => None,
        }
    }

    fn frame(text: &'static str) -> Option<Letter> {
        Some(Letter::Frame(Bytes::from_static(text.as_bytes())))
    }

    #[test]
    fn a_slow_reader_is_skipped_to_the_newest_and_hears_of_itself_first() {
        let mailbox = Mailbox::default();
        assert!(mailbox.show("one".into()));
        assert!(!mailbox.show("two".into()), "the reader has not kept up");
        mailbox.tell("come".into());
        mailbox.tell("come in".into());
        mailbox.ping();
        assert_eq!(take(&mailbox), frame("come in"));
        assert_eq!(take(&mailbox), frame("two"));
        assert_eq!(take(&mailbox), Some(Letter::Ping));
        assert_eq!(take(&mailbox), None);
    }

    #[test]
    fn what_was_told_before_the_goodbye_is_still_sent() {
        let mailbox = Mailbox::default();
        mailbox.tell("news".into());
        mailbox.close(Some("bye".into()));
        assert_eq!(take(&mailbox), frame("news"));
        assert_eq!(take(&mailbox), Some(Letter::Goodbye(Some("bye".into()))));
        assert_eq!(take(&mailbox), Some(Letter::Goodbye(None)), "closed is for good");
    }
}
