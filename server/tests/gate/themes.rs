//! A room's own looks: shown by the gate, refused when they cannot be read, never more than looks.

use serde_json::{Value, json};

use crate::house::House;
use crate::instance::{Got, soon};
use crate::origin::Origin;

fn change(house: &House, change: &Value) -> Got {
    house.operate("PATCH", "/admin/v1/rooms/default", &change.to_string())
}

/// The page as it is now: strangers share one for a second, so it is asked for anew each time.
fn page(house: &House) -> Got {
    let got = house.get("/", &["-H", "Accept: text/html", "-H", "Accept-Language: en"]);
    assert_eq!(got.status, 503, "{got:?}");
    got
}

/// What no looks may take away: the place, the lead, leaving, and our own script and style.
fn has_its_essentials(got: &Got) {
    for essential in ["id=\"number\"", "id=\"head\"", "id=\"lead\"", "id=\"leave\"", "<noscript>"] {
        assert!(got.body.contains(essential), "{essential} is missing: {}", got.body);
    }
    let policy = got.header("content-security-policy").expect("a policy");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(
        policy.contains("script-src 'sha256-") && policy.contains("default-src 'none'"),
        "{policy}"
    );
    // Our data and our script, and no attribute that would run something.
    assert_eq!(got.body.matches("<script").count(), 2, "{}", got.body);
    for runs in [" onerror=", " onload=", " onclick=", "javascript:"] {
        assert!(!tags(&got.body).contains(runs), "{runs}: {}", got.body);
    }
}

/// Everything inside of tags but what stands in quotes, without the script's own text.
fn tags(html: &str) -> String {
    let visible = html.split("<script").next().expect("a part before it");
    let tags = visible.split('<').skip(1).filter_map(|it| it.split('>').next());
    tags.map(|tag| tag.split('"').step_by(2).collect::<String>() + "\n").collect()
}

#[test]
fn the_gate_shows_a_rooms_theme_and_template_as_soon_as_they_are_set() {
    let house = House::protect(&Origin::start().url(), &["--queue-all", "--rate", "1/h"]);
    assert!(!page(&house).body.contains("#5b2a86"));
    let set = change(
        &house,
        &json!({
            "theme": { "accent": "#5b2a86", "logo": { "url": "https://cdn.shop.example/l.svg", "alt": "Lights" },
                "texts": { "en": { "leave": "Let me go" } } },
            "template": "<h2>Doors at seven</h2>\n{{> waiting}}\n<p class=\"t-muted\">{{title}}: four each.</p>",
        }),
    );
    assert_eq!(set.status, 200, "{set:?}");
    let shown =
        soon("the new looks", || Some(page(&house)).filter(|it| it.body.contains("#5b2a86")));
    has_its_essentials(&shown);
    for part in ["Doors at seven", "Let me go", "four each.", "https://cdn.shop.example/l.svg"] {
        assert!(shown.body.contains(part), "{part}: {}", shown.body);
    }
    let policy = shown.header("content-security-policy").expect("a policy");
    assert!(policy.contains("img-src") && policy.contains("https://cdn.shop.example"), "{policy}");
    // And back, by the same document that shows them.
    let kept = house.operate("GET", "/admin/v1/rooms/default", "").json();
    assert_eq!(kept["settings"]["theme"]["accent"], "#5b2a86", "{kept}");
    let unset = change(&house, &json!({ "theme": null, "template": "none" }));
    assert_eq!(unset.status, 200, "{unset:?}");
    soon("the usual looks", || (!page(&house).body.contains("Doors at seven")).then_some(()));
}

#[test]
fn a_theme_that_would_break_the_page_is_refused_at_its_field_and_changes_nothing() {
    let house = House::protect(&Origin::start().url(), &["--queue-all", "--rate", "1/h"]);
    for (hostile, field) in [
        (json!({ "theme": { "accent": "#fff}body{display:none" } }), "theme.accent"),
        (json!({ "theme": { "paper": "url(//x)" } }), "theme.paper"),
        (json!({ "theme": { "accent": "#f6f3ec" } }), "theme.accent"),
        (json!({ "theme": { "css": "*{display:none}" } }), "theme"),
        (json!({ "theme": { "logo": { "url": "javascript:alert(1)" } } }), "theme.logo.url"),
        (
            json!({ "theme": { "logo": { "url": "https://x.example/'; script-src *" } } }),
            "theme.logo.url",
        ),
        (json!({ "template": "<style>*{display:none}</style>{{> waiting}}" }), "template"),
        (json!({ "template": "<img src=x onerror=alert(1)>{{> waiting}}" }), "template"),
        (json!({ "template": "{{#paused}}{{> waiting}}{{/paused}}" }), "template"),
        (json!({ "template": "<div style=\"position:fixed\">x</div>{{> waiting}}" }), "template"),
        (json!({ "template": "nothing of the page" }), "template"),
        (json!({ "template": "<!--{{> waiting}}" }), "template"),
        (json!({ "template": format!("{{{{> waiting}}}}{}", "x".repeat(40_000)) }), "template"),
    ] {
        let got = change(&house, &hostile);
        assert_eq!(got.status, 422, "{hostile}: {got:?}");
        let fields = got.json();
        let named = fields["errors"].as_array().expect("errors").iter();
        let named: Vec<&str> = named.filter_map(|it| it["field"].as_str()).collect();
        assert!(named.contains(&field), "{hostile}: {named:?}");
    }
    has_its_essentials(&page(&house));
}

/// What people try to have run, in every field in which an operator or a shop writes text.
const SCRIPTS: [&str; 7] = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onload='alert(1)",
    "<svg/onload=alert(1)>",
    "</title></style><script>alert(1)</script>",
    "{{> waiting}}{{{title}}}<iframe srcdoc=x>",
];

#[test]
fn a_script_in_any_text_of_a_room_stays_text() {
    let house = House::protect(&Origin::start().url(), &["--queue-all", "--rate", "1/h"]);
    for (number, script) in SCRIPTS.into_iter().enumerate() {
        let mark = format!("corpus-{number}");
        let text = format!("{mark} {script}");
        let set = change(
            &house,
            &json!({
                "title": text, "message": text,
                "theme": { "logo": { "url": "/l.svg", "alt": text },
                    "texts": { "en": { "leave": text, "in_line": text } } },
                "template": "<h2>{{title}}</h2>{{> waiting}}<p>{{{message}}} {{reason}}</p>",
            }),
        );
        // A text with holes that the page does not fill is refused, and that is fine too.
        if set.status != 200 {
            assert_eq!(set.status, 422, "{set:?}");
            let plain = change(&house, &json!({ "title": text, "message": text, "theme": null }));
            assert_eq!(plain.status, 200, "{plain:?}");
        }
        let body = json!({ "reason": text }).to_string();
        assert_eq!(house.operate("POST", "/admin/v1/rooms/default/pause", &body).status, 200);
        let shown =
            soon("the new texts", || Some(page(&house)).filter(|it| it.body.contains(&mark)));
        has_its_essentials(&shown);
        // Quotes are harmless between tags and in the data; what opens a tag is nowhere.
        let raw = script.contains('<') && shown.body.contains(script);
        assert!(!raw, "{script}: {}", shown.body);
    }
}
