//! Who may speak to the address that is for instances only.

use std::path::Path;

use rcgen::{CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};

use crate::house::{House, picture};
use crate::instance::{Got, curl};

/// An authority, and a certificate that it vouches for, in files.
fn papers(folder: &Path) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name.push(DnType::CommonName, "authority");
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
    params.distinguished_name.push(DnType::CommonName, "instance");
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().expect("a key");
    let cert = params.signed_by(&key, &authority).expect("a certificate");
    for (name, text) in
        [("ca.pem", authority.pem()), ("cert.pem", cert.pem()), ("key.pem", key.serialize_pem())]
    {
        std::fs::write(folder.join(name), text).expect("a new folder is writable");
    }
}

/// Calls an instance as another would, without knowing the secret.
fn call(url: &str, more: &[&str]) -> Got {
    let path = format!("{url}/waitroom.cluster.v1.Instances/Carry");
    let grpc = ["-X", "POST", "-H", "Content-Type: application/grpc", "-H", "TE: trailers"];
    curl(&[&[path.as_str()], &grpc[..], more].concat())
}

/// gRPC's code for somebody who is not known.
const UNAUTHENTICATED: &str = "16";

#[test]
fn instances_with_certificates_share_a_queue_and_strangers_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    papers(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (cert, key, ca) = (file("cert.pem"), file("key.pem"), file("ca.pem"));
    let house = House::with(
        2,
        &[
            ("WAITROOM_CLUSTER_CERT", &cert),
            ("WAITROOM_CLUSTER_KEY", &key),
            ("WAITROOM_CLUSTER_CA", &ca),
        ],
    );
    for who in 0..4 {
        let joined = house.instances[who as usize % 2].join(who);
        assert_eq!(joined["position"], who + 1, "{joined}");
    }
    let address = picture(&house.instances[0])["instances"][0]["address"].clone();
    let url = format!("https://{}", address.as_str().expect("an address"));
    // One without a certificate, and one that has one and not the secret.
    let mine = ["--cacert", &ca, "--cert", &cert, "--key", &key];
    for (more, word) in [(&mine[..2], "certificate"), (&mine[..], "installation")] {
        let got = call(&url, &[&["--http2"], more].concat());
        assert_eq!(got.header("grpc-status").as_deref(), Some(UNAUTHENTICATED), "{got:?}");
        assert!(got.header("grpc-message").is_some_and(|it| it.contains(word)), "{got:?}");
    }
}

#[test]
fn a_stranger_without_the_secret_is_refused() {
    let house = House::of(1);
    let address = picture(&house.instances[0])["instances"][0]["address"].clone();
    let url = format!("http://{}", address.as_str().expect("an address"));
    for secret in ["", "waitroom-cluster: 0000", "waitroom-instance: waitroom-1"] {
        let got = call(&url, &["--http2-prior-knowledge", "-H", secret]);
        assert_eq!(got.header("grpc-status").as_deref(), Some(UNAUTHENTICATED), "{got:?}");
    }
}
