use crate::{WAITS, shown};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use waitroom_pages::{By, Page, STATES, Theme, Waiting, preview, privacy, waiting};

/// What stands between each `<tag…>` and `</tag>`.
fn insides<'a>(html: &'a str, tag: &str) -> Vec<(&'a str, &'a str)> {
    let parts = html.split(&format!("<{tag}")).skip(1).collect::<Vec<_>>();
    let inside = |part: &&'a str| {
        let (attributes, rest) = part.split_once('>').expect("a tag ends");
        (attributes, rest.split_once(&format!("</{tag}>")).expect("it is closed").0)
    };
    parts.iter().map(inside).collect()
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

fn sources(page: &Page, directive: &str) -> Vec<String> {
    let policy = page.content_security_policy.split("; ");
    let found = policy.filter_map(|it| it.strip_prefix(directive)?.strip_prefix(' ')).next();
    found.unwrap_or_default().split(' ').map(str::to_owned).collect()
}

fn check(page: &Page) {
    let styles: Vec<String> = insides(&page.html, "style").iter().map(|it| hash(it.1)).collect();
    assert_eq!(sources(page, "style-src"), styles);
    let scripts = insides(&page.html, "script");
    let run = scripts.iter().filter(|(attributes, _)| !attributes.contains("application/json"));
    let run: Vec<String> = run.map(|it| hash(it.1)).collect();
    let expected = if run.is_empty() { vec!["'none'".to_owned()] } else { run };
    assert_eq!(sources(page, "script-src"), expected);
    assert_eq!(sources(page, "default-src"), ["'none'"]);
    assert_eq!(sources(page, "connect-src"), ["'self'"]);
    assert!(!page.content_security_policy.contains("unsafe"));
    for attribute in [" style=", " onclick", " onload", " onerror", "javascript:"] {
        let markup = page.html.split("<style>").next().expect("a head").to_owned()
            + page
                .html
                .split("</style>")
                .last()
                .expect("a body")
                .split("<script")
                .next()
                .expect("a body");
        assert!(!markup.contains(attribute), "{attribute}");
    }
}

#[test]
fn every_page_names_exactly_its_own_script_and_styles_by_hash() {
    let theme = Theme::read(
        r##"{"accent": "#5b2a86", "logo": {"url": "https://cdn.shop.example/l.png"}}"##,
    )
    .expect("a good theme");
    for state in STATES {
        for theme in [None, Some(&theme)] {
            let page = preview(state, &Waiting { theme, ..shown() }).expect("a state");
            check(&page);
            let pictures = sources(&page, "img-src");
            assert_eq!(pictures.contains(&"https://cdn.shop.example".to_owned()), theme.is_some());
        }
    }
    check(&waiting(&shown()));
    check(&privacy(&shown()));
}

#[test]
fn only_a_page_that_can_push_has_the_script_for_it_and_may_start_a_worker() {
    let ways: [(&[By], bool); 4] = [
        (&[], false),
        (&[By::Email, By::Sms], false),
        (&[By::Push], true),
        (&[By::Push, By::Email, By::Sms], true),
    ];
    for (notices, pushes) in ways {
        let page = waiting(&Waiting { answer: Some(WAITS), notices, ..shown() });
        check(&page);
        let own = if pushes { vec!["'self'"] } else { vec![""] };
        assert_eq!(sources(&page, "worker-src"), own);
        assert_eq!(page.html.contains("serviceWorker"), pushes);
        assert_eq!(page.html.contains("\"word_push_denied\":"), pushes, "nor the words");
        assert!(!page.html.contains("[["), "every slot is filled");
    }
}

#[test]
fn no_credential_is_written_into_a_page() {
    let page = waiting(&Waiting { answer: Some(WAITS), ..shown() });
    assert!(page.html.contains("1,204"));
    assert!(!page.html.contains("wt1_secret"));
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    for state in STATES {
        let page = preview(state, &shown()).expect("a state");
        for sign in ["src=", "url(", "@import", "http://", "https://"] {
            let found =
                page.html.find(sign).map(|at| &page.html[at..(at + 60).min(page.html.len())]);
            assert_eq!(found, None, "{state}");
        }
    }
}
