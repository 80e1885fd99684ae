//! Which route a request takes, by name: bounded, so that no stranger can make series.
//!
//! The router of each interface decides; this only names. Whatever it does not know is `other`.

use crate::admin::ROUTES;
use crate::visitor::parted;

/// A listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Public,
    Admin,
    Grpc,
}

impl Door {
    fn word(self) -> &'static str {
        match self {
            Door::Public => "public",
            Door::Admin => "admin",
            Door::Grpc => "grpc",
        }
    }
}

/// Routes of the public listener.
const PUBLIC: &[&str] = &[
    "/v1/rooms/{room}/join",
    "/v1/rooms/{room}/status",
    "/v1/rooms/{room}/status?wait",
    "/v1/rooms/{room}/heartbeat",
    "/v1/rooms/{room}/claim",
    "/v1/rooms/{room}/leave",
    "/v1/rooms/{room}/hand-over",
    "/v1/rooms/{room}/notify",
    "/v1/rooms/{room}/board",
    "/v1/rooms/{room}/live-ticket",
    "/v1/rooms/{room}/live",
    "/v1/rooms/{room}/stream",
    "/v1/sessions/{id}/complete",
    "/v1/sessions/{id}/activity",
    "/.well-known/jwks.json",
    "/openapi.json",
    "/health",
    "/metrics",
    "/enqueue",
    "/status",
    "/admin/allow",
    "/api/v1",
    "/ws/queues",
    "/gate/check",
    "other",
];

/// Calls of our service; health and reflection are `other`.
const GRPC: &[&str] =
    &["JoinQueue", "GetQueueStatus", "LeaveQueue", "StreamQueuePosition", "HealthCheck", "other"];

/// A row of the counters: public routes, then gRPC, then the operators' table, `/metrics` and
/// `other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteId(u16);

const ADMIN_AT: usize = PUBLIC.len() + GRPC.len();

pub(super) fn count() -> usize {
    ADMIN_AT + ROUTES.len() + 2
}

/// Every row with its listener and its name.
pub(super) fn all() -> impl Iterator<Item = RouteId> {
    (0..count()).map(|at| RouteId(at as u16))
}

impl RouteId {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    pub fn of(door: Door, method: &str, path: &str, query: Option<&str>) -> RouteId {
        let at = match door {
            Door::Public => known(PUBLIC, public(path, query)),
            Door::Grpc => {
                let call = path.strip_prefix("/waitroom.v1.WaitroomService/");
                PUBLIC.len() + known(GRPC, call.unwrap_or("other"))
            }
            Door::Admin => ADMIN_AT + admin(method, path),
        };
        RouteId(at as u16)
    }

    pub fn door(self) -> &'static str {
        let door = match self.index() {
            at if at < PUBLIC.len() => Door::Public,
            at if at < ADMIN_AT => Door::Grpc,
            _ => Door::Admin,
        };
        door.word()
    }

    /// With the method where the same address has several.
    pub fn name(self) -> String {
        match self.index() {
            at if at < PUBLIC.len() => PUBLIC[at].to_owned(),
            at if at < ADMIN_AT => GRPC[at - PUBLIC.len()].to_owned(),
            at => match ROUTES.get(at - ADMIN_AT) {
                Some(route) => format!("{} {}", route.method, route.path),
                None if at + 1 == count() => "other".to_owned(),
                None => "GET /metrics".to_owned(),
            },
        }
    }
}

fn known(names: &[&str], name: &str) -> usize {
    names.iter().position(|it| *it == name).unwrap_or(names.len() - 1)
}

fn admin(method: &str, path: &str) -> usize {
    if path == "/metrics" {
        return ROUTES.len();
    }
    let fits = |route: &crate::admin::Route| {
        route.method == method && crate::admin::fit(route.path, path).is_some()
    };
    ROUTES.iter().position(fits).unwrap_or(ROUTES.len() + 1)
}

/// The name of a public address. Rooms and tickets are left out: they are many.
fn public<'a>(path: &'a str, query: Option<&str>) -> &'a str {
    if let Some(rest) = path.strip_prefix("/v1/rooms/") {
        let verb = parted(rest).map_or("", |(_, verb)| verb);
        return match verb {
            "status" if query.is_some_and(waits) => "/v1/rooms/{room}/status?wait",
            "status" => "/v1/rooms/{room}/status",
            "heartbeat" => "/v1/rooms/{room}/heartbeat",
            "join" => "/v1/rooms/{room}/join",
            "board" => "/v1/rooms/{room}/board",
            "claim" => "/v1/rooms/{room}/claim",
            "leave" => "/v1/rooms/{room}/leave",
            "hand-over" => "/v1/rooms/{room}/hand-over",
            "notify" => "/v1/rooms/{room}/notify",
            "live-ticket" => "/v1/rooms/{room}/live-ticket",
            "live" => "/v1/rooms/{room}/live",
            "stream" => "/v1/rooms/{room}/stream",
            _ => "other",
        };
    }
    if let Some(rest) = path.strip_prefix("/v1/sessions/") {
        return match rest.split_once('/').map_or("", |(_, verb)| verb) {
            "complete" => "/v1/sessions/{id}/complete",
            "activity" => "/v1/sessions/{id}/activity",
            _ => "other",
        };
    }
    match path {
        "/health/live" | "/health/ready" => "/health",
        path if path.starts_with("/api/v1/") => "/api/v1",
        path if path.starts_with("/ws/queues/") => "/ws/queues",
        path => path,
    }
}

/// A long poll takes as long as its client asked for, so it must not hide how fast a look is.
fn waits(query: &str) -> bool {
    query.split('&').any(|pair| pair.starts_with("wait="))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(door: Door, method: &str, path: &str, query: Option<&str>) -> String {
        let route = RouteId::of(door, method, path, query);
        format!("{} {}", route.door(), route.name())
    }

    #[test]
    fn a_route_has_its_name_and_a_stranger_has_none() {
        let public = |path, query| named(Door::Public, "GET", path, query);
        assert_eq!(public("/v1/rooms/spring/join", None), "public /v1/rooms/{room}/join");
        let (long, short) = (Some("version=3&wait=20"), Some("version=3"));
        assert_eq!(public("/v1/rooms/a/status", long), "public /v1/rooms/{room}/status?wait");
        assert_eq!(public("/v1/rooms/a/status", short), "public /v1/rooms/{room}/status");
        assert_eq!(public("/api/v1/queues/x/status", None), "public /api/v1");
        for strange in ["/", "/v1/rooms/x", "/v1/rooms/x/y", "/v1/sessions/x/y", "/../etc", "other"]
        {
            assert_eq!(public(strange, None), "public other", "{strange}");
        }
        let admin = |method, path| named(Door::Admin, method, path, None);
        assert_eq!(
            admin("POST", "/admin/v1/rooms/spring/pause"),
            "admin POST /admin/v1/rooms/{room}/pause"
        );
        assert_eq!(admin("GET", "/metrics"), "admin GET /metrics");
        assert_eq!(admin("GET", "/admin/v1/rooms/spring/pause"), "admin other");
        let grpc = |path| named(Door::Grpc, "POST", path, None);
        assert_eq!(grpc("/waitroom.v1.WaitroomService/LeaveQueue"), "grpc LeaveQueue");
        assert_eq!(grpc("/grpc.health.v1.Health/Check"), "grpc other");
    }

    #[test]
    fn no_two_rows_have_the_same_name() {
        let names: std::collections::BTreeSet<_> =
            all().map(|route| (route.door(), route.name())).collect();
        assert_eq!(names.len(), count());
    }
}
