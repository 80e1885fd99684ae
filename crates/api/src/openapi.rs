//! The OpenAPI 3.1 document, made from the code: schemas from the types that are sent, operations
//! from the table below, problem codes from theirs, operators' routes from their route table.
//!
//! It is pinned in `docs/openapi.json`; a test compares, so that a change shows in review.
//! To add a route: a row in [`VISITOR`] (operators' routes come from `admin::ROUTES` by themselves).

use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use crate::admin;
use crate::answer::{Place, VisitorAnswer, Wait};
use crate::problem::{Code, Document, FieldProblem};
use crate::visitor::join::JoinBody;
use crate::visitor::notify::NotifyBody;

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Anyone,
    /// The holder of a ticket token.
    Ticket,
    /// A pass, a ticket token or an API key.
    Session,
}

/// One operation for visitors.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    who: Who,
    /// Query parameters and headers: name, where, schema, meaning.
    asks: &'static [(&'static str, &'static str, &'static str, &'static str)],
    body: Option<&'static str>,
    /// Status, content type, schema, meaning. Everything else is a problem.
    answers: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

const JSON: &str = "application/json";
const ANSWER: &[(&str, &str, &str, &str)] =
    &[("200", JSON, "VisitorAnswer", "How the ticket stands")];
const NONE_MATCH: (&str, &str, &str, &str) =
    ("If-None-Match", "header", "string", "The ETag of the last answer; 304 when nothing changed");
const LIVE_TICKET: (&str, &str, &str, &str) =
    ("live_ticket", "query", "string", "A single-use live ticket, instead of the token");

const VISITOR: &[Operation] = &[
    Operation {
        method: "post",
        path: "/v1/rooms/{room}/join",
        summary: "Take a place in line, or find the one that the caller has",
        who: Who::Anyone,
        asks: &[(
            "Idempotency-Key",
            "header",
            "key",
            "At least 128 random bits; a repeat within ten minutes finds the same place",
        )],
        body: Some("JoinBody"),
        answers: &[
            ("200", JSON, "VisitorAnswer", "The place that the caller has already"),
            ("201", JSON, "VisitorAnswer", "A new place"),
        ],
    },
    Operation {
        method: "get",
        path: "/v1/rooms/{room}/status",
        summary: "Where the ticket stands; with `wait`, as soon as that changes",
        who: Who::Ticket,
        asks: &[
            ("version", "query", "integer", "The newest version that the client has seen"),
            ("wait", "query", "seconds", "Long poll: seconds to wait for a change, at most 30"),
            NONE_MATCH,
        ],
        body: None,
        answers: &[
            ("200", JSON, "VisitorAnswer", "How the ticket stands"),
            ("304", "", "", "As the client has it"),
        ],
    },
    Operation {
        method: "post",
        path: "/v1/rooms/{room}/heartbeat",
        summary: "Be heard of, and get a fresh token",
        who: Who::Ticket,
        asks: &[],
        body: None,
        answers: ANSWER,
    },
    Operation {
        method: "post",
        path: "/v1/rooms/{room}/claim",
        summary: "Exchange an admitted ticket for a pass; a repeat gives the same claims",
        who: Who::Ticket,
        asks: &[],
        body: None,
        answers: ANSWER,
    },
    Operation {
        method: "post",
        path: "/v1/rooms/{room}/leave",
        summary: "Give the place up; from inside, end the session",
        who: Who::Ticket,
        asks: &[],
        body: None,
        answers: ANSWER,
    },
    Operation {
        method: "post",
        path: "/v1/rooms/{room}/hand-over",
        summary: "Move the place to this device; older tokens die",
        who: Who::Ticket,
        asks: &[],
        body: None,
        answers: ANSWER,
    },
    Operation {
        method: "post",
        path: "/v1/rooms/{room}/notify",
        summary: "Ask for one message when the turn comes near, or take that back",
        who: Who::Ticket,
        asks: &[],
        body: Some("NotifyBody"),
        answers: &[("200", JSON, "Notify", "What the room offers, and what is asked for")],
    },
    Operation {
        method: "get",
        path: "/v1/rooms/{room}/board",
        summary: "The public board: the same bytes for all, made for caches",
        who: Who::Anyone,
        asks: &[NONE_MATCH],
        body: None,
        answers: &[
            ("200", JSON, "PublicBoard", "The room, as everybody may see it"),
            ("304", "", "", "As the client has it"),
        ],
    },
    Operation {
        method: "post",
        path: "/v1/rooms/{room}/live-ticket",
        summary: "A single-use ticket that opens one live channel within 30 seconds",
        who: Who::Ticket,
        asks: &[],
        body: None,
        answers: &[("200", JSON, "LiveTicket", "The live ticket")],
    },
    Operation {
        method: "get",
        path: "/v1/rooms/{room}/live",
        summary: "WebSocket: frames of type ticket, board and bye",
        who: Who::Ticket,
        asks: &[LIVE_TICKET],
        body: None,
        answers: &[("101", "", "", "The connection speaks WebSocket from here on")],
    },
    Operation {
        method: "get",
        path: "/v1/rooms/{room}/stream",
        summary: "Server-sent events of type ticket, board and bye",
        who: Who::Ticket,
        asks: &[LIVE_TICKET],
        body: None,
        answers: &[("200", "text/event-stream", "string", "Events until either side closes")],
    },
    Operation {
        method: "post",
        path: "/v1/sessions/{ticket}/complete",
        summary: "The visitor is done: the session ends and its slot goes to the next",
        who: Who::Session,
        asks: &[],
        body: None,
        answers: ANSWER,
    },
    Operation {
        method: "post",
        path: "/v1/sessions/{ticket}/activity",
        summary: "The visitor is busy: the session is renewed where the room allows it",
        who: Who::Session,
        asks: &[],
        body: None,
        answers: ANSWER,
    },
    Operation {
        method: "get",
        path: "/.well-known/jwks.json",
        summary: "The public keys that passes are checked with",
        who: Who::Anyone,
        asks: &[],
        body: None,
        answers: &[("200", "application/jwk-set+json", "object", "A JWK set")],
    },
];

