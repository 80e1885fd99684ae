//! Servers that are spoken to over TLS, and servers that ask who is there.

#[path = "common/servers.rs"]
mod servers;

use std::{fs, net::Ipv4Addr, path::PathBuf, time::Duration};

use rcgen::{CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use servers::{DURABLE, Server, TLS_ABOVE};
use tokio::runtime::{Builder, Runtime};
use waitroom_redis::{Level, Login, OpenError, Options, RedisStore, Tls, Where};
use waitroom_store::{Batch, Head, LeaseName, RoomName, Seams, Store, contract_tests::wait};

const ALONE: Level = Level::Sync { replicas_required: 0 };

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("one thread")
}

/// Opens it, and writes something that is read back.
fn try_out(runtime: &Runtime, mut options: Options) -> Result<(), OpenError> {
    // A busy machine is not a broken one.
    options.answer_timeout = Duration::from_secs(20);
    options.connect_timeout = Duration::from_secs(20);
    let (store, _) = runtime.block_on(RedisStore::open(options, Seams::real()))?;
    let room = RoomName::parse("r").expect("a name");
    let lease = wait(store.lease(&LeaseName::room(&room), "owner", 60_000)).expect("free");
    let batch = Batch { number: 0, events: 1, payload: b"hello".to_vec() };
    let head = wait(store.committed_head(&room)).expect("readable");
    let told = wait(store.append(&room, &lease, head, batch)).expect("written");
    let read = wait(store.read(&room, head, usize::MAX)).expect("readable");
    assert_eq!(read.last().map(|stored| stored.head), Some(told.head));
    // What else a store does to a room: snapshot, cursor, board, removal.
    let chunks = vec![vec![1; 10], vec![2; 10]].into_iter();
    wait(store.snapshot(&room, told.head, told.chain, chunks)).expect("kept");
    wait(store.trim(&room, told.head)).expect("trimmed");
    let sink = waitroom_store::SinkName::parse("bus").expect("a name");
    wait(store.advance(&room, &sink, told.head)).expect("kept");
    wait(store.publish_board(&room, b"board".to_vec())).expect("published");
    wait(store.announce("one", b"here".to_vec(), 1_000)).expect("announced");
    assert_eq!(wait(store.rooms()), Ok(vec![room.clone()]));
    wait(store.release(&lease)).expect("given back");
    wait(store.remove_room(&room)).expect("removed");
    assert_eq!(wait(store.committed_head(&room)), Ok(Head::EMPTY));
    Ok(())
}

/// An authority, and a folder with its certificate, a server's and a client's.
struct Papers {
    folder: PathBuf,
    ca: Vec<u8>,
    client: (Vec<u8>, Vec<u8>),
}

impl Papers {
    fn new(name: &str) -> Papers {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let signed = || {
            let mut params = CertificateParams::new(Vec::new()).expect("no names");
            // OpenSSL takes a certificate for its own issuer if both have one name.
            params.distinguished_name.push(DnType::CommonName, "redis");
            params.subject_alt_names = vec![SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
            let key = KeyPair::generate().expect("a key");
            let cert = params.signed_by(&key, &authority).expect("a certificate");
            (cert.pem(), key.serialize_pem())
        };
        let folder = format!("papers-{}-{name}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
        fs::create_dir_all(&folder).expect("the build's folder is writable");
        let ca = authority.pem();
        let (cert, key) = signed();
        for (file, text) in [("ca.pem", &ca), ("cert.pem", &cert), ("key.pem", &key)] {
            fs::write(folder.join(file), text).expect("written");
        }
        let (cert, key) = signed();
        Papers { folder, ca: ca.into_bytes(), client: (cert.into_bytes(), key.into_bytes()) }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// A Redis that shows these papers, and may ask for a client's.
    fn server(&self, asks: &str) -> Server {
        let files = [self.file("cert.pem"), self.file("key.pem"), self.file("ca.pem")];
        let [cert, key, ca] = files.each_ref().map(String::as_str);
        let tls = [
            ["--tls-port", "{tls}"],
            ["--tls-cert-file", cert],
            ["--tls-key-file", key],
            ["--tls-ca-cert-file", ca],
            ["--tls-auth-clients", asks],
        ];
        Server::redis(&[&DURABLE[..], &tls.concat()].concat())
    }
}

impl Drop for Papers {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn over_tls(server: &Server, tls: Tls) -> Options {
    let url = format!("rediss://127.0.0.1:{}", server.port + TLS_ABOVE);
    Options { tls, ..Options::new(Where::Single { url }, ALONE) }
}

#[test]
fn over_tls_a_server_proves_who_it_is() {
    let (papers, other, runtime) = (Papers::new("ours"), Papers::new("other"), runtime());
    let server = papers.server("no");
    let with = |ca: &[u8]| over_tls(&server, Tls { ca: Some(ca.to_vec()), client: None });
    try_out(&runtime, with(&papers.ca)).expect("its authority is known");
    let told = try_out(&runtime, with(&other.ca));
    assert!(matches!(told, Err(OpenError::Away(_))), "another authority: {told:?}");
    let told = try_out(&runtime, over_tls(&server, Tls::default()));
    assert!(matches!(told, Err(OpenError::Away(_))), "the machine's authorities: {told:?}");
    let told =
        try_out(&runtime, with(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"));
    assert!(matches!(told, Err(OpenError::Address(_))), "no certificate: {told:?}");
}

#[test]
fn over_tls_we_prove_who_we_are_where_it_is_asked() {
    let (papers, other, runtime) = (Papers::new("mutual"), Papers::new("strange"), runtime());
    let server = papers.server("yes");
    let with = |client| over_tls(&server, Tls { ca: Some(papers.ca.clone()), client });
    try_out(&runtime, with(Some(papers.client.clone()))).expect("we are known");
    for client in [None, Some(other.client.clone())] {
        let told = try_out(&runtime, with(client));
        assert!(matches!(told, Err(OpenError::Away(_))), "{told:?}");
    }
}

/// What a user needs is in the document that operators read.
fn rights() -> Vec<String> {
    let document = include_str!("../../../docs/redis.md");
    let line = document.lines().find_map(|line| line.strip_prefix("user waitroom "));
    let line = line.expect("docs/redis.md has a line `user waitroom …`");
    line.split(' ').map(|word| word.replace("SECRET", "open-sesame")).collect()
}

#[test]
fn the_rights_that_the_document_names_are_enough() {
    let runtime = runtime();
    let rights = rights();
    let user = ["--user", "waitroom"].into_iter().chain(rights.iter().map(String::as_str));
    let settings: Vec<&str> = DURABLE.into_iter().chain(user).collect();
    let server = Server::redis(&settings);
    let with = |user: &str, password: &str| {
        let (user, password) = (Some(user.to_owned()), Some(password.to_owned()));
        let login = Login { user, password, database: 0 };
        Options { login, ..Options::new(Where::Single { url: server.url() }, ALONE) }
    };
    try_out(&runtime, with("waitroom", "open-sesame")).expect("the rights are enough");
    let told = try_out(&runtime, with("waitroom", "open-barley"));
    assert!(matches!(told, Err(OpenError::Away(_))), "{told:?}");
    // And it can do nothing else: neither to others' keys nor to the server.
    assert_eq!(server.say("ACL DRYRUN waitroom GET waitroom:x"), "OK");
    for other in ["GET other", "FLUSHALL", "SHUTDOWN", "KEYS *", "CONFIG SET save 1"] {
        let said = server.say(&format!("ACL DRYRUN waitroom {other}"));
        assert_ne!(said, "OK", "{other}");
    }
}
