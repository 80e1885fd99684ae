//! TLS to PostgreSQL, in the words that its own clients use: `sslmode`, `sslrootcert`, `sslcert`
//! and `sslkey` in the address.
//!
//! Stricter than those clients in one thing: wherever there is TLS, the server must prove that it
//! is the host of the address. So `require`, `verify-ca` and `verify-full` all mean the last of
//! them; a connection that anybody in between could answer protects nobody. `prefer`, which is what
//! an address without a word means, is plain, as is `disable`.
//! Lives here: reading those words ([`Address`]) and speaking TLS for the client library.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{self, ChannelBinding, MakeTlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::trust::{self, Papers, Signers};

/// Where a database is, and how it is spoken to.
#[derive(Clone, Debug)]
pub struct Address {
    pub config: Config,
    /// None: in plain text.
    pub tls: Option<Files>,
}

const NO_ADDRESS: &str = "no address of a database; write \"postgres://user@host/database\"";

/// What certificates there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Who may have signed the server's, and nobody else; none: those that the machine trusts.
    ca: Option<PathBuf>,
    /// Ours, for servers that ask for it, and its key.
    papers: Option<(PathBuf, PathBuf)>,
}

impl Address {
    pub fn parse(text: &str) -> Result<Address, String> {
        let mut words = Words::default();
        let rest = match query(text) {
            Some((front, query)) => {
                let kept = query.split('&').filter(|pair| !words.take(pair, decoded));
                let kept: Vec<&str> = kept.collect();
                if kept.is_empty() {
                    front.to_owned()
                } else {
                    format!("{front}?{}", kept.join("&"))
                }
            }
            _ if is_url(text) => text.to_owned(),
            _ => {
                let kept = pairs(text).into_iter().filter(|pair| !words.take(pair, unquoted));
                kept.collect::<Vec<_>>().join(" ")
            }
        };
        // It may hold a password, so nothing of it is repeated.
        let config = rest.parse().ok().filter(|it: &Config| !it.get_hosts().is_empty());
        let mut config = config.ok_or_else(|| NO_ADDRESS.to_owned())?;
        // The library reads the rest by itself. What it found and we did not still counts: nobody
        // who asked for TLS speaks in plain text.
        if words.mode.is_none() && config.get_ssl_mode() == SslMode::Require {
            words.mode = Some("require".to_owned());
        }
        let tls = words.tls()?;
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        Ok(Address { config, tls })
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

/// A URL and its query, apart. A password may hold a question mark, as the library reads it.
fn query(text: &str) -> Option<(&str, &str)> {
    let host = if is_url(text) { text.find('@').unwrap_or(0) } else { return None };
    let at = host + text[host..].find('?')?;
    Some((&text[..at], &text[at + 1..]))
}

/// The words of an address that are about TLS.
#[derive(Debug, Default)]
struct Words {
    mode: Option<String>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Words {
    /// Whether the pair was one of ours.
    fn take(&mut self, pair: &str, plain: fn(&str) -> String) -> bool {
        let Some((key, value)) = pair.split_once('=') else { return false };
        let value = plain(value.trim());
        match key.trim() {
            "sslmode" => self.mode = Some(value),
            "sslrootcert" => self.ca = Some(value.into()),
            "sslcert" => self.cert = Some(value.into()),
            "sslkey" => self.key = Some(value.into()),
            _ => return false,
        }
        true
    }

    fn tls(self) -> Result<Option<Files>, String> {
        let Words { mode, ca, cert, key } = self;
        let papers = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => return Err("sslcert and sslkey are given together".into()),
        };
        let named = ca.is_some() || papers.is_some();
        // As PostgreSQL's own clients write that the machine knows best.
        let ca = ca.filter(|it| it.as_os_str() != "system");
        let files = Files { ca, papers };
        match mode.as_deref() {
            Some("disable") if named => {
                Err("certificates are of no use with sslmode=disable".into())
            }
            // Whoever names certificates wants them looked at.
            None | Some("prefer" | "allow" | "disable") if !named => Ok(None),
            None | Some("require" | "verify-ca" | "verify-full") => Ok(Some(files)),
            Some("prefer" | "allow") => {
                Err("with certificates write sslmode=verify-full, or leave it out".into())
            }
            Some(other) => Err(format!("no sslmode {other:?}; write verify-full or disable")),
        }
    }
}

/// `key=value key = 'a value'`, apart. A quote counts where a value begins and in a quoted one.
fn pairs(text: &str) -> Vec<&str> {
    let awaits_value =
        |pair: &str| pair.trim_end().strip_suffix('=').is_some_and(|before| !before.contains('='));
    let awaits_equals =
        |pair: &str, rest: &str| !pair.contains('=') && rest.trim_start().starts_with('=');
    let (mut all, mut from, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\'' if quoted || awaits_value(&text[from..at]) => quoted = !quoted,
            _ if letter.is_whitespace()
                && !quoted
                && !awaits_value(&text[from..at])
                && !awaits_equals(&text[from..at], &text[at..]) =>
            {
                all.push(&text[from..at]);
                from = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    all.push(&text[from..]);
    all.retain(|it| !it.is_empty());
    all
}

fn unquoted(value: &str) -> String {
    let inner = value.strip_prefix('\'').and_then(|it| it.strip_suffix('\'')).unwrap_or(value);
    inner.replace("\\'", "'").replace("\\\\", "\\")
}

/// `%2F` is a slash. What is no such pair of digits stays as it is.
fn decoded(value: &str) -> String {
    let bytes = value.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let hex = hex.and_then(|it| std::str::from_utf8(it).ok());
        match hex.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Makes connections secure, for the client library. Files are read when it is made, so a
/// certificate that was renewed counts with the next connection.
#[derive(Clone)]
pub struct Secure(TlsConnector);

impl Secure {
    pub fn new(files: &Files) -> Result<Secure, String> {
        let papers = files.papers.as_ref().map(|(cert, key)| Papers { cert, key });
        let signers = files.ca.as_deref().map_or(Signers::Machine(None), Signers::Only);
        let config = trust::client(signers, papers)?;
        Ok(Secure(TlsConnector::from(Arc::new(config))))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Secure {
    type Stream = Secured<S>;
    type TlsConnect = Handshake;
    type Error = rustls_pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Self::Error> {
        let name = ServerName::try_from(host.to_owned())?;
        Ok(Handshake { connector: self.0.clone(), name })
    }
}

pub struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> tls::TlsConnect<S> for Handshake {
    type Stream = Secured<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Secured<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { Ok(Secured(self.connector.connect(self.name, stream).await?)) })
    }
}

/// A secured connection.
pub struct Secured<S>(TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> tls::TlsStream for Secured<S> {
    /// The server's certificate was checked; a password is not bound to it besides.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Secured<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Secured<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls(text: &str) -> Option<Files> {
        Address::parse(text).unwrap_or_else(|why| panic!("{text}: {why}")).tls
    }

    fn wrong(text: &str) -> String {
        Address::parse(text).expect_err(text)
    }

    #[test]
    fn an_address_is_plain_unless_it_asks_for_more() {
        for plain in [
            "postgres://w@db/w",
            "postgres://w@db/w?sslmode=disable",
            "postgresql://w@db/w?sslmode=prefer&connect_timeout=3",
            "host=db user=w",
            "host=/run/postgresql user=w sslmode=disable",
        ] {
            assert_eq!(tls(plain), None, "{plain}");
        }
        for secured in [
            "postgres://w@db/w?sslmode=require",
            "postgres://w@db/w?connect_timeout=3&sslmode=verify-ca",
            "host=db user=w sslmode=verify-full",
            "postgres://w@db/w?sslrootcert=system",
            // As the library reads them: with blanks, and with marks in a password.
            "host=db user=w password=x sslmode = require",
            "host=db user=w sslmode =\tverify-full password = 'x'",
            "host=db user=w password=it's sslmode=require",
            "postgres://w:pa?ss@db/w?sslmode=require",
            "postgres://w@db/w?ssl%6Dode=require",
        ] {
            assert_eq!(tls(secured), Some(Files::default()), "{secured}");
        }
    }

    #[test]
    fn certificates_are_named_as_other_clients_name_them() {
        let files = Files {
            ca: Some("/etc/ca s.pem".into()),
            papers: Some(("/c.pem".into(), "/k.pem".into())),
        };
        let url = "postgres://w@db/w?sslrootcert=%2Fetc%2Fca%20s.pem&sslcert=/c.pem&sslkey=/k.pem";
        assert_eq!(tls(url), Some(files.clone()), "naming them is asking for TLS");
        let words = "host=db sslrootcert='/etc/ca s.pem' user=w sslcert=/c.pem sslkey=/k.pem";
        assert_eq!(tls(words), Some(files));
    }

    #[test]
    fn what_else_an_address_says_stays_as_it_was() {
        let Address { config, .. } =
            Address::parse(r"host=db password='a  b\' sslmode=x' user=w sslmode=require")
                .expect("words");
        assert_eq!(config.get_password(), Some(&b"a  b' sslmode=x"[..]));
        assert_eq!(config.get_user(), Some("w"));
        let Address { config, .. } =
            Address::parse("host = db password = a= sslmode = require").expect("blanks");
        assert_eq!(config.get_password(), Some(&b"a="[..]));
        let url = "postgres://w:pa?ss@db/w?sslmode=require";
        let Address { config, .. } = Address::parse(url).expect("a URL");
        assert_eq!(config.get_password(), Some(&b"pa?ss"[..]));
        let url = "postgres://w:a%26b@db/w?application_name=x&sslmode=require";
        let Address { config, .. } = Address::parse(url).expect("a URL");
        assert_eq!(config.get_password(), Some(&b"a&b"[..]));
        assert_eq!(config.get_application_name(), Some("x"));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        assert!(wrong("postgres://w@db/w?sslcert=/c.pem").contains("together"));
        assert!(wrong("host=db sslmode=sometimes").contains("sometimes"));
        assert!(wrong("host=db sslmode=disable sslrootcert=/ca.pem").contains("of no use"));
        assert!(wrong("host=db sslmode=prefer sslrootcert=/ca.pem").contains("verify-full"));
        assert!(wrong("user=w").contains("no address"));
        assert!(Address::parse("nonsense").is_err());
    }
}
