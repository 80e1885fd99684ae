//! TLS: who speaks what, reload, and those who stall.

use std::fs;

use tokio::io::AsyncWriteExt;

use crate::support::papers::{Known, Papers, server_cert, shake};
use crate::support::{SHORT, closed, get, in_time, open};
use waitroom_listen::{Listener, Protocols};

#[tokio::test]
async fn the_protocol_is_agreed_in_the_handshake() {
    let papers = Papers::new();
    let house = open(|settings| settings.tls = Some(papers.files()));
    for (offer, agreed) in
        [(&["h2", "http/1.1"][..], Some("h2")), (&["http/1.1"], Some("http/1.1")), (&[], None)]
    {
        let client = papers.client(offer, Known::No);
        let mut guest = shake(&client, house.connect().await).await.expect("a handshake");
        let alpn = guest.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        assert_eq!(alpn.as_deref(), agreed.map(str::as_bytes));
        if agreed == Some("h2") {
            let (client, connection) =
                in_time(h2::client::handshake(guest)).await.expect("a handshake");
            let talking = tokio::spawn(connection);
            let mut client = in_time(client.ready()).await.expect("ready");
            let request = http::Request::get("https://door.test/").body(()).expect("a request");
            let (response, _) = client.send_request(request, true).expect("sent");
            let response = in_time(response).await.expect("an answer");
            assert_eq!(
                (response.status().as_u16(), response.version()),
                (200, http::Version::HTTP_2)
            );
            drop((client, response));
            in_time(talking).await.expect("no panic").expect("a polite end");
        } else {
            let heard = get(&mut guest, "/peer").await.body;
            assert!(heard.ends_with("None Http1 tls=true cert=0"), "{heard}");
        }
    }
    house.close().await;
}

#[tokio::test]
async fn a_listener_for_one_protocol_offers_no_other() {
    let papers = Papers::new();
    let house = open(|settings| {
        settings.tls = Some(papers.files());
        settings.protocols = Protocols::Http2;
    });
    let client = papers.client(&["http/1.1"], Known::No);
    assert!(shake(&client, house.connect().await).await.is_err());
    house.counted(|counts| counts.failed_tls == 1 && counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn a_client_may_show_a_certificate_of_ours_and_no_strangers() {
    let papers = Papers::new();
    let house = open(|settings| settings.tls = Some(papers.files()));
    let client = papers.client(&["http/1.1"], Known::Yes);
    let mut guest = shake(&client, house.connect().await).await.expect("a handshake");
    let heard = get(&mut guest, "/peer").await.body;
    assert!(!heard.ends_with("cert=0"), "{heard}");
    // Trusts our server, but shows a certificate of another authority.
    let stranger = papers.client_with_papers_of(&Papers::new());
    if let Ok(mut guest) = shake(&stranger, house.connect().await).await {
        // TLS 1.3: the client is done before the server has looked.
        assert_eq!(closed(&mut guest).await, b"");
    }
    house.counted(|counts| counts.failed_tls == 1).await;
    house.close().await;
}

#[tokio::test]
async fn a_reload_takes_effect_for_new_connections_and_a_broken_one_changes_nothing() {
    let papers = Papers::new();
    let house = open(|settings| settings.tls = Some(papers.files()));
    let client = papers.client(&["http/1.1"], Known::No);
    let tls = house.tls.clone().expect("a certificate");
    let mut before = shake(&client, house.connect().await).await.expect("a handshake");
    let first = server_cert(&before);

    papers.issue();
    tls.reload().expect("a good pair");
    let after = shake(&client, house.connect().await).await.expect("a handshake");
    let second = server_cert(&after);
    assert_ne!(first, second);
    assert_eq!(get(&mut before, "/").await.status, 200, "an open connection goes on");

    // A key that does not fit, a file that is no key, no certificate, no file.
    let key = papers.path().join("key.pem");
    let cert = papers.path().join("cert.pem");
    let good_cert = fs::read(&cert).expect("readable");
    papers.issue();
    fs::write(&cert, &good_cert).expect("written");
    let error = tls.reload().expect_err("the key is of another pair").to_string();
    assert!(error.contains("key.pem") && error.contains("cert.pem"), "{error}");
    fs::write(&key, "nonsense").expect("written");
    let error = tls.reload().expect_err("no key").to_string();
    assert!(error.contains("key.pem"), "{error}");
    fs::write(&cert, "").expect("written");
    let error = tls.reload().expect_err("no certificate").to_string();
    assert!(error.contains("cert.pem") && error.contains("holds no certificate"), "{error}");
    fs::remove_file(&cert).expect("removed");
    let error = tls.reload().expect_err("no file").to_string();
    assert!(error.contains("cert.pem"), "{error}");

    let still = shake(&client, house.connect().await).await.expect("a handshake");
    assert_eq!(server_cert(&still), second);
    house.close().await;
}

#[tokio::test]
async fn a_missing_certificate_is_told_at_bind() {
    let papers = Papers::new();
    let mut settings = crate::support::settings();
    let mut files = papers.files();
    files.key = papers.path().join("not-there.pem");
    settings.tls = Some(files);
    let error = Listener::bind(settings).expect_err("no key").to_string();
    assert!(error.contains("not-there.pem"), "{error}");
}

#[tokio::test]
async fn a_handshake_that_stalls_is_cut() {
    let papers = Papers::new();
    let house = open(|settings| {
        settings.tls = Some(papers.files());
        settings.timeouts.handshake = SHORT;
    });
    // Silent, and silent after a good beginning (a record that announces more than comes).
    for beginning in [&b""[..], &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc]] {
        let mut guest = house.connect().await;
        guest.write_all(beginning).await.expect("can write");
        assert_eq!(closed(&mut guest).await, b"");
    }
    house.counted(|counts| counts.late_handshake == 2 && counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn plain_http_to_a_tls_door_ends_and_is_counted() {
    let papers = Papers::new();
    let house = open(|settings| settings.tls = Some(papers.files()));
    let mut guest = house.connect().await;
    guest.write_all(b"GET / HTTP/1.1\r\nhost: t\r\n\r\n").await.expect("can write");
    closed(&mut guest).await;
    house.counted(|counts| counts.failed_tls == 1 && counts.open == 0).await;
    house.close().await;
}
