//! E-mail, handed to the mail server that the operator names.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lettre::message::{Mailbox, header::ContentType};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

use super::{NotSent, Notice};

/// A mail server that takes longer is away.
const WITHIN: Duration = Duration::from_secs(30);
/// The longest that the protocol allows.
const ADDRESS_BYTES_MAX: usize = 254;

/// The mail server, and who writes.
#[derive(Clone)]
pub struct Relay {
    pub host: String,
    pub port: u16,
    pub tls: RelayTls,
    /// A certificate that it may show, besides those that the machine trusts.
    pub ca: Option<PathBuf>,
    pub user: Option<(String, String)>,
    pub from: String,
}

/// When the connection is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayTls {
    /// From its first byte.
    Always,
    /// By STARTTLS, or not at all is anything sent.
    StartTls,
    /// Never: a server on this machine.
    Never,
}

#[derive(Debug)]
pub struct Email {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Email {
    pub fn by(relay: &Relay) -> Result<Email, String> {
        let from = relay.from.parse().map_err(|_| format!("{:?} cannot write", relay.from))?;
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&relay.host)
            .port(relay.port)
            .timeout(Some(WITHIN));
        let secured = || {
            let mut parameters = TlsParameters::builder(relay.host.clone());
            if let Some(ca) = &relay.ca {
                let pem = std::fs::read(ca).map_err(|it| format!("{}: {it}", ca.display()))?;
                let ca = Certificate::from_pem(&pem).map_err(|it| it.to_string())?;
                parameters = parameters.add_root_certificate(ca);
            }
            parameters.build().map_err(|it| it.to_string())
        };
        builder = match relay.tls {
            RelayTls::Always => builder.tls(Tls::Wrapper(secured()?)),
            RelayTls::StartTls => builder.tls(Tls::Required(secured()?)),
            RelayTls::Never => builder.tls(Tls::None),
        };
        if let Some((user, password)) = &relay.user {
            builder = builder.credentials(Credentials::new(user.clone(), password.clone()));
        }
        Ok(Email { transport: builder.build(), from })
    }

    pub(super) async fn send(&self, address: &str, notice: &Notice) -> Result<(), NotSent> {
        let to = Address::from_str(address).map_err(|_| NotSent::Never)?;
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(notice.subject())
            .header(ContentType::TEXT_PLAIN)
            .body(notice.text())
            .map_err(|_| NotSent::Never)?;
        match self.transport.send(message).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_permanent() => Err(NotSent::Never),
            Err(_) => Err(NotSent::Later),
        }
    }
}

pub(super) fn check(address: &str) -> Result<(), &'static str> {
    // The relay is the operator's: nothing here may name a mailbox of its own machine or network, or
    // a way on from there.
    let outside = |address: &Address| {
        let domain = address.domain();
        let named = domain.contains('.')
            && !domain.starts_with('[')
            && domain.parse::<std::net::IpAddr>().is_err();
        named && !address.user().contains(['%', '!', '"', '@'])
    };
    let fits = address.is_ascii()
        && address.len() <= ADDRESS_BYTES_MAX
        && Address::from_str(address).is_ok_and(|it| outside(&it));
    if fits { Ok(()) } else { Err("no e-mail address") }
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Relay {}:{}", self.host, self.port)
    }
}
