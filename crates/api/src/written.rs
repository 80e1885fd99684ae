//! The visitor answer as bytes.
//!
//! The same text that serde would write, and a test compares the two; but this is the one shape
//! that every look ends in, and writing it by hand takes a third of the time. To add a field: a
//! line in [`answer`]; the pattern there names every field, so the compiler asks.

use std::cell::RefCell;

use bytes::Bytes;

use crate::answer::{Moment, Place, VisitorAnswer, Wait};

/// A text of exactly its length, written first where there is room: in one piece of memory that
/// each thread keeps.
pub fn written(write: impl FnOnce(&mut Out)) -> Bytes {
    draft(write, Bytes::copy_from_slice)
}

/// A text that is written, read by `then`, and forgotten.
pub fn draft<T>(write: impl FnOnce(&mut Out), then: impl FnOnce(&[u8]) -> T) -> T {
    thread_local!(static DRAFT: RefCell<Out> = const { RefCell::new(Out(Vec::new())) });
    DRAFT.with_borrow_mut(|draft| {
        draft.0.clear();
        write(draft);
        then(&draft.0)
    })
}

/// Writes behind what is there.
pub fn behind(text: &mut Vec<u8>, write: impl FnOnce(&mut Out)) {
    let mut out = Out(std::mem::take(text));
    write(&mut out);
    *text = out.0;
}

pub fn answer(answer: &VisitorAnswer<'_>) -> Bytes {
    written(|out| put(answer, out))
}

pub fn put(answer: &VisitorAnswer<'_>, out: &mut Out) {
    let VisitorAnswer {
        ticket,
        token,
        room,
        version,
        status,
        place,
        position,
        ahead,
        behind,
        wait,
        wait_unknown_because,
        next_check_ms,
        room_status,
        reason,
        message,
        draw_pending,
        stale,
        support_code,
        joined_at,
        admitted_at,
        ended_because,
        claim_by,
        pass,
        expires_at,
        target_url,
        enter_url,
    } = answer;
    out.bytes("{\"ticket\":\"", &ticket.printed());
    out.plain_if(",\"token\":\"", *token);
    // Names of rooms are of letters, digits and dashes.
    out.plain(",\"room\":\"", room);
    out.number(",\"version\":", *version);
    out.plain(",\"status\":\"", status);
    match place {
        None => out.add(",\"place\":null"),
        Some(Place { lane, order }) => {
            out.number(",\"place\":{\"lane\":", u64::from(*lane));
            out.number(",\"order\":", *order);
            out.add("}");
        }
    }
    out.number_or_null(",\"position\":", *position);
    out.number_or_null(",\"ahead\":", *ahead);
    out.number_or_null(",\"behind\":", *behind);
    match wait {
        None => out.add(",\"wait\":null"),
        Some(Wait { low_s, likely_s, high_s }) => {
            out.number(",\"wait\":{\"low_s\":", *low_s);
            out.number(",\"likely_s\":", *likely_s);
            out.number(",\"high_s\":", *high_s);
            out.add("}");
        }
    }
    out.plain_if(",\"wait_unknown_because\":\"", *wait_unknown_because);
    out.number(",\"next_check_ms\":", *next_check_ms);
    out.plain(",\"room_status\":\"", room_status);
    out.text_if(",\"reason\":", *reason);
    out.text_if(",\"message\":", *message);
    if *draw_pending {
        out.add(",\"draw_pending\":true");
    }
    if *stale {
        out.add(",\"stale\":true");
    }
    out.bytes(",\"support_code\":\"", &support_code.printed());
    out.moment_if(",\"joined_at\":\"", *joined_at);
    out.moment_if(",\"admitted_at\":\"", *admitted_at);
    out.plain_if(",\"ended_because\":\"", *ended_because);
    out.moment_if(",\"claim_by\":\"", *claim_by);
    out.plain_if(",\"pass\":\"", pass.as_deref());
    out.moment_if(",\"expires_at\":\"", *expires_at);
    out.text_if(",\"target_url\":", *target_url);
    out.text_if(",\"enter_url\":", enter_url.as_deref());
    out.add("}");
}

/// JSON that is being written. `before` is everything in front of the value: comma, key, and the
/// quotation mark where the value has one.
#[derive(Debug)]
pub struct Out(Vec<u8>);

