//! What the headers of a plain request say, or that it is none.
//!
//! Every name is listed: a header that the visitor API begins to read, and that is not here, takes
//! its requests off the short way by itself.

use httparse::Header;
use waitroom_store::RoomName;

use crate::cookies;

#[derive(Debug, Default)]
pub(super) struct Said<'a> {
    pub authorization: Option<&'a str>,
    pub cookie: Option<&'a str>,
    pub if_none_match: Option<&'a [u8]>,
    pub forwarded_for: Option<&'a [u8]>,
    pub idempotency_key: Option<&'a [u8]>,
    /// A script of the page asks, not a page of another site.
    pub by_script: bool,
}

/// No listed name is longer.
const NAME_MAX: usize = 24;

impl<'a> Said<'a> {
    /// None when a header is unknown here, or comes twice.
    pub fn of(headers: &[Header<'a>]) -> Option<Said<'a>> {
        let mut said = Said::default();
        let (mut host, mut origin) = (None, None);
        for header in headers {
            let mut name = [0; NAME_MAX];
            let name = name.get_mut(..header.name.len())?;
            name.copy_from_slice(header.name.as_bytes());
            name.make_ascii_lowercase();
            let value = header.value;
            // As `HeaderValue::to_str` has it.
            let plain = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
            let text = || std::str::from_utf8(value).ok().filter(|_| value.iter().all(plain));
            match &*name {
                b"authorization" => once(&mut said.authorization, text()?)?,
                b"cookie" => once(&mut said.cookie, text()?)?,
                b"if-none-match" => once(&mut said.if_none_match, value)?,
                b"x-forwarded-for" => once(&mut said.forwarded_for, value)?,
                b"idempotency-key" => once(&mut said.idempotency_key, value)?,
                b"host" => once(&mut host, value)?,
                b"origin" => once(&mut origin, text()?)?,
                b"waitroom-request" => said.by_script = true,
                // Mean nothing to these four.
                b"accept"
                | b"accept-encoding"
                | b"accept-language"
                | b"cache-control"
                | b"connection"
                | b"content-length"
                | b"content-type"
                | b"dnt"
                | b"forwarded"
                | b"pragma"
                | b"priority"
                | b"referer"
                | b"sec-ch-ua"
                | b"sec-ch-ua-mobile"
                | b"sec-ch-ua-platform"
                | b"sec-fetch-dest"
                | b"sec-fetch-mode"
                | b"sec-fetch-site"
                | b"sec-gpc"
                | b"traceparent"
                | b"tracestate"
                | b"user-agent"
                | b"via"
                | b"x-forwarded-host"
                | b"x-forwarded-port"
                | b"x-forwarded-proto"
                | b"x-real-ip"
                | b"x-request-id" => {}
                _ => return None,
            }
        }
        // As `cors.rs` judges it: a page of this very host has nothing to ask.
        match (origin, host) {
            (None, _) => Some(said),
            (Some(origin), Some(host)) => {
                let (_, at) = origin.split_once("://")?;
                at.as_bytes().eq_ignore_ascii_case(host).then_some(said)
            }
            (Some(_), None) => None,
        }
    }

    /// The ticket token, and whether it came in the cookie. As `caller.rs` finds it; what is no
    /// ticket token there is none here.
    pub fn token(&self, room: &RoomName, dev: bool) -> Option<(&'a str, bool)> {
        match self.authorization {
            Some(value) => {
                let (scheme, rest) = value.split_at_checked(7)?;
                let text = scheme.eq_ignore_ascii_case("bearer ").then(|| rest.trim_ascii())?;
                text.starts_with("wt1_").then_some((text, false))
            }
            None => cookies::ticket_in(self.cookie?, room, dev).map(|text| (text, true)),
        }
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}
