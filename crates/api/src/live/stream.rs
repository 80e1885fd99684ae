//! Server-sent events: the letters of a mailbox as the body of an answer.

use std::task::{Context, Poll};

use bytes::Bytes;

use super::hub::Subscription;
use super::mailbox::Letter;

#[derive(Debug)]
pub struct Stream {
    subscription: Subscription,
    ended: bool,
}

impl Stream {
    pub fn new(subscription: Subscription) -> Stream {
        Stream { subscription, ended: false }
    }

    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.subscription.mailbox.poll_take(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Letter::Frame(frame)) => Poll::Ready(Some(frame)),
            // A comment keeps proxies from closing a quiet stream, and finds dead sockets.
            Poll::Ready(Letter::Ping) => Poll::Ready(Some(Bytes::from_static(b": still here\n\n"))),
            Poll::Ready(Letter::Goodbye(goodbye)) => {
                self.ended = true;
                Poll::Ready(goodbye)
            }
        }
    }
}
