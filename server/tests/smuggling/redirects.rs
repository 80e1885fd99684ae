//! No link of ours leads to a stranger, as a browser reads it: Node's URL is the one of browsers
//! (WHATWG), and it says where each link would go.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::house::House;
use crate::instance::{curl, soon};
use crate::origin::Origin;
use crate::wire::talk;

/// Ways to write another host, for browsers that forgive much.
fn corpus() -> Vec<String> {
    let mut corpus: Vec<String> = Vec::new();
    for begin in [
        "//",
        "///",
        "////",
        "/\\",
        "\\\\",
        "\\/",
        "/\\/",
        "//\\",
        "/./",
        "/.//",
        "/..//",
        "/../..//",
        "/x/..//",
        "/%2e%2e//",
        "/%2f/",
        "/%5c",
        "/%5C/",
        "/\t/",
        "/\n/",
        "/\r/",
        "\t//",
        " //",
        "/ /",
        "/\u{0}/",
        "/%09/",
        "/%0a/",
        "/%0d/",
        "/%00/",
        "/;//",
        "/?//",
        "http:",
        "http:/",
        "http://",
        "http:///",
        "https://",
        "HTTPS://",
        "hTTp://",
        "http:\\\\",
        "https:\\/",
        "http:\t//",
        "ht\ntp://",
        " http://",
        "\u{1}http://",
        "ftp://",
        "ws://",
        "blob:http://",
        "view-source:http://",
        "javascript:",
        "JavaScript://",
        "data:,",
        "//127.0.0.1@",
        "http://127.0.0.1@",
        "http://127.0.0.1:80@",
        "//a:b@",
        "/@",
        "@",
        "//\u{ff0f}",
        "/\u{2044}/",
        "/\u{ff0f}/",
        "//\u{3002}",
        "",
        ".",
        "..//",
        "?//",
        "#//",
        "/%252f/",
        "/%u002f/",
        "//%65",
        "//[::1]@",
    ] {
        corpus.push(format!("{begin}evil.example"));
        corpus.push(format!("{begin}evil.example/%2f.."));
    }
    corpus.extend(
        [
            "/a\r\nLocation: http://evil.example/",
            "/a\r\n\r\n<script>",
            "/a%0d%0aLocation:%20http://evil.example/",
            "/\"><script>alert(1)</script>",
            "/'onmouseover='alert(1)",
            "/a;url=http://evil.example/",
            "/a,0;url=http://evil.example",
            "javascript:alert(document.domain)",
            "data:text/html,<script>alert(1)</script>",
        ]
        .map(str::to_owned),
    );
    corpus
}

