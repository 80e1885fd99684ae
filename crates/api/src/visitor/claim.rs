//! `POST …/claim`: an admitted ticket is exchanged for a pass. A repeat gives the same pass claims.

use std::sync::Arc;

use http::{Response, StatusCode, header};
use waitroom_core::{Command, Reply};

use super::{Ask, json};
use crate::answer::{Moment, VisitorAnswer};
use crate::binding::{self, SameHost};
use crate::body::Body;
use crate::desk::RoomDesk;
use crate::limits::Route;
use crate::problem::{Code, Problem};

pub async fn claim(ask: Box<Ask>, room: Arc<RoomDesk>) -> Result<Response<Body>, Problem> {
    let holder = ask.holder(&room)?;
    let who = u128::from_be_bytes(holder.id.to_bytes());
    ask.desk.meter(Route::Session, who).map_err(|problem| problem.in_room(room.name()))?;
    room.handle().beat(holder.presented.ticket);
    let (sight, reply) = room.act(holder.presented, Command::Claim(holder.presented)).await?;
    let Reply::Claimed { session, .. } = reply else {
        return Err(Problem::new(Code::Internal, "a claim was answered by something else"));
    };
    let (dev, bind) = (ask.desk.manners.dev, ask.desk.manners.bind);
    // A cookie of chance ties a pass to a browser that keeps cookies, where the gate will see them.
    let in_a_jar = holder.by_cookie && ask.head.extensions.get::<SameHost>().is_some();
    let nonce = (bind.nonce && in_a_jar).then(|| {
        let known = binding::nonce(&ask.head.headers, room.name(), dev);
        known.map_or_else(binding::fresh_nonce, str::to_owned)
    });
    let shown = binding::shown(&ask.head.headers, ask.client, nonce.as_deref());
    let pass = ask.desk.pass(&room, sight.id, &session, bind.binding(sight.id, &shown));
    let board = room.handle().board_guard();
    let state = board.state();
    let mut answer = VisitorAnswer::of(&room, state, &sight);
    answer.target_url = state.settings().map(|settings| settings.target_url.as_str());
    answer.enter_url = answer.target_url.map(|target| enter_url(target, &pass));
    answer.expires_at = Moment::of(session.expires_at);
    answer.pass = Some(pass);
    let mut response = json(StatusCode::OK, answer.to_bytes());
    if let Some(nonce) = nonce {
        let cookie = binding::set_nonce(room.name(), &nonce, dev);
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The target with the pass in its query, before any fragment.
pub fn enter_url(target: &str, pass: &str) -> String {
    let (target, fragment) = match target.split_once('#') {
        Some((target, fragment)) => (target, Some(fragment)),
        None => (target, None),
    };
    let sign = if target.contains('?') { '&' } else { '?' };
    let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
    format!("{target}{sign}wr_pass={pass}{fragment}")
}

#[cfg(test)]
mod tests {
    use super::enter_url;

    #[test]
    fn a_pass_joins_the_query_that_is_there() {
        assert_eq!(enter_url("https://shop/a", "p"), "https://shop/a?wr_pass=p");
        assert_eq!(enter_url("https://shop/a?b=c#d", "p"), "https://shop/a?b=c&wr_pass=p#d");
    }
}
