//! Kafka over TLS and with passwords: a real broker with certificates made for the test, which
//! asks who we are.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use waitroom_outbox::body::ReadyToken;
use waitroom_outbox::kafka::{KafkaSink, Link, Mechanism, Sasl, Tls};
use waitroom_outbox::mirror::{KafkaMirror, Place};
use waitroom_outbox::{Carry, SinkFigures, Whole};

use crate::house::{House, TestRoom, soon};
use crate::kafka::{Reader, judge, topics};
use crate::mirror::{self, terms};
use crate::parts::{Guarded, Kafka};
use crate::projection::errand;
use crate::secured::papers;

/// Tells a room to the broker by this link, until that is done.
struct Telling {
    figures: Arc<SinkFigures>,
    running: tokio::task::JoinHandle<()>,
}

impl Telling {
    fn begin(house: &House, room: &TestRoom, name: &str, link: Link) -> Telling {
        let sink = KafkaSink::new(link, topics(name), ReadyToken::On);
        let relay = house.relay(room, name, Arc::new(sink));
        let figures = relay.figures.clone();
        Telling { figures, running: tokio::spawn(async move { relay.run().await }) }
    }

    /// Why it does not go.
    async fn refused(&self) -> String {
        let why = soon("it says what is wrong", || self.figures.trouble()).await;
        assert_eq!(self.figures.delivered.get(), 0, "nothing arrived: {why}");
        why
    }

    async fn arrives(self, house: &House, room: &TestRoom, name: &str, kafka: &Kafka) {
        let topics = topics(name);
        judge(house, room, &topics, Reader::of(kafka, &topics, name)).await;
        soon("it is told that nothing is wrong", || self.figures.trouble().is_none().then_some(()))
            .await;
        self.running.abort();
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.running.abort();
    }
}

fn tls(folder: &Path, certificate: bool) -> Option<Tls> {
    let file = |name: &str| folder.join(name);
    let papers = certificate.then(|| (file("client.pem"), file("client.key")));
    Some(Tls { ca: Some(file("ca.pem")), papers })
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_prove_their_names_and_we_ours_by_a_certificate_or_by_a_password() {
    let (ours, others) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("one"));
    papers(ours.path());
    papers(others.path());
    let kafka = Kafka::guarded(ours.path());
    let Guarded { tls: by_tls, known, .. } = kafka.guards();
    let (by_tls, known) = (format!("127.0.0.1:{by_tls}"), format!("127.0.0.1:{known}"));
    let house = House::new();
    let room = house.room("spring-sale").await;
    room.join_many(20).await;
    let begin = |name: &str, link: Link| Telling::begin(&house, &room, name, link);

    let guarded = |papers: Option<Tls>| Link { tls: papers, ..Link::plain(&by_tls) };
    let why = begin("wrong-ca", guarded(tls(others.path(), true))).refused().await;
    assert!(why.contains("certificate verify failed"), "an authority of somebody else: {why}");
    let why = begin("no-papers", guarded(tls(ours.path(), false))).refused().await;
    assert!(why.contains("certificate"), "without a certificate of ours: {why}");
    let nowhere = Tls { ca: Some("/nowhere.pem".into()), papers: None };
    let why = begin("no-file", guarded(Some(nowhere))).refused().await;
    assert!(why.contains("/nowhere.pem"), "a file that is not there: {why}");
    let right = begin("right-ca", guarded(tls(ours.path(), true)));
    right.arrives(&house, &room, "right-ca", &kafka).await;

    let password_file = ours.path().join("password");
    let by_password = |mechanism: Mechanism| {
        let (user, password_file) = (Guarded::USER.to_owned(), password_file.clone());
        let sasl = Some(Sasl { mechanism, user, password_file });
        Link { tls: tls(ours.path(), false), sasl, ..Link::plain(&known) }
    };
    for (name, mechanism) in [
        ("plain", Mechanism::Plain),
        ("scram-256", Mechanism::ScramSha256),
        ("scram-512", Mechanism::ScramSha512),
    ] {
        fs::write(&password_file, "close sesame\n").expect("written");
        let telling = begin(name, by_password(mechanism));
        let why = telling.refused().await;
        assert!(why.to_lowercase().contains("authentication"), "a wrong password: {why}");
        assert!(!why.contains("sesame"), "and it is not told: {why}");
        // The file is read anew: whoever puts it right need not start anything again.
        fs::write(&password_file, format!("{}\n", Guarded::PASSWORD)).expect("written");
        telling.arrives(&house, &room, name, &kafka).await;
    }

    // A mirror goes the same ways, there and back.
    let others_ca = guarded(tls(others.path(), true));
    let why = mirror_refused(&house, &room, "mirror-wrong-ca", others_ca.clone()).await;
    assert!(why.contains("certificate verify failed"), "an authority of somebody else: {why}");
    let name = room.handle.name();
    let unread = Place::Kafka(others_ca).read("mirror", name, |_| Ok::<(), ()>(())).await;
    let why = unread.expect_err("nobody reads it").why;
    assert!(why.contains("certificate verify failed"), "to whoever rebuilds, too: {why}");
    fs::write(&password_file, "close sesame\n").expect("written");
    let stranger = by_password(Mechanism::ScramSha512);
    let why = mirror_refused(&house, &room, "mirror-stranger", stranger).await;
    assert!(why.to_lowercase().contains("authentication"), "a wrong password: {why}");
    fs::write(&password_file, format!("{}\n", Guarded::PASSWORD)).expect("written");
    for (topic, link) in [
        ("mirror-by-certificate", guarded(tls(ours.path(), true))),
        ("mirror-by-password", by_password(Mechanism::ScramSha512)),
    ] {
        let keeper = Arc::new(Whole::new(KafkaMirror::new(link.clone(), topic, terms())));
        let carrying = tokio::spawn(keeper.carry(errand(&house, &room, topic)));
        mirror::judge(&house, &room, &Place::Kafka(link), topic).await;
        carrying.abort();
    }
    house.stop().await;
}

/// Why a mirror by this link does not go.
async fn mirror_refused(house: &House, room: &TestRoom, topic: &str, link: Link) -> String {
    let errand = errand(house, room, topic);
    let figures = errand.figures.clone();
    let keeper = Arc::new(Whole::new(KafkaMirror::new(link, topic, terms())));
    let carrying = tokio::spawn(keeper.carry(errand));
    let why = soon("it says what is wrong", || figures.trouble()).await;
    carrying.abort();
    why
}
