//! Why a listener could not be opened. All of it is for the operator who starts the server.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use crate::tls::TlsError;

#[derive(Debug)]
pub enum Error {
    /// No address was given: a listener that hears nothing is a mistake, not a choice.
    NoAddress,
    /// A limit that would refuse everybody or contradict another one.
    Setting {
        name: &'static str,
        problem: String,
    },
    /// The address could not be listened on.
    Bind {
        address: SocketAddr,
        source: io::Error,
    },
    Tls(TlsError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoAddress => write!(f, "no address to listen on"),
            Error::Setting { name, problem } => write!(f, "{name}: {problem}"),
            Error::Bind { address, source } => {
                write!(f, "cannot listen on {address}: {source}")?;
                match source.kind() {
                    io::ErrorKind::AddrInUse => write!(f, "; another process has this port"),
                    io::ErrorKind::PermissionDenied => {
                        write!(f, "; ports below 1024 need CAP_NET_BIND_SERVICE")
                    }
                    io::ErrorKind::AddrNotAvailable => {
                        write!(f, "; this machine has no such address")
                    }
                    _ => Ok(()),
                }
            }
            Error::Tls(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Bind { source, .. } => Some(source),
            Error::Tls(error) => Some(error),
            Error::NoAddress | Error::Setting { .. } => None,
        }
    }
}

impl From<TlsError> for Error {
    fn from(error: TlsError) -> Error {
        Error::Tls(error)
    }
}
