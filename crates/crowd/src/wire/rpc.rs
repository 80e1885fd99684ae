//! The gRPC service, as a shop's backend calls it for a known user.

use std::time::Duration;

use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::history::Got;

/// Generated from the server's own `.proto`.
#[allow(missing_debug_implementations, clippy::all)]
pub mod proto {
    tonic::include_proto!("waitroom.v1");
}

use proto::waitroom_service_client::WaitroomServiceClient;

/// A few HTTP/2 connections that all visitors of this kind share.
#[derive(Clone, Debug)]
pub struct Rpc {
    channels: Vec<Channel>,
    bearer: MetadataValue<tonic::metadata::Ascii>,
}

impl Rpc {
    /// Connects when first used, and again whenever the server went away.
    pub fn new(url: &str, key: &str, channels: usize, timeout: Duration) -> Result<Rpc, String> {
        let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|it| it.to_string())?;
        let endpoint = endpoint.timeout(timeout).connect_timeout(timeout).tcp_nodelay(true);
        let channels = (0..channels.max(1)).map(|_| endpoint.connect_lazy()).collect();
        let bearer = format!("Bearer {key}").parse().map_err(|_| "the key is no header value")?;
        Ok(Rpc { channels, bearer })
    }

    pub fn client(&self, who: u64) -> WaitroomServiceClient<Channel> {
        let channel = &self.channels[who as usize % self.channels.len()];
        WaitroomServiceClient::new(channel.clone())
    }

    pub fn request<T>(&self, message: T, forwarded_for: Option<&str>) -> Request<T> {
        let mut request = Request::new(message);
        let headers = request.metadata_mut();
        headers.insert("authorization", self.bearer.clone());
        if let Some(address) = forwarded_for.and_then(|it| it.parse().ok()) {
            headers.insert("x-forwarded-for", address);
        }
        request
    }
}

/// A status as the history has it: the code, and the `WTRnnn` that its text begins with.
pub fn refusal(status: &Status) -> Got<'static> {
    let code = status.message().split(' ').next().filter(|code| code.starts_with("WTR"));
    let grpc = Some(status.code() as i32 as u16);
    Got { grpc, code: code.map(|code| code.to_owned().into()), ..Got::default() }
}

/// A session's status in the words of visitor answers.
pub fn status_name(status: i32) -> &'static str {
    use proto::SessionStatus as S;
    match S::try_from(status).unwrap_or(S::Unspecified) {
        S::Unspecified => "",
        S::Queued => "waiting",
        S::Processing => "admitted",
        S::Ready | S::Active => "active",
        S::Completed => "completed",
        S::Failed | S::Expired => "expired",
        S::Cancelled => "left",
    }
}