/// The whole document.
pub fn document() -> Value {
    let mut paths = Map::new();
    for operation in VISITOR {
        put(&mut paths, operation.path, operation.method, visitor(operation));
    }
    for route in admin::ROUTES {
        put(&mut paths, route.path, &route.method.to_lowercase(), operator(route));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "waitroom",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A virtual waiting room. Visitors' routes are on the public listener, \
                routes under /admin/v1 on the operators' listener.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "responses": { "Problem": {
                "description": "What went wrong, with a stable code",
                "content": { "application/problem+json": {
                    "schema": { "$ref": "#/components/schemas/Problem" },
                } },
            } },
            "securitySchemes": {
                "ticket": { "type": "http", "scheme": "bearer", "description": "The ticket token" },
                "ticketCookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "__Host-wr-ticket-{room}",
                    "description": "The ticket token in a cookie; a POST then needs the header \
                        Waitroom-Request",
                },
                "pass": { "type": "apiKey", "in": "header", "name": "Waitroom-Pass" },
                "apiKey": { "type": "apiKey", "in": "header", "name": "X-Api-Key" },
            },
        },
    })
}

fn put(paths: &mut Map<String, Value>, path: &str, method: &str, operation: Value) {
    let item = paths.entry(path).or_insert_with(|| json!({}));
    item[method] = operation;
}

fn visitor(operation: &Operation) -> Value {
    let mut parameters = path_parameters(operation.path);
    for (name, place, schema, meaning) in operation.asks {
        parameters.push(json!({
            "name": name,
            "in": place,
            "required": false,
            "description": meaning,
            "schema": simple(schema),
        }));
    }
    let security = match operation.who {
        Who::Anyone => json!([]),
        Who::Ticket => json!([{ "ticket": [] }, { "ticketCookie": [] }]),
        Who::Session => json!([{ "pass": [] }, { "ticket": [] }, { "apiKey": [] }]),
    };
    let mut responses = Map::new();
    for (status, kind, schema, meaning) in operation.answers {
        let mut response = json!({ "description": meaning });
        if !kind.is_empty() {
            response["content"] = json!({ *kind: { "schema": simple(schema) } });
        }
        responses.insert((*status).to_owned(), response);
    }
    responses.insert("default".into(), json!({ "$ref": "#/components/responses/Problem" }));
    let mut it = json!({
        "operationId": operation_id(operation.method, operation.path),
        "summary": operation.summary,
        "parameters": parameters,
        "security": security,
        "responses": responses,
    });
    if let Some(body) = operation.body {
        it["requestBody"] = json!({
            "required": false,
            "content": { JSON: { "schema": simple(body) } },
        });
    }
    it
}

