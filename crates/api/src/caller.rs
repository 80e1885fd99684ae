//! Who is asking: a visitor with a ticket token, a service with an API key, or nobody yet.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, Method, header};
use waitroom_core::Presented;
use waitroom_core::id::TicketId;

use crate::cookies;
use crate::desk::{Desk, RoomDesk};
use crate::problem::{Code, Problem};

/// What a key may do. Each role may do what the ones before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Looks.
    Viewer,
    /// Acts in rooms, and for tickets.
    Operator,
    /// Makes rooms and keys.
    Owner,
}

impl Role {
    pub fn parse(text: &str) -> Option<Role> {
        match text {
            "viewer" => Some(Role::Viewer),
            "operator" => Some(Role::Operator),
            "owner" => Some(Role::Owner),
            _ => None,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Owner => "owner",
        }
    }
}

/// A caller that proved itself with an API key (or a client certificate).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiCaller {
    /// The key's id, never the key: this is what the audit says.
    pub id: Arc<str>,
    pub role: Role,
}

/// A visitor who proved to hold a ticket.
#[derive(Clone, Copy, Debug)]
pub struct TokenHolder {
    pub id: TicketId,
    pub presented: Presented,
    /// The browser keeps the token, not a script.
    pub by_cookie: bool,
    pub issued_s: u32,
    /// Whether the token was signed with the secret that signs now.
    pub newest: bool,
}

impl TokenHolder {
    /// Whose requests are counted together.
    pub fn who(&self) -> u128 {
        u128::from_be_bytes(self.id.to_bytes())
    }
}

/// Where a credential was found decides what else must be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried<'a> {
    /// Put there by a script that holds it: no page of another site can do that.
    Header(&'a str),
    /// Sent by the browser by itself: mutations need a header that only a script can set.
    Cookie(&'a str),
}

/// The header that a page's own script sends with a cookie. Its value does not matter: another
/// site cannot send it without being allowed to by CORS.
pub const SCRIPT_HEADER: HeaderName = HeaderName::from_static("waitroom-request");

pub const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
const ADMIN_KEY_HEADER: HeaderName = HeaderName::from_static("x-admin-key");

pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case("bearer ").then(|| rest.trim_ascii())
}

fn api_key_text(headers: &HeaderMap) -> Option<&str> {
    let named = headers.get(API_KEY_HEADER).or_else(|| headers.get(ADMIN_KEY_HEADER));
    if let Some(value) = named {
        return value.to_str().ok();
    }
    // Tickets and passes come as bearer tokens too; both are known by how they begin.
    bearer(headers).filter(|text| !text.starts_with("wt1_") && !text.starts_with("eyJ"))
}

impl Desk {
    /// The service behind an API key; none when no key came, a problem when a wrong one did.
    pub fn service(&self, headers: &HeaderMap) -> Result<Option<ApiCaller>, Problem> {
        let Some(text) = api_key_text(headers) else { return Ok(None) };
        let found = self.installation.api_key(text);
        found.map(Some).ok_or_else(|| {
            Problem::new(Code::ApiKeyInvalid, "the key is unknown, expired or revoked")
        })
    }

    /// A service of at least this role, or a problem.
    pub fn require(&self, headers: &HeaderMap, role: Role) -> Result<ApiCaller, Problem> {
        let caller = self.service(headers)?.ok_or_else(|| {
            Problem::new(Code::ApiKeyMissing, "send it as Authorization: Bearer or X-Api-Key")
        })?;
        if caller.role < role {
            let detail = format!(
                "it takes a key of role {}; this one is {}",
                role.word(),
                caller.role.word()
            );
            return Err(Problem::new(Code::Forbidden, detail));
        }
        Ok(caller)
    }
}

impl RoomDesk {
    /// The ticket that the caller proves to hold in this room.
    pub fn token_holder(
        &self,
        desk: &Desk,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<TokenHolder, Problem> {
        let Some(carried) = carried_token(desk, self, headers) else {
            let detail = "send the ticket token as Authorization: Bearer, or join first";
            return Err(Problem::new(Code::TokenMissing, detail).in_room(self.name()));
        };
        let text = match carried {
            Carried::Header(text) => text,
            Carried::Cookie(text) => {
                let changes = method != Method::GET && method != Method::HEAD;
                if changes && !headers.contains_key(SCRIPT_HEADER) {
                    let detail = "the ticket came in a cookie, so a script of the page must ask";
                    return Err(Problem::new(Code::HeaderRequired, detail).in_room(self.name()));
                }
                text
            }
        };
        let by_cookie = matches!(carried, Carried::Cookie(_));
        let holder = self.read_token(desk, text).map(|it| TokenHolder { by_cookie, ..it });
        holder.ok_or_else(|| {
            let detail = "it is altered, of another room, or of another installation; join again";
            Problem::new(Code::TokenInvalid, detail).in_room(self.name())
        })
    }

    /// Reads a ticket token of this room.
    pub fn read_token(&self, desk: &Desk, text: &str) -> Option<TokenHolder> {
        let token = desk.signatures.tokens.read(self.name().as_str(), text)?;
        let presented = self.presented(token.id, Some(token.holder))?;
        let waitroom_pass::TicketToken { id, holder: _, issued_s, newest } = token;
        Some(TokenHolder { id, presented, by_cookie: false, issued_s, newest })
    }
}

/// The text of the ticket token that came with a request, wherever it was.
pub fn token_text<'a>(desk: &Desk, room: &RoomDesk, headers: &'a HeaderMap) -> Option<&'a str> {
    carried_token(desk, room, headers).map(|carried| match carried {
        Carried::Header(text) | Carried::Cookie(text) => text,
    })
}

/// A ticket token in the header wins over the cookie: a script knows better than a browser.
fn carried_token<'a>(desk: &Desk, room: &RoomDesk, headers: &'a HeaderMap) -> Option<Carried<'a>> {
    if let Some(text) = bearer(headers).filter(|text| text.starts_with("wt1_")) {
        return Some(Carried::Header(text));
    }
    // A bearer that is nothing of ours must not fall back to the cookie unseen.
    if headers.contains_key(header::AUTHORIZATION) {
        return bearer(headers).map(Carried::Header);
    }
    cookies::ticket(headers, room.name(), desk.manners.dev).map(Carried::Cookie)
}
