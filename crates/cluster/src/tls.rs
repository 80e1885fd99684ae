//! Certificates between instances: each shows one, and each looks at the other's.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What an instance shows when it calls another, and whom it believes.
#[derive(Clone)]
pub struct Certificates(Arc<ClientConfig>);

impl Certificates {
    /// From PEM files: the chain with our own certificate first, its key, and who signs those of
    /// all instances.
    pub fn load(cert: &Path, key: &Path, ca: &Path) -> Result<Certificates, String> {
        let wrong = |file: &Path, why: &dyn fmt::Display| format!("{}: {why}", file.display());
        let read = |file: &Path| {
            let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
            all.map_err(|error| wrong(file, &error))
        };
        let chain: Vec<CertificateDer<'static>> = read(cert)?;
        let mut roots = RootCertStore::empty();
        for root in read(ca)? {
            roots.add(root).map_err(|error| wrong(ca, &error))?;
        }
        let own = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(cert, &error))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, own);
        let mut config = config.map_err(|error| wrong(key, &error))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Certificates(Arc::new(config)))
    }

    /// Calls an instance, whose certificate must be good for the host of its address.
    pub(crate) async fn connect(&self, address: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(std::io::Error::other)?;
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        TlsConnector::from(self.0.clone()).connect(name, socket).await
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificates")
    }
}
