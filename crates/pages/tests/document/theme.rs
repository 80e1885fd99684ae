use crate::shown;
use waitroom_pages::{Mistake, Theme, Waiting, waiting};

fn mistakes(json: &str) -> Vec<String> {
    let told = |it: Mistake| format!("{}: {}", it.place, it.problem);
    Theme::read(json).map_or_else(|all| all.into_iter().map(told).collect(), |_| Vec::new())
}

#[test]
fn a_theme_changes_colours_logo_and_texts() {
    let theme = Theme::read(
        r##"{"accent": "#5b2a86", "paper": "#f4f0fa", "logo": {"url": "/logo.svg", "alt": "Lights"},
            "texts": {"en": {"in_line": "Nearly there"}, "*": {"go": "Go go go"}}}"##,
    )
    .expect("a good theme");
    let html =
        waiting(&Waiting { answer: Some(crate::WAITS), theme: Some(&theme), ..shown() }).html;
    assert!(html.contains("<style>:root{--paper:#f4f0fa;"), "{}", &html[..0]);
    assert!(html.contains("--accent:#5b2a86;"));
    assert!(html.contains("<img src=\"/logo.svg\" alt=\"Lights\">"));
    assert!(html.contains(">Nearly there<") && html.contains(">Go go go<"));
    let german = waiting(&Waiting {
        theme: Some(&theme),
        accept_language: "de",
        answer: Some(crate::WAITS),
        ..shown()
    });
    assert!(
        german.html.contains(">Sie stehen in der Schlange<") && german.html.contains(">Go go go<")
    );
}

#[test]
fn a_colour_that_nobody_can_read_is_refused_with_one_that_is_near_and_good() {
    let said = mistakes(r##"{"accent": "#ffcc00"}"##);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("accent: #ffcc00 reads with a contrast of 1."), "{said:?}");
    let better = said[0].split("which ").nth(1).and_then(|it| it.split(' ').next());
    let better = better.expect("a better colour is named");
    assert_eq!(mistakes(&format!(r#"{{"accent": "{better}"}}"#)), Vec::<String>::new());
    assert!(mistakes(r##"{"paper": "#777777"}"##)[0].contains("not light enough"));
    assert!(mistakes(r##"{"paper_dark": "#aaaaaa"}"##)[0].contains("not dark enough"));
    assert!(mistakes(r##"{"accent_dark": "#222222"}"##)[0].starts_with("accent_dark"));
}

#[test]
fn all_mistakes_are_told_at_once() {
    let said = mistakes(
        r##"{"accent": "red", "paper": "#12", "logo": {"url": "http://a.example/x"},
            "texts": {"xx": {}, "en": {"turn": "", "nothing": "x", "ahead": "x", "next": "{n} left", "go": {"other": "x"}}}}"##,
    );
    assert_eq!(said.len(), 9, "{said:#?}");
}

#[test]
fn no_address_of_a_logo_gets_out_of_its_attribute_or_into_the_policy() {
    for url in [
        "javascript:alert(1)",
        "//evil.example/x.png",
        "https://evil.example; script-src *",
        "https://a.example,b/x.png",
        "https://a.example\" onerror=\"alert(1)",
        "https://a.example/x y",
        "https://user@a.example/x",
        "https:///x",
        "data:text/html;base64,PHNjcmlwdD4=",
        "data:image/png,<svg onload=alert(1)>",
        "x.png",
        "",
    ] {
        let theme = serde_json::json!({"logo": {"url": url}}).to_string();
        assert_eq!(mistakes(&theme).len(), 1, "{url}");
    }
    for url in
        ["https://cdn.example:8443/l.png?v=2", "/l.png", "data:image/png;base64,iVBORw0KGgo="]
    {
        let theme = serde_json::json!({"logo": {"url": url}}).to_string();
        assert_eq!(mistakes(&theme), Vec::<String>::new(), "{url}");
    }
}

/// The worst ratio of text on ground that a theme's style leads to, in either scheme.
#[test]
fn whatever_theme_is_taken_its_texts_can_be_read() {
    let luminance = |hex: &str| {
        let part =
            |at: usize| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")) / 255.0;
        let linear =
            |it: f64| if it <= 0.04045 { it / 12.92 } else { ((it + 0.055) / 1.055).powf(2.4) };
        0.2126 * linear(part(1)) + 0.7152 * linear(part(3)) + 0.0722 * linear(part(5))
    };
    let contrast = |one: &str, two: &str| {
        let (one, two) = (luminance(one) + 0.05, luminance(two) + 0.05);
        one.max(two) / one.min(two)
    };
    let mut taken = 0;
    for step in 0..400u32 {
        let mixed = |salt: u32| {
            step.wrapping_mul(2_654_435_761).wrapping_add(salt.wrapping_mul(40_503_001)) >> 8
        };
        let json = format!(
            r##"{{"accent": "#{:06x}", "paper": "#{:06x}"}}"##,
            mixed(1) & 0x7f7f7f,
            mixed(2) | 0xe0e0e0
        );
        let Ok(theme) = Theme::read(&json) else { continue };
        taken += 1;
        let html = waiting(&Waiting { theme: Some(&theme), ..shown() }).html;
        let style = html.split("<style>").nth(2).expect("the theme's style");
        let style = style.split("</style>").next().expect("it ends");
        for scheme in style.split("@media") {
            let colour = |name: &str| {
                let at = scheme
                    .find(&format!("--{name}:"))
                    .unwrap_or_else(|| panic!("{name} in {scheme}"));
                let at = at + name.len() + 3;
                &scheme[at..at + 7]
            };
            for ground in ["paper", "card"] {
                for text in ["ink", "soft", "accent"] {
                    let ratio = contrast(colour(text), colour(ground));
                    assert!(ratio >= 4.5, "{text} on {ground}: {ratio} in {scheme}");
                }
            }
            assert!(contrast(colour("on-accent"), colour("accent")) >= 4.5, "{scheme}");
        }
    }
    assert!(taken > 50, "only {taken} themes were taken");
}
