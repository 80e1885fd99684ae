//! What the admin listener is handed for a path below `/console`.

use waitroom_console::{Asset, CSP, is_built, serve};

fn page() -> Asset {
    serve("/console/", "").expect("there is always a page")
}

#[test]
fn the_page_is_there_with_and_without_the_last_slash() {
    assert_eq!(serve("/console", ""), serve("/console/", ""));
    assert_eq!(page().content_type, "text/html; charset=utf-8");
    assert!(page().body.starts_with(b"<!doctype html>"));
}

#[test]
fn other_paths_are_nothing_of_ours() {
    let others = ["/", "", "/consoles", "/console/nothing", "/console/../Cargo.toml", "/console//"];
    for path in others {
        assert_eq!(serve(path, "gzip, br"), None, "{path}");
    }
}

#[test]
fn the_policy_allows_nothing_inline_and_nothing_foreign() {
    for word in ["unsafe", "*", "http:", "https:", "blob:"] {
        assert!(!CSP.contains(word), "{word} in {CSP}");
    }
    for rule in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
        assert!(CSP.contains(rule), "{rule} is missing from {CSP}");
    }
    assert!(!CSP.contains("  "), "one blank between words: {CSP}");
}

/// Both kinds of binary are tested, by whoever builds them: with the console and without.
#[test]
fn without_the_files_the_page_says_how_to_have_them() {
    let text = String::from_utf8_lossy(page().body).into_owned();
    assert_eq!(text.contains("cargo xtask console"), !is_built(), "{text}");
    if !is_built() {
        assert_eq!(page().cache_control, "no-store");
    }
}

#[test]
fn what_the_page_names_is_there_for_ever_and_packed_as_the_client_likes() {
    let text = String::from_utf8_lossy(page().body).into_owned();
    let named: Vec<&str> =
        text.split('"').filter(|word| word.starts_with("/console/assets/")).collect();
    assert_eq!(named.is_empty(), !is_built(), "{text}");
    for path in named {
        let plain = serve(path, "").unwrap_or_else(|| panic!("the page names {path}"));
        let gzip = serve(path, "gzip").expect("the same file");
        let brotli = serve(path, "gzip, deflate, br").expect("the same file");
        assert!(plain.cache_control.contains("immutable"), "{path}");
        assert_eq!(plain.content_encoding, None);
        assert_eq!(gzip.content_encoding, Some("gzip"));
        assert_eq!(brotli.content_encoding, Some("br"));
        assert_eq!(&gzip.body[..2], [0x1f, 0x8b]);
        assert!(
            brotli.body.len() < gzip.body.len() && gzip.body.len() < plain.body.len(),
            "{path}"
        );
        assert_eq!(serve(path, "br;q=0").expect("the same file"), plain);
    }
    if is_built() {
        assert_eq!(page().cache_control, "no-cache", "the page itself is asked for again");
    }
}

/// The first view on a bad link: everything that is loaded, packed.
#[test]
fn the_whole_console_is_under_64_kib() {
    let text = String::from_utf8_lossy(page().body).into_owned();
    let named = text.split('"').filter(|word| word.starts_with("/console/assets/"));
    let bytes: usize = named
        .chain(["/console/"])
        .map(|path| serve(path, "br").expect("the page names it").body.len())
        .sum();
    assert!(bytes < 64 << 10, "{bytes} bytes");
}
