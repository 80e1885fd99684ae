use proptest::prelude::*;

use super::*;

fn header(len: usize, source: &str, destination: &str) -> Parsed {
    let source = source.parse().expect(source);
    let destination = destination.parse().expect(destination);
    Parsed::Header(len, Some(Addresses { source, destination }))
}

/// A v2 header with this command, family and rest.
fn v2_bytes(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = V2_START.to_vec();
    bytes.extend([command, family]);
    bytes.extend(u16::try_from(rest.len()).expect("a length").to_be_bytes());
    bytes.extend(rest);
    bytes
}

/// Every beginning of `good` asks for more, and what follows it changes nothing.
fn holds_at_every_cut(good: &[u8]) {
    let whole = parse(good);
    assert!(matches!(whole, Parsed::Header(len, _) if len == good.len()), "{good:?}: {whole:?}");
    for cut in 0..good.len() {
        assert_eq!(parse(&good[..cut]), Parsed::Incomplete, "{good:?} cut at {cut}");
    }
    for behind in [&b"GET / HTTP/1.1\r\n"[..], b"\r\n", b"\0", b"PROXY TCP4"] {
        assert_eq!(parse(&[good, behind].concat()), whole);
    }
}

#[test]
fn text_headers_tell_who_connected_to_what() {
    let four = b"PROXY TCP4 203.0.113.9 10.0.0.1 56324 443\r\n";
    assert_eq!(parse(four), header(four.len(), "203.0.113.9:56324", "10.0.0.1:443"));
    let six = b"PROXY TCP6 2001:db8::9 fd00::1 56324 443\r\n";
    assert_eq!(parse(six), header(six.len(), "[2001:db8::9]:56324", "[fd00::1]:443"));
    let longest = format!("PROXY UNKNOWN {0} {0} 65535 65535\r\n", "ffff:".repeat(7) + "ffff");
    assert_eq!(longest.len(), V1_BYTES_MAX);
    for good in [&four[..], six, b"PROXY UNKNOWN\r\n", longest.as_bytes()] {
        holds_at_every_cut(good);
    }
    assert_eq!(parse(b"PROXY UNKNOWN\r\n"), Parsed::Header(15, None));
    assert_eq!(parse(b"PROXY UNKNOWN any thing\r\n"), Parsed::Header(25, None));
}

#[test]
fn broken_text_headers_are_refused() {
    for bad in [
        "GET / HTTP/1.1\r\n",
        "proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY\r\n",
        "PROXY \r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n",
        "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4  2\r\n",
        "PROXY TCP4 1.2.3.256 1.2.3.4 1 2\r\n",
        "PROXY TCP4 ::1 ::1 1 2\r\n",
        "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n\r\n",
    ] {
        assert_eq!(parse(bad.as_bytes()), Parsed::Bad, "{bad:?}");
    }
    let endless = format!("PROXY UNKNOWN {}", "x".repeat(200));
    assert_eq!(parse(endless.as_bytes()), Parsed::Bad);
    assert_eq!(parse(&endless.as_bytes()[..106]), Parsed::Incomplete);
    assert_eq!(parse(&endless.as_bytes()[..107]), Parsed::Bad);
}

#[test]
fn binary_headers_tell_who_connected_to_what() {
    let four = v2_bytes(0x21, 0x11, &[203, 0, 113, 9, 10, 0, 0, 1, 0xdc, 0x04, 1, 0xbb]);
    assert_eq!(parse(&four), header(28, "203.0.113.9:56324", "10.0.0.1:443"));
    let mut rest = Vec::new();
    rest.extend("2001:db8::9".parse::<Ipv6Addr>().unwrap().octets());
    rest.extend("fd00::1".parse::<Ipv6Addr>().unwrap().octets());
    rest.extend([0xdc, 0x04, 1, 0xbb]);
    let six = v2_bytes(0x21, 0x21, &rest);
    assert_eq!(parse(&six), header(52, "[2001:db8::9]:56324", "[fd00::1]:443"));
    // With extras behind the addresses, as clouds add them.
    rest.extend([0xea, 0, 3, 1, b'v', b'p']);
    let extras = v2_bytes(0x21, 0x21, &rest);
    assert_eq!(parse(&extras), header(58, "[2001:db8::9]:56324", "[fd00::1]:443"));
    let largest = v2_bytes(0x21, 0x11, &vec![7; BYTES_MAX - V2_FIXED]);
    for good in [&four[..], &six, &extras, &largest] {
        holds_at_every_cut(good);
    }
}

