//! An origin's answer on its way to the visitor: reads the connection it comes from, and gives
//! the connection back at the end.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::InFlight;
use super::chunks::{Chunks, Found};
use super::head::{Framing, Head};
use super::pool::Taken;
use crate::forward;

#[derive(Debug)]
pub struct OriginBody {
    /// Until the answer is whole.
    taken: Option<Taken>,
    left: Left,
    /// Whether the connection can be used again.
    stays: bool,
    entered: Option<InFlight>,
    idle_timeout: Duration,
    patient: bool,
}

/// What is still to come.
#[derive(Clone, Copy, Debug)]
enum Left {
    Bytes(u64),
    Chunks(Chunks),
    UntilClose,
}

type Error = Box<dyn std::error::Error + Send + Sync>;

impl OriginBody {
    pub fn new(head: &Head, taken: Taken, entered: InFlight, idle_timeout: Duration) -> OriginBody {
        let left = match head.framing {
            Framing::Length(bytes) => Left::Bytes(bytes),
            Framing::Chunked => Left::Chunks(Chunks::default()),
            Framing::UntilClose => Left::UntilClose,
        };
        OriginBody {
            taken: Some(taken),
            left,
            stays: head.stays,
            entered: Some(entered),
            idle_timeout,
            patient: false,
        }
    }

    /// The whole body, when it came with its head: then the origin is done with.
    pub fn whole(&mut self) -> Option<Option<Bytes>> {
        let Left::Bytes(bytes) = self.left else { return None };
        let read = &mut self.taken.as_mut()?.link.read;
        let length = usize::try_from(bytes).ok().filter(|length| *length <= read.len())?;
        let body = (length > 0).then(|| read.split_to(length).freeze());
        self.left = Left::Bytes(0);
        self.finish(true);
        Some(body)
    }

    /// No more will come. Of a whole answer the connection is kept, if it can be used again.
    fn finish(&mut self, whole: bool) {
        if let Some(taken) = self.taken.take()
            && whole
            && self.stays
        {
            taken.give_back();
        }
        self.entered = None;
    }

    fn frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Some(taken) = &mut self.taken else { return Poll::Ready(None) };
        let link = &mut taken.link;
        // The visitor may still be sending, and the origin answer as it hears.
        if link.poll_send(context).is_err() {
            return Poll::Ready(Some(Err("the visitor's body broke off".into())));
        }
        loop {
            let expected = match &mut self.left {
                Left::Bytes(0) => return Poll::Ready(None),
                Left::Bytes(left) => {
                    if !link.read.is_empty() {
                        let taken = usize::try_from(*left).unwrap_or(usize::MAX);
                        let data = link.read.split_to(taken.min(link.read.len())).freeze();
                        *left -= data.len() as u64;
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                    *left
                }
                Left::Chunks(chunks) => {
                    match chunks.next(&mut link.read).map_err(|_| "a bad chunk")? {
                        Found::Data(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                        Found::Trailers(mut trailers) => {
                            forward::trailers_to_visitor(&mut trailers);
                            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                        }
                        Found::End => return Poll::Ready(None),
                        Found::Nothing => u64::MAX,
                    }
                }
                Left::UntilClose => {
                    if !link.read.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(link.read.split().freeze()))));
                    }
                    u64::MAX
                }
            };
            let came = ready!(link.poll_more(context, expected))?;
            if came == 0 {
                return match self.left {
                    Left::UntilClose => Poll::Ready(None),
                    _ => Poll::Ready(Some(Err("the origin's answer broke off".into()))),
                };
            }
        }
    }
}

impl Body for OriginBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let me = self.get_mut();
        match me.frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                me.patient = false;
                // A body of known length is not asked again after its last piece.
                if me.is_end_stream() {
                    me.finish(true);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                me.finish(true);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => {
                me.finish(false);
                Poll::Ready(Some(Err(error)))
            }
            Poll::Pending => {
                let Some(taken) = &mut me.taken else { return Poll::Pending };
                if !me.patient {
                    me.patient = true;
                    taken.link.patience(me.idle_timeout);
                }
                ready!(taken.link.poll_patience(context));
                me.finish(false);
                Poll::Ready(Some(Err("the origin fell silent in mid-answer".into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.left, Left::Bytes(0) | Left::Chunks(Chunks::Over))
    }

    fn size_hint(&self) -> SizeHint {
        match self.left {
            Left::Bytes(left) => SizeHint::with_exact(left),
            Left::Chunks(_) | Left::UntilClose => SizeHint::default(),
        }
    }
}
