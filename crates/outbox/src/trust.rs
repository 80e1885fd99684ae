//! Whose certificates are believed: those that the machine trusts, and those of an operator's file;
//! or of that file alone.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// The certificates of the machine; they are many, and read once.
static OF_THE_MACHINE: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
});

/// A certificate of our own and its key, for servers that ask who we are.
#[derive(Clone, Copy, Debug)]
pub struct Papers<'a> {
    pub cert: &'a Path,
    pub key: &'a Path,
}

/// Who may have signed the other side's certificate.
#[derive(Clone, Copy, Debug)]
pub enum Signers<'a> {
    /// Those that the machine trusts, and those of a file, if there is one.
    Machine(Option<&'a Path>),
    /// Those of a file and nobody else.
    Only(&'a Path),
}

/// TLS of versions 1.2 and 1.3, where the other side must prove its name.
pub fn client(signers: Signers<'_>, papers: Option<Papers<'_>>) -> Result<ClientConfig, String> {
    let (mut roots, file) = match signers {
        Signers::Machine(file) => (OF_THE_MACHINE.clone(), file),
        Signers::Only(file) => (RootCertStore::empty(), Some(file)),
    };
    if let Some(file) = file {
        for one in certificates(file)? {
            roots.add(one).map_err(|error| of_file(file, &error))?;
        }
    }
    if roots.is_empty() {
        return Err("no certificate was found to hold the other side's against; name a file of \
                    them"
            .to_owned());
    }
    let builder: ConfigBuilder<ClientConfig, _> =
        ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
    let builder = builder.with_root_certificates(roots);
    let Some(Papers { cert, key }) = papers else { return Ok(builder.with_no_client_auth()) };
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| of_file(key, &error))?;
    let ours = builder.with_client_auth_cert(certificates(cert)?, private);
    ours.map_err(|error| of_file(cert, &error))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(file).map_err(|error| of_file(file, &error))?;
    all.collect::<Result<Vec<_>, _>>().map_err(|error| of_file(file, &error))
}

fn of_file(file: &Path, why: &dyn fmt::Display) -> String {
    format!("{}: {why}", file.display())
}
