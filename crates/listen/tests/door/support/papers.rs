//! Certificates made for one test, and a client that believes them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use waitroom_listen::TlsFiles;

/// An authority, and a folder with the files of a server that it vouches for.
pub struct Papers {
    authority: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Papers {
    pub fn new() -> Papers {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("ca.pem"), authority.pem()).expect("written");
        let papers = Papers { authority, folder };
        papers.issue();
        papers
    }

    /// A new certificate with a new key, in the same files.
    pub fn issue(&self) {
        let (cert, key) = self.signed(ExtendedKeyUsagePurpose::ServerAuth);
        fs::write(self.path().join("cert.pem"), cert.pem()).expect("written");
        fs::write(self.path().join("key.pem"), key.serialize_pem()).expect("written");
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn files(&self) -> TlsFiles {
        let file = |name| self.path().join(name);
        TlsFiles { cert: file("cert.pem"), key: file("key.pem"), client_ca: Some(file("ca.pem")) }
    }

    fn signed(&self, purpose: ExtendedKeyUsagePurpose) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec!["door.test".to_owned()]).expect("a name");
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &self.authority).expect("a certificate");
        (cert, key)
    }

    /// A client that trusts this authority and offers these protocols.
    pub fn client(&self, alpn: &[&str], known: Known) -> TlsConnector {
        self.client_of(alpn, matches!(known, Known::Yes).then_some(self))
    }

    /// One that trusts this authority and shows a certificate of another.
    pub fn client_with_papers_of(&self, other: &Papers) -> TlsConnector {
        self.client_of(&["http/1.1"], Some(other))
    }

    fn client_of(&self, alpn: &[&str], papers: Option<&Papers>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match papers {
            None => builder.with_no_client_auth(),
            Some(papers) => {
                let (cert, key) = papers.signed(ExtendedKeyUsagePurpose::ClientAuth);
                let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
                builder.with_client_auth_cert(vec![cert.der().clone()], key).expect("a pair")
            }
        };
        // Each connection is to see the certificate in use, not to resume an older one.
        config.resumption = rustls::client::Resumption::disabled();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }
}

/// Whether the client shows a certificate of its own.
#[derive(Clone, Copy)]
pub enum Known {
    No,
    Yes,
}

pub async fn shake(
    connector: &TlsConnector,
    tcp: TcpStream,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("door.test").expect("a name");
    super::in_time(connector.connect(name, tcp)).await
}

pub fn server_cert(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    let chain = stream.get_ref().1.peer_certificates().expect("a server shows its certificate");
    chain[0].clone().into_owned()
}
