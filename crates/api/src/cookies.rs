//! The ticket's cookie: how a browser keeps its place over reloads and closed tabs.

use http::{HeaderMap, HeaderValue, header};
use waitroom_store::RoomName;

/// A browser keeps the ticket for thirty days. The ticket itself ends earlier; a stale cookie costs
/// one answer that says so.
const MANNER: &str = "; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax";

/// `__Host-` ties a cookie to this host over TLS; plain HTTP in development cannot have it.
fn prefix(dev: bool) -> &'static str {
    if dev { "wr-ticket-" } else { "__Host-wr-ticket-" }
}

/// The token in the cookie of this room.
pub fn ticket<'a>(headers: &'a HeaderMap, room: &RoomName, dev: bool) -> Option<&'a str> {
    let mut cookies = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
    cookies.find_map(|line| ticket_in(line, room, dev))
}

/// The same in one line of cookies.
pub fn ticket_in<'a>(line: &'a str, room: &RoomName, dev: bool) -> Option<&'a str> {
    line.split(';').find_map(|pair| {
        let rest = pair.trim_ascii().strip_prefix(prefix(dev))?;
        rest.strip_prefix(room.as_str())?.strip_prefix('=')
    })
}

pub fn set_ticket(room: &RoomName, token: &str, dev: bool) -> HeaderValue {
    let secure = if dev { "" } else { "; Secure" };
    // Put together by hand: every join ends here, and the formatter takes longer than the rest.
    let parts = [prefix(dev), room.as_str(), "=", token, MANNER, secure];
    HeaderValue::try_from(parts.concat()).expect("room names and tokens are plain ASCII")
}

pub fn clear_ticket(room: &RoomName, dev: bool) -> HeaderValue {
    let secure = if dev { "" } else { "; Secure" };
    let text = format!("{}{room}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax{secure}", prefix(dev));
    HeaderValue::try_from(text).expect("room names are plain ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(cookie: &str, room: &str, dev: bool) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::try_from(cookie).expect("plain text"));
        let room = RoomName::parse(room).expect("a good name");
        ticket(&headers, &room, dev).map(str::to_owned)
    }

    #[test]
    fn the_cookie_of_one_room_is_not_another_s() {
        let jar = "a=b; __Host-wr-ticket-spring=one;__Host-wr-ticket-spring-vip=two";
        assert_eq!(found(jar, "spring", false).as_deref(), Some("one"));
        assert_eq!(found(jar, "spring-vip", false).as_deref(), Some("two"));
        assert_eq!(found(jar, "sprin", false), None);
        assert_eq!(found(jar, "spring", true), None, "a dev cookie has another name");
    }

    #[test]
    fn outside_development_the_cookie_is_bound_to_host_and_tls() {
        let room = RoomName::parse("spring").expect("a good name");
        let text = set_ticket(&room, "wt1_x", false);
        let text = text.to_str().expect("ASCII");
        for part in
            ["__Host-wr-ticket-spring=wt1_x", "Path=/", "HttpOnly", "SameSite=Lax", "Secure"]
        {
            assert!(text.contains(part), "{text} lacks {part}");
        }
        assert!(!text.contains("Domain"));
    }
}
