//! `envoy.service.auth.v3.Authorization/Check`: the same verdict for Envoy, over gRPC.
//!
//! The room and the form of "no" come from `context_extensions` of Envoy's configuration (`room`,
//! `as`); without a room the site of the host decides. A "no" over gRPC may have any status and a
//! body, so those who wait can be shown the page in place.
//! Whatever cannot be understood is answered with no.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use tonic::Status as GrpcStatus;
use waitroom_api::body::Body as ApiBody;
use waitroom_store::RoomName;

use crate::body::Body;
use crate::check::{self, As, Asked, Question};
use crate::forward;
use crate::gate::Gate;
use proto::authorization_server::{Authorization, AuthorizationServer};
use proto::check_response::HttpResponse;
use proto::{CheckRequest, CheckResponse, Denied, Flag, Header, HeaderOption, HttpStatus, Passed};

/// The messages and the service as generated from the `.proto`.
#[allow(missing_debug_implementations, unreachable_pub, clippy::all)]
mod proto {
    tonic::include_proto!("envoy.service.auth.v3");
}

/// The codes of `google.rpc.Code` that are used here.
const OK: i32 = 0;
const PERMISSION_DENIED: i32 = 7;

/// The service, to be added to those of the gRPC listener. `message_bytes_max` bounds a question.
pub fn service(gate: Arc<Gate>, message_bytes_max: usize) -> AuthorizationServer<Asking> {
    AuthorizationServer::new(Asking { gate }).max_decoding_message_size(message_bytes_max)
}

#[derive(Clone, Debug)]
pub struct Asking {
    gate: Arc<Gate>,
}

#[tonic::async_trait]
impl Authorization for Asking {
    async fn check(
        &self,
        request: tonic::Request<CheckRequest>,
    ) -> Result<tonic::Response<CheckResponse>, GrpcStatus> {
        let response = match understood(request.into_inner()) {
            Some((question, headers, client)) => {
                check::answer(&self.gate, &question, &headers, client)
            }
            None => check::plain(StatusCode::FORBIDDEN, None),
        };
        Ok(tonic::Response::new(told(response)))
    }
}

/// What Envoy asks, or none when something of it cannot be read.
fn understood(request: CheckRequest) -> Option<(Question, HeaderMap, IpAddr)> {
    let attributes = request.attributes?;
    let http = attributes.request?.http?;
    let source = attributes.source?.address?.socket_address?.address;
    let own = |name: &str| attributes.context_extensions.get(name).map(String::as_str);
    let room = own("room").map(RoomName::parse).transpose().ok()?;
    let form = As::of(Some(own("as").unwrap_or("page")))?;
    let mut headers = HeaderMap::with_capacity(http.headers.len());
    for (name, value) in &http.headers {
        // Envoy's own, such as `:path`, which is told besides.
        if name.starts_with(':') {
            continue;
        }
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        // The answer goes through a text field.
        if name != header::ACCEPT_ENCODING {
            headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).ok()?);
        }
    }
    let method = Method::from_bytes(http.method.as_bytes()).ok()?;
    let asked = Asked::at(&http.host, &http.path, method)?;
    Some((Question { room, form, asked }, headers, source.parse().ok()?))
}

/// The answer as Envoy takes it.
fn told(response: Response<Body>) -> CheckResponse {
    let (head, body) = response.into_parts();
    if head.status == StatusCode::OK {
        let known = |name: &HeaderName| option(name, head.headers.get(name)?, false);
        let ours = [forward::TICKET, forward::ROOM];
        // What the verdict did not say, nobody may have said.
        let unsaid = ours.iter().filter(|name| !head.headers.contains_key(*name));
        let cookies = head.headers.get_all(header::SET_COOKIE).iter();
        let passed = Passed {
            headers: ours.iter().filter_map(known).collect(),
            headers_to_remove: unsaid.map(HeaderName::to_string).collect(),
            response_headers_to_add: cookies
                .filter_map(|cookie| option(&header::SET_COOKIE, cookie, true))
                .collect(),
        };
        return answer(OK, HttpResponse::OkResponse(passed));
    }
    let body = match body {
        Body::Whole(bytes) | Body::Api(ApiBody::Whole(bytes)) => bytes.unwrap_or_default(),
        Body::Api(ApiBody::Stream(_)) | Body::Origin(_) => Bytes::new(),
    };
    let body = String::from_utf8_lossy(&body).into_owned();
    let fields = head.headers.iter().filter(|(name, _)| **name != header::CONTENT_LENGTH);
    let denied = Denied {
        status: Some(HttpStatus { code: head.status.as_u16().into() }),
        headers: fields.filter_map(|(name, value)| option(name, value, is_many(name))).collect(),
        body,
    };
    answer(PERMISSION_DENIED, HttpResponse::DeniedResponse(denied))
}

fn is_many(name: &HeaderName) -> bool {
    *name == header::SET_COOKIE
}

fn option(name: &HeaderName, value: &HeaderValue, append: bool) -> Option<HeaderOption> {
    let value = value.to_str().ok()?.to_owned();
    let header = Some(Header { key: name.to_string(), value });
    Some(HeaderOption { header, append: Some(Flag { value: append }) })
}

fn answer(code: i32, http: HttpResponse) -> CheckResponse {
    CheckResponse { status: Some(proto::Status { code }), http_response: Some(http) }
}