impl Out {
    /// Inlined, so that a text known to the compiler is copied without a call.
    #[inline(always)]
    pub fn add(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    #[inline(always)]
    pub fn number(&mut self, before: &str, number: u64) {
        self.add(before);
        self.add(itoa::Buffer::new().format(number));
    }

    #[inline(always)]
    fn number_or_null(&mut self, before: &str, number: Option<u64>) {
        match number {
            Some(number) => self.number(before, number),
            None => {
                self.add(before);
                self.add("null");
            }
        }
    }

    /// A text of our own making, in which nothing needs an escape.
    #[inline(always)]
    fn bytes(&mut self, before: &str, text: &[u8]) {
        debug_assert!(text.iter().all(|it| it.is_ascii_graphic() && *it != b'"' && *it != b'\\'));
        self.add(before);
        self.0.extend_from_slice(text);
        self.0.push(b'"');
    }

    #[inline(always)]
    fn plain(&mut self, before: &str, text: &str) {
        self.bytes(before, text.as_bytes());
    }

    #[inline(always)]
    fn plain_if(&mut self, before: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.plain(before, text);
        }
    }

    #[inline(always)]
    fn moment_if(&mut self, before: &str, moment: Option<Moment>) {
        if let Some(moment) = moment {
            self.bytes(before, &moment.text());
        }
    }

    /// A text that somebody wrote.
    fn text_if(&mut self, before: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.add(before);
            serde_json::to_writer(&mut self.0, text).expect("a text can be written to memory");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::option::of;
    use proptest::prelude::*;
    use waitroom_core::Timestamp;
    use waitroom_core::id::TicketId;

    fn word() -> impl Strategy<Value = &'static str> {
        prop_oneof![Just("waiting"), Just("no_data"), Just("running")]
    }

    prop_compose! {
        fn anything()(
            (id, token, version) in (any::<[u8; 16]>(), of("wt1_[a-zA-Z0-9_-]{1,90}"), any::<u64>()),
            (place, wait) in (of(any::<(u8, u64)>()), of(any::<(u64, u64, u64)>())),
            (position, ahead, behind) in (of(any::<u64>()), of(any::<u64>()), of(any::<u64>())),
            (status, room_status, unknown, ended) in (word(), word(), of(word()), of(word())),
            (reason, message, target, enter) in (of(".*"), of(".*"), of(".*"), of(".*")),
            (draw_pending, stale, next_check_ms) in any::<(bool, bool, u64)>(),
            times in any::<[Option<u32>; 4]>(),
        ) -> (TicketId, Owned, VisitorAnswer<'static>) {
            let [joined_at, admitted_at, claim_by, expires_at] =
                times.map(|it| it.and_then(|it| Moment::of(Timestamp(u64::from(it) * 1_001))));
            let owned = Owned { token, reason, message, target };
            let answer = VisitorAnswer {
                ticket: TicketId::from_bytes(id),
                token: None,
                room: "spring-sale",
                version,
                status,
                place: place.map(|(lane, order)| Place { lane, order }),
                position,
                ahead,
                behind,
                wait: wait.map(|(low_s, likely_s, high_s)| Wait { low_s, likely_s, high_s }),
                wait_unknown_because: unknown,
                next_check_ms,
                room_status,
                reason: None,
                message: None,
                draw_pending,
                stale,
                support_code: TicketId::from_bytes(id).support_code(),
                joined_at,
                admitted_at,
                ended_because: ended,
                claim_by,
                pass: None,
                expires_at,
                target_url: None,
                enter_url: enter,
            };
            (TicketId::from_bytes(id), owned, answer)
        }
    }

    /// What the answer borrows.
    #[derive(Debug)]
    struct Owned {
        token: Option<String>,
        reason: Option<String>,
        message: Option<String>,
        target: Option<String>,
    }

    proptest! {
        #[test]
        fn it_is_the_text_that_serde_writes((_, owned, answer) in anything()) {
            let answer = VisitorAnswer {
                token: owned.token.as_deref(),
                reason: owned.reason.as_deref(),
                message: owned.message.as_deref(),
                target_url: owned.target.as_deref(),
                ..answer
            };
            let written = String::from_utf8(super::answer(&answer).into()).expect("UTF-8");
            prop_assert_eq!(written, serde_json::to_string(&answer).expect("plain data"));
        }
    }
}
