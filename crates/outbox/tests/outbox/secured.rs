//! PostgreSQL over TLS: a real server with certificates made for the test, which asks for ours.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use waitroom_outbox::postgres::{Link, Projection, connect};
use waitroom_outbox::{Carry, Whole};

use crate::database::Postgres;
use crate::house::{House, soon};
use crate::projection::errand;

/// A folder with an authority, and a certificate of a server and of a client signed by it.
pub fn papers(folder: &Path) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
    fs::write(folder.join("ca.pem"), authority.pem()).expect("written");
    for (name, common) in [("server", "db"), ("client", "waitroom")] {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, common);
        params.subject_alt_names = vec![SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &authority).expect("a certificate");
        fs::write(folder.join(format!("{name}.pem")), cert.pem()).expect("written");
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).expect("written");
    }
}

fn link(url: String) -> Link {
    Link { url, password_file: None }
}

/// Why there is no connection.
async fn refused(url: String) -> String {
    match connect(&link(url)).await {
        Ok(_) => panic!("it must not connect"),
        Err(trouble) => trouble.why,
    }
}

/// A server that takes nobody without TLS and a certificate of its authority, and its port.
async fn guarded(folder: &Path) -> (Postgres, u16) {
    let only = "hostssl all all 127.0.0.1/32 trust clientcert=verify-ca\nlocal all all trust\n";
    // Between our look and its own somebody may take the port; then others are tried.
    for _ in 0..4 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        drop(listener);
        if let Some(postgres) = Postgres::guarded(port, folder, only).await {
            return (postgres, port);
        }
    }
    panic!("no port could be had");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_reached_over_tls_and_must_prove_its_name_as_we_prove_ours() {
    let (ours, others) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("one"));
    papers(ours.path());
    papers(others.path());
    let (postgres, port) = guarded(ours.path()).await;
    let at = format!("postgres://waitroom@127.0.0.1:{port}/postgres");
    let file = |of: &tempfile::TempDir, name: &str| {
        of.path().join(name).to_str().expect("a plain path").replace('/', "%2F")
    };
    let (ca, cert, key) =
        (file(&ours, "ca.pem"), file(&ours, "client.pem"), file(&ours, "client.key"));
    let client = format!("sslcert={cert}&sslkey={key}");

    let why = refused(at.clone()).await;
    assert!(why.contains("no encryption") || why.contains("pg_hba"), "in plain text: {why}");
    let why = refused(format!("{at}?sslmode=verify-full&{client}")).await;
    assert!(why.contains("UnknownIssuer"), "an authority that nobody named: {why}");
    let why = refused(format!("{at}?sslrootcert={}&{client}", file(&others, "ca.pem"))).await;
    assert!(why.contains("invalid peer certificate"), "an authority of somebody else: {why}");
    let named = at.replace("127.0.0.1", "localhost");
    let why = refused(format!("{named}?sslrootcert={ca}&{client}")).await;
    assert!(why.contains("NotValidForName") || why.contains("not valid for name"), "{why}");
    let why = refused(format!("{at}?sslrootcert={ca}")).await;
    assert!(why.contains("certificate"), "without a certificate of ours: {why}");
    let theirs =
        format!("sslcert={}&sslkey={}", file(&others, "client.pem"), file(&others, "client.key"));
    let why = refused(format!("{at}?sslrootcert={ca}&{theirs}")).await;
    assert!(!why.is_empty(), "with one of somebody else");
    let why = refused(format!("{at}?sslrootcert=%2Fnowhere.pem&{client}")).await;
    assert!(why.contains("/nowhere.pem"), "a file that is not there: {why}");

    // All of it as it should be: the tables are written.
    let house = House::new();
    let room = house.room("spring-sale").await;
    room.join_many(20).await;
    let url = format!("{at}?sslmode=verify-full&sslrootcert={ca}&{client}");
    let errand = errand(&house, &room, "postgres");
    let figures = errand.figures.clone();
    let carry = Arc::new(Whole::new(Projection::new(link(url)))).carry(errand);
    let carrying = tokio::spawn(carry);
    let head = room.handle.committed();
    soon("the tables are told", || figures.lags(0).iter().any(|lag| lag.at == head).then_some(()))
        .await;
    let inside = postgres.client().await;
    let secured = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
                   WHERE s.ssl AND a.application_name = 'waitroom'";
    let secured: i64 = inside.query_one(secured, &[]).await.expect("a count").get(0);
    assert_eq!(secured, 1, "by a connection that the server too calls secured");
    carrying.abort();
    house.stop().await;
}