fn operator(route: &admin::Route) -> Value {
    let mut it = json!({
        "operationId": operation_id(&route.method.to_lowercase(), route.path),
        "summary": route.summary,
        "description": format!("Takes an API key of role {} or above.", route.role.word()),
        "tags": ["operators"],
        "parameters": operator_parameters(route),
        "security": [{ "apiKey": [] }],
        "responses": {
            "2XX": {
                "description": "Done",
                "content": { JSON: { "schema": { "type": "object" } } },
            },
            "default": { "$ref": "#/components/responses/Problem" },
        },
    });
    if route.path.ends_with("/report") {
        it["responses"]["2XX"]["content"]["text/csv"] = json!({ "schema": simple("string") });
    }
    if !route.body.is_empty() {
        it["requestBody"] = json!({
            "required": !matches!(route.body, "ReasonOrNone" | "Overlap"),
            "content": { JSON: { "schema": simple(route.body) } },
        });
    }
    it
}

/// What can stand behind the question mark of operators' routes: path, name, schema, meaning.
const QUERIES: &[(&str, &str, &str, &str)] = &[
    ("/admin/v1/audit", "after", "integer", "Entries behind this index"),
    ("/admin/v1/audit", "limit", "limit", "How many at most"),
    ("/admin/v1/audit", "room", "string", "Only acts on this room"),
    ("/admin/v1/rooms/{room}/log", "after", "integer", "Events behind this one"),
    ("/admin/v1/rooms/{room}/log", "limit", "limit", "How many at most"),
    ("/admin/v1/rooms/{room}/report", "format", "format", "json unless told otherwise"),
    ("/admin/v1/rooms/{room}/tickets", "support_code", "string", "As the visitor reads it out"),
    ("/admin/v1/rooms/{room}/tickets", "user_id", "string", "The shop's name for the user"),
];