#[test]
fn a_proxy_that_speaks_for_itself_or_of_something_else_tells_no_address() {
    for (command, family) in [(0x20, 0x00), (0x20, 0x11), (0x21, 0x00), (0x21, 0x12), (0x21, 0x31)]
    {
        for rest in [&[][..], &[1; 12], &[2; 216]] {
            let bytes = v2_bytes(command, family, rest);
            assert_eq!(parse(&bytes), Parsed::Header(16 + rest.len(), None));
            holds_at_every_cut(&bytes);
        }
    }
}

#[test]
fn broken_binary_headers_are_refused_as_soon_as_that_is_known() {
    for (command, family, rest) in [
        (0x11, 0x11, 12),
        (0x22, 0x11, 12),
        (0x31, 0x11, 12),
        (0x21, 0x41, 12),
        (0x21, 0x13, 12),
        (0x21, 0x11, 11),
        (0x21, 0x21, 35),
        (0x21, 0x11, BYTES_MAX - V2_FIXED + 1),
        (0x21, 0x11, 65535),
    ] {
        let bytes = v2_bytes(command, family, &vec![0; rest]);
        assert_eq!(parse(&bytes), Parsed::Bad, "{command:x} {family:x} {rest}");
        assert_eq!(parse(&bytes[..V2_FIXED]), Parsed::Bad, "{command:x} {family:x} {rest}");
    }
    assert_eq!(parse(b"\r\n\r\n\0\r\nQUIT\n\x13"), Parsed::Bad);
    assert_eq!(parse(b"\r\n\r\n\0\r\nQUIX"), Parsed::Bad);
}

proptest! {
    /// Whatever comes, in whatever pieces: an answer, the same one as for the whole, and never a
    /// wish for more than the limit.
    #[test]
    fn any_bytes_get_an_answer_that_more_bytes_do_not_change(
        start in prop::sample::select(vec![&b""[..], V1_START, b"PROXY TCP4 ", V2_START,
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11", b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0"]),
        tail in prop::collection::vec(any::<u8>(), 0..300),
        cut in any::<prop::sample::Index>(),
    ) {
        let bytes = [start, &tail].concat();
        let whole = parse(&bytes);
        let cut = cut.index(bytes.len() + 1);
        match parse(&bytes[..cut]) {
            Parsed::Incomplete => prop_assert!(cut < BYTES_MAX),
            decided => prop_assert_eq!(decided, whole),
        }
        if let Parsed::Header(len, _) = whole {
            prop_assert!(len <= bytes.len() && len <= BYTES_MAX);
            for shorter in 0..len {
                prop_assert_eq!(parse(&bytes[..shorter]), Parsed::Incomplete);
            }
        }
    }

    #[test]
    fn what_a_proxy_writes_is_read_back(
        source in any::<[u8; 4]>(), destination in any::<[u8; 4]>(), from in any::<u16>(), to in any::<u16>(),
    ) {
        let source = SocketAddr::from((source, from));
        let destination = SocketAddr::from((destination, to));
        let line = format!("PROXY TCP4 {} {} {from} {to}\r\n", source.ip(), destination.ip());
        let told = Parsed::Header(line.len(), Some(Addresses { source, destination }));
        prop_assert_eq!(parse(line.as_bytes()), told);
    }
}
