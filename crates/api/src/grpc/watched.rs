//! `grpc.health.v1` watched: how it stands now, then that it drains, then the end. A stream that
//! stayed open would hold up the drain.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::watch;
use tonic::Status;
use tonic::codegen::tokio_stream::Stream;
use tonic_health::pb::HealthCheckResponse;

use super::health::serving;
use crate::desk::Pending;

pub struct Watched {
    step: Step,
}

enum Step {
    First(watch::Receiver<bool>),
    UntilDrain(Pending<'static, ()>),
    Over,
}

impl Watched {
    pub fn new(draining: watch::Receiver<bool>) -> Watched {
        Watched { step: Step::First(draining) }
    }
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl Stream for Watched {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let me = self.get_mut();
        let draining = match &mut me.step {
            Step::First(draining) => {
                let mut draining = draining.clone();
                let now = *draining.borrow();
                me.step = Step::UntilDrain(Box::pin(async move {
                    let _gone_is_drained = draining.wait_for(|draining| *draining).await;
                }));
                now
            }
            Step::UntilDrain(drained) => {
                ready!(drained.as_mut().poll(context));
                true
            }
            Step::Over => return Poll::Ready(None),
        };
        if draining {
            me.step = Step::Over;
        }
        Poll::Ready(Some(Ok(serving(draining))))
    }
}
