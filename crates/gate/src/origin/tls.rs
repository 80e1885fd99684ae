//! Whose certificates an origin may show.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::stream::Stream;

/// How a site's origins prove who they are; made once, shared by its connections.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust")
    }
}

impl Trust {
    /// In what these files have signed: a file of the operator's, or those of the machine.
    pub fn load(ca: Option<&Path>) -> Result<Trust, String> {
        let mut roots = RootCertStore::empty();
        match ca {
            Some(file) => {
                let wrong = |why: &dyn fmt::Display| format!("{}: {why}", file.display());
                let all = CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))?;
                for one in all {
                    let one = one.map_err(|error| wrong(&error))?;
                    roots.add(one).map_err(|error| wrong(&error))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() {
            let hint = "no certificate was found to hold an origin's against; name a file of them \
                        as origin_ca";
            return Err(hint.to_owned());
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Trust(Arc::new(config)))
    }

    /// None when the other side is not whom it should be, or no TLS.
    pub(super) async fn connect(&self, host: &str, stream: TcpStream) -> Option<Stream> {
        let name = ServerName::try_from(host.to_owned()).ok()?;
        let stream = TlsConnector::from(self.0.clone()).connect(name, stream).await.ok()?;
        Some(Stream::Tls(Box::new(stream)))
    }
}