/// Everything, as a query value.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Where a browser at `base` goes by each of these links: `scheme//host`, or "invalid".
fn judged(base: &str, links: &[String]) -> Vec<String> {
    const JUDGE: &str =
        "let text = ''; process.stdin.on('data', it => text += it).on('end', () => {
        const {base, links} = JSON.parse(text);
        const went = links.map(link => {
            try { const url = new URL(link, base); return url.protocol + '//' + url.host; }
            catch { return 'invalid'; }
        });
        console.log(JSON.stringify(went));
    })";
    let mut node = Command::new("node")
        .args(["-e", JUDGE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node is needed for this test: run cargo xtask setup");
    let question = json!({"base": base, "links": links}).to_string();
    node.stdin.take().expect("piped").write_all(question.as_bytes()).expect("asked");
    let out = node.wait_with_output().expect("it ends");
    serde_json::from_slice(&out.stdout).expect("its verdict")
}

/// The addresses in a page that a browser follows by itself or by a click.
fn links(html: &str) -> Vec<String> {
    let plain = |text: &str| {
        text.replace("&quot;", "\"")
            .replace("&#39;", "'")
            .replace("&lt;", "<")
            .replace("&amp;", "&")
    };
    let after = |before: &'static str| html.split(before).skip(1);
    let whole = after("href=\"").chain(after("src=\"")).chain(after("action=\""));
    let refreshed = after("http-equiv=\"refresh\" content=\"");
    let refreshed = refreshed.filter_map(|rest| rest.split_once(";url=")).map(|(_, rest)| rest);
    // Where the script goes at its visitor's turn.
    let by_script = after("\"to\":\"");
    whole
        .chain(refreshed)
        .chain(by_script)
        .map(|rest| plain(rest.split(['"', '>']).next().unwrap_or_default()))
        // The page's icon: none, said so that browsers ask for none.
        .filter(|link| link != "data:,")
        .collect()
}

/// What one link of ours is made of: the link, and what it was made from.
struct Made {
    from: String,
    link: String,
}

fn stays(base: &str, hosts: &[&str], made: &[Made]) {
    let links: Vec<String> = made.iter().map(|it| it.link.clone()).collect();
    for (it, went) in made.iter().zip(judged(base, &links)) {
        let here = base.trim_end_matches("/x");
        let fine = went == here || hosts.contains(&&*went);
        assert!(fine, "{:?} became {:?}, which leads to {went}", it.from, it.link);
        assert!(!it.link.contains(['\r', '\n']), "{:?}", it.link);
    }
}

/// The value of `to` in a link to the waiting page, decoded once: the next link in the chain.
fn next(link: &str) -> Option<String> {
    let to = link.split_once("?to=")?.1.split('&').next()?;
    let mut bytes = Vec::new();
    let mut rest = to.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let two = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&two).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[test]
fn a_browser_that_was_sent_to_wait_comes_back_to_this_host_or_the_room_s_own() {
    let config = "[rooms.default]\ntarget_url = \"https://shop.example/sale\"\n";
    let house = House::protect_with(&Origin::start().url(), config, &["--capacity", "1000"]);
    let base = format!("{}/x", house.url);
    // Somebody inside: the page sends them on at once.
    let joined = house.join();
    soon("the visitor's turn", || (house.claim(&joined).status == 200).then_some(()));
    let jar = format!(
        "Cookie: wr-tried=1; wr-ticket-default={}",
        joined["token"].as_str().expect("a token")
    );
    let mut made = Vec::new();
    let mut targets = corpus();
    for trick in [
        "@evil.example",
        ".evil.example",
        "\\@evil.example",
        ":80@evil.example",
        "%2f@evil.example",
        "\t.evil.example",
        "#@evil.example",
        "?@evil.example",
        ";@evil.example",
        "%00.evil.example",
    ] {
        targets.push(format!("https://shop.example{trick}"));
    }
    for from in targets {
        let path = format!("/.waitroom/wait?to={}", encoded(&from));
        let tried = house.get(&path, &[]);
        assert_eq!(tried.status, 303, "{tried:?}");
        let link = tried.header("location").expect("a link");
        made.extend(next(&link).map(|link| Made { from: from.clone(), link }));
        made.push(Made { from: from.clone(), link });
        let entered = house.get(&path, &["-H", &jar]);
        assert_eq!(entered.status, 303, "{entered:?}");
        made.push(Made { from, link: entered.header("location").expect("a link") });
    }
    stays(&base, &["https://shop.example"], &made);
    let good = format!("/.waitroom/wait?to={}", encoded("https://shop.example/a?b#c"));
    let went = house.get(&good, &["-H", &jar]).header("location");
    assert_eq!(went.as_deref(), Some("https://shop.example/a?b#c"), "and a good one is kept");
}

#[test]
fn no_address_that_is_asked_for_leads_its_visitor_away() {
    let house = House::protect(&Origin::start().url(), &[]);
    let base = format!("{}/x", house.url);
    let pass = house.visitor();
    let pass = pass.strip_prefix("Waitroom-Pass: ").expect("a pass");
    let mut made = Vec::new();
    for from in corpus() {
        // As it is in the request line, where it can stand there; the gate may refuse it.
        let ask = |query: &str, headers: &str| {
            let host = house.address();
            let text = format!(
                "GET {from}{query} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"
            );
            talk(host, text.as_bytes(), Duration::from_secs(20), |_| false).answers
        };
        for answer in
            ask(&format!("?wr_pass={pass}"), "").into_iter().chain(ask("", "Accept: text/html\r\n"))
        {
            let link = answer.header("location").map(str::to_owned);
            let followed = link.iter().cloned().chain(links(&answer.body));
            for link in followed {
                made.extend(next(&link).map(|link| Made { from: from.clone(), link }));
                made.push(Made { from: from.clone(), link });
            }
        }
        // As another proxy tells it.
        if from.bytes().any(|byte| byte < b' ') {
            continue;
        }
        for form in ["status", "redirect"] {
            let url = format!("{}/.waitroom/gate/check?room=default&as={form}", house.url);
            let got = curl(&[&url, "-H", &format!("X-Forwarded-Uri: {from}")]);
            if let Some(link) = got.header("location") {
                made.extend(next(&link).map(|link| Made { from: from.clone(), link }));
                made.push(Made { from: from.clone(), link });
            }
        }
    }
    assert!(made.len() > 200, "{} links are too few to tell", made.len());
    stays(&base, &[], &made);
}