fn operator_parameters(route: &admin::Route) -> Vec<Value> {
    let mut parameters = path_parameters(route.path);
    let here = QUERIES.iter().filter(|(path, ..)| route.method == "GET" && *path == route.path);
    for (_, name, schema, meaning) in here {
        parameters.push(json!({
            "name": name, "in": "query", "required": false, "description": meaning,
            "schema": simple(schema),
        }));
    }
    parameters
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name: &str| {
        let schema = match name {
            "room" => json!({ "type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,62}$" }),
            _ if path.contains("/keys/") => json!({ "type": "string" }),
            _ => json!({ "type": "string", "format": "uuid" }),
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    };
    names.map(parameter).collect()
}

fn simple(name: &str) -> Value {
    match name {
        "string" | "object" => json!({ "type": name }),
        "integer" => json!({ "type": "integer", "format": "int64", "minimum": 0 }),
        "format" => json!({ "type": "string", "enum": ["json", "csv"] }),
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": 1_000 }),
        "seconds" => json!({ "type": "integer", "minimum": 0, "maximum": 30 }),
        "key" => {
            json!({ "type": "string", "minLength": 22, "maxLength": 255, "pattern": "^[!-~]+$" })
        }
        name => json!({ "$ref": format!("#/components/schemas/{name}") }),
    }
}

/// `post /v1/rooms/{room}/hand-over` is `post_rooms_hand_over`.
fn operation_id(method: &str, path: &str) -> String {
    let parts = path.split('/').filter(|part| !part.is_empty() && !part.starts_with('{'));
    let words: Vec<String> = parts
        .filter(|part| *part != "v1" && *part != ".well-known")
        .map(|part| part.replace(['-', '.'], "_"))
        .collect();
    let one = if path.ends_with('}') { "_one" } else { "" };
    format!("{method}_{}{one}", words.join("_"))
}

fn schemas() -> Value {
    let mut all = Map::new();
    add::<VisitorAnswer<'static>>(&mut all);
    add::<Place>(&mut all);
    add::<Wait>(&mut all);
    add::<JoinBody>(&mut all);
    add::<NotifyBody>(&mut all);
    add::<Document<'static>>(&mut all);
    add::<FieldProblem>(&mut all);
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.text()).collect();
    all["Problem"]["properties"]["code"]["enum"] = json!(codes);
    all.insert("PublicBoard".into(), public_board());
    let text = json!({ "type": "string", "minLength": 1, "maxLength": 2_000, "pattern": "\\S" });
    all.insert("Reason".into(), closed(json!({ "reason": text }), &["reason"]));
    all.insert("ReasonOrNone".into(), closed(json!({ "reason": { "type": "string" } }), &[]));
    let count = json!({ "type": "integer", "minimum": 1, "maximum": waitroom_core::ADMIT_NOW_MAX });
    all.insert("Count".into(), closed(json!({ "count": count }), &["count"]));
    let index = json!({ "type": "integer", "minimum": 1 });
    all.insert("From".into(), closed(json!({ "from": index }), &["from"]));
    let span = json!({ "type": ["string", "null"], "examples": ["30d"] });
    let role = json!({ "type": "string", "enum": ["viewer", "operator", "owner"] });
    let note = json!({ "type": "string", "maxLength": 200 });
    let key = json!({ "role": role, "note": note, "expires_in": span });
    all.insert("NewKey".into(), closed(key, &["role"]));
    all.insert("Overlap".into(), closed(json!({ "overlap": span }), &[]));
    all.insert("Lane".into(), closed(json!({ "lane": { "type": "string" } }), &["lane"]));
    all.insert("RoomDocument".into(), room_document());
    let text = json!({ "type": "string" });
    let notify = json!({
        "ticket": text,
        "room": text,
        "channels": { "type": "array", "items": { "enum": ["email", "sms", "push"] } },
        "push_key": { "type": ["string", "null"] },
        "notify": { "enum": ["waiting", "sent", null] },
    });
    all.insert(
        "Notify".into(),
        closed(notify, &["ticket", "room", "channels", "push_key", "notify"]),
    );
    all.insert(
        "LiveTicket".into(),
        json!({
            "type": "object",
            "required": ["live_ticket", "expires_in_ms"],
            "properties": {
                "live_ticket": { "type": "string" },
                "expires_in_ms": { "type": "integer" },
            },
        }),
    );
    Value::Object(all)
}

fn add<T: ToSchema + PartialSchema>(all: &mut Map<String, Value>) {
    let schema = serde_json::to_value(T::schema()).expect("a schema is plain data");
    all.insert(T::name().into_owned(), schema);
}

/// An object of these properties and no others.
fn closed(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The keys of a room's document, each as a room at its defaults has it. Bounds are in
/// `default.toml` and in the answer to a document that breaks them: many depend on each other,
/// which a schema cannot say.
fn room_document() -> Value {
    let defaults = crate::document::to_json(&waitroom_core::Settings::default());
    let mut properties = Map::new();
    for (key, default) in defaults.as_object().into_iter().flatten() {
        properties.insert(key.clone(), json!({ "default": default }));
    }
    let mut it = closed(Value::Object(properties), &[]);
    it["description"] = "Spans as \"90s\", paces as \"10/s\", moments in RFC 3339".into();
    it
}

/// The board belongs to `core`, which knows no OpenAPI; a test holds this to what it really sends.
fn public_board() -> Value {
    let number = json!({ "type": "integer", "minimum": 0 });
    let numbers = json!({ "type": "array", "items": number });
    json!({
        "type": "object",
        "required": ["version", "at", "phase", "draw_pending", "lanes"],
        "properties": {
            "version": number,
            "at": number,
            "phase": { "type": "string" },
            "reason": { "type": "string" },
            "message": { "type": "string" },
            "draw_pending": { "type": "boolean" },
            "lanes": { "type": "array", "items": {
                "type": "object",
                "required": ["lane", "waiting", "from", "front", "stretches"],
                "properties": {
                    "lane": number,
                    "waiting": number,
                    "from": number,
                    "front": numbers,
                    "stretches": { "type": "array", "items": {
                        "type": "object",
                        "required": ["size", "missing"],
                        "properties": { "size": number, "missing": numbers },
                    } },
                },
            } },
        },
    })
}
