//! TLS: certificates from files, read again on demand.
//!
//! A reload takes effect for new connections; those that are open keep what they agreed on. A
//! broken pair changes nothing: the old one stays, and the error says which file and why.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::settings::Protocols;

/// PEM files. The certificate's file holds the chain, the server's own first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Whose client certificates are accepted. A client need not show one; one that it shows
    /// must be signed by these. What a certificate allows is the service's to say.
    pub client_ca: Option<PathBuf>,
}

/// The certificate in use. Shared by the listener and whoever reloads.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    protocols: Protocols,
    config: ArcSwap<ServerConfig>,
}

#[derive(Debug)]
pub struct TlsError {
    /// The file that is to blame.
    pub file: PathBuf,
    pub problem: String,
}

impl Tls {
    pub fn load(files: TlsFiles, protocols: Protocols) -> Result<Tls, TlsError> {
        let config = read(&files, protocols)?;
        Ok(Tls { files, protocols, config: ArcSwap::from_pointee(config) })
    }

    /// Reads the files again. On an error the pair in use stays.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.config.store(Arc::new(read(&self.files, self.protocols)?));
        Ok(())
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.load_full()
    }
}

fn read(files: &TlsFiles, protocols: Protocols) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let chain = certificates(&files.cert)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| wrong(&files.key, format!("no private key could be read: {error}")))?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&files.cert, error.to_string()))?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => builder.with_client_cert_verifier(client_verifier(file, provider)?),
    };
    // rustls compares the key with the certificate here, so a half-replaced pair is found out.
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| wrong(&files.key, format!("does not fit {:?}: {error}", files.cert)))?;
    config.alpn_protocols = match protocols {
        Protocols::Http1 => vec![b"http/1.1".to_vec()],
        Protocols::Http2 => vec![b"h2".to_vec()],
        Protocols::Both => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    Ok(config)
}

fn client_verifier(
    file: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| wrong(file, error.to_string()))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|error| wrong(file, error.to_string()))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |error| wrong(file, format!("no certificate could be read: {error}"));
    let chain: Vec<_> = CertificateDer::pem_file_iter(file)
        .map_err(unreadable)?
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    if chain.is_empty() {
        return Err(wrong(file, "holds no certificate".to_owned()));
    }
    Ok(chain)
}

fn wrong(file: &Path, problem: String) -> TlsError {
    TlsError { file: file.to_owned(), problem }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS file {:?}: {}", self.file, self.problem)
    }
}

impl std::error::Error for TlsError {}
