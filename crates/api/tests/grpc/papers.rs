//! Certificates made for one test, and a client that shows one or does not.

use std::sync::Arc;

use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::Endpoint;
use waitroom_listen::TlsFiles;

use crate::house::{Client, House, soon};

pub struct Papers {
    authority: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// Whether the client shows a certificate of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Known {
    No,
    Yes,
}

impl Papers {
    pub fn new() -> Papers {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let papers = Papers { authority, folder: tempfile::tempdir().expect("a folder") };
        let (cert, key) = papers.signed(ExtendedKeyUsagePurpose::ServerAuth);
        papers.write("ca.pem", &papers.authority.pem());
        papers.write("cert.pem", &cert.pem());
        papers.write("key.pem", &key.serialize_pem());
        papers
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).expect("written");
    }

    pub fn files(&self) -> TlsFiles {
        let file = |name| self.folder.path().join(name);
        TlsFiles { cert: file("cert.pem"), key: file("key.pem"), client_ca: Some(file("ca.pem")) }
    }

    fn signed(&self, purpose: ExtendedKeyUsagePurpose) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec!["door.test".to_owned()]).expect("a name");
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &self.authority).expect("a certificate");
        (cert, key)
    }

    pub async fn client(&self, house: &House, known: Known) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match known {
            Known::No => builder.with_no_client_auth(),
            Known::Yes => {
                let (cert, key) = self.signed(ExtendedKeyUsagePurpose::ClientAuth);
                let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
                builder.with_client_auth_cert(vec![cert.der().clone()], key).expect("a pair")
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        let (connector, address) = (TlsConnector::from(Arc::new(config)), house.address);
        let dial = tower::service_fn(move |_| {
            let connector = connector.clone();
            async move {
                let name = ServerName::try_from("door.test").expect("a name");
                let tcp = TcpStream::connect(address).await?;
                connector.connect(name, tcp).await.map(TokioIo::new)
            }
        });
        let endpoint = Endpoint::from_static("http://door.test");
        Client::over(soon(endpoint.connect_with_connector(dial)).await.expect("connected"))
    }
}
