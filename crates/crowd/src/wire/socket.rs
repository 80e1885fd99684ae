//! A WebSocket to a live channel.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hyper::header::{AUTHORIZATION, HeaderValue};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message as Frame};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::http::{Pool, Unheard};
use super::stream::Message;

#[derive(Debug)]
pub struct Socket {
    stream: WebSocketStream<TcpStream>,
}

impl Socket {
    /// Opens the channel; otherwise says with which status the server refused.
    pub async fn open(
        pool: &Pool,
        path: &str,
        bearer: Option<&str>,
        forwarded_for: Option<&str>,
    ) -> Result<Result<Socket, u16>, Unheard> {
        let unsent = |error: String| Unheard::NotSent(error);
        let host = pool.host().to_str().unwrap_or("localhost");
        let request = format!("ws://{host}{path}").into_client_request();
        let mut request = request.map_err(|error| unsent(error.to_string()))?;
        let headers = request.headers_mut();
        let value =
            |text: String| HeaderValue::from_str(&text).map_err(|it| unsent(it.to_string()));
        if let Some(token) = bearer {
            headers.insert(AUTHORIZATION, value(format!("Bearer {token}"))?);
        }
        if let Some(address) = forwarded_for {
            headers.insert("x-forwarded-for", value(address.to_owned())?);
        }
        // The usual 128 KiB for reading, times thousands of visitors, would be our own undoing.
        let config = WebSocketConfig::default()
            .read_buffer_size(4 << 10)
            .write_buffer_size(0)
            .max_write_buffer_size(64 << 10)
            .max_message_size(Some(1 << 20));
        let opening = async {
            let socket = pool.sources().connect().await.map_err(|it| unsent(it.to_string()))?;
            match client_async_with_config(request, socket, Some(config)).await {
                Ok((stream, _)) => Ok(Ok(Socket { stream })),
                Err(tungstenite::Error::Http(refused)) => Ok(Err(refused.status().as_u16())),
                Err(error) => Err(unsent(error.to_string())),
            }
        };
        let opened = tokio::time::timeout(pool.timeout(), opening).await;
        opened.unwrap_or_else(|_| Err(unsent("no channel in time".into())))
    }

    /// The next message; none when the channel is over. Pings are answered on the way.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            match self.stream.next().await?.ok()? {
                Frame::Text(text) => {
                    let data = text.as_str().to_owned();
                    // The type stands in the JSON; whoever reads it parses it anyway.
                    return Some(Message { kind: String::new(), data });
                }
                Frame::Close(_) => return None,
                _ => {}
            }
        }
    }

    /// Says that somebody is still here.
    pub async fn beat(&mut self) -> bool {
        self.stream.send(Frame::text(r#"{"type":"beat"}"#)).await.is_ok()
    }

    /// Says goodbye, but does not wait long for the answer.
    pub async fn close(mut self) {
        let _ = tokio::time::timeout(Duration::from_millis(500), self.stream.close(None)).await;
    }
}
