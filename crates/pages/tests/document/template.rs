use crate::{WAITS, shown, structure};
use proptest::prelude::*;
use waitroom_pages::{Template, Waiting, waiting};

fn page(template: &str) -> String {
    let template = Template::read(template).unwrap_or_else(|it| panic!("{it:?}"));
    waiting(&Waiting { answer: Some(WAITS), template: Some(&template), ..shown() }).html
}

fn mistakes(template: &str) -> Vec<String> {
    let all = Template::read(template).err().unwrap_or_default();
    all.into_iter().map(|it| format!("{}: {}", it.place, it.problem)).collect()
}

#[test]
fn the_names_of_the_hosted_waiting_room_mean_what_they_mean_there() {
    let html = page(
        "<p>{{#waitTimeKnown}}{{waitTime}} mins, {{waitTimeHours}} h {{waitTimeHourMinutes}}, {{waitTimeFormatted}}{{/waitTimeKnown}}\
         {{^waitTimeKnown}}unknown{{/waitTimeKnown}}{{#queueIsFull}}full{{/queueIsFull}}{{#isFIFOQueue}}fifo{{/isFIFOQueue}}\
         {{! not said }}</p>{{> waiting}}<p>{{ahead}} before you</p>",
    );
    for part in [
        "<w-if data-if=\"waitTimeKnown\"><span data-v=\"waitTime\">14</span> mins, <span data-v=\"waitTimeHours\">0</span> h <span data-v=\"waitTimeHourMinutes\">14</span>, <span data-v=\"waitTimeFormatted\">11–17 minutes</span></w-if>",
        "<w-if data-unless=\"waitTimeKnown\" hidden>unknown</w-if>",
        "<w-if data-if=\"queueIsFull\" hidden>full</w-if>",
        "<w-if data-if=\"isFIFOQueue\">fifo</w-if></p>",
        "<span data-v=\"ahead\">1,203</span> before you",
    ] {
        assert!(
            html.contains(part),
            "{part} is not in {}",
            &html[html.find("<main>").expect("main")..][..1500]
        );
    }
    assert!(!html.contains("not said"));
}

#[test]
fn the_page_itself_stands_once_and_nothing_can_hide_it() {
    let once = "{{> waiting}} stands exactly once";
    for (template, problem) in [
        ("<p>hello</p>", once),
        ("{{> waiting}}{{> waiting}}", once),
        ("<div>{{> waiting}}</div>", "stands inside no tag"),
        ("{{#paused}}{{> waiting}}{{/paused}}", "stands inside no tag"),
        ("<div>{{> waiting}}", "stands inside no tag"),
    ] {
        assert!(
            mistakes(template).iter().any(|it| it.contains(problem)),
            "{:?}",
            mistakes(template)
        );
    }
}

#[test]
fn markup_that_is_not_on_the_list_is_refused_with_its_line() {
    for markup in [
        "<script>alert(1)</script>",
        "<style>#core{display:none}</style>",
        "<link rel=stylesheet href=x>",
        "<iframe src=\"/\"></iframe>",
        "<form action=\"//evil.example\"></form>",
        "<input name=\"card\">",
        "<svg onload=\"alert(1)\"></svg>",
        "<h1>Mine</h1>",
        "<meta http-equiv=\"refresh\" content=\"0\">",
        "<p onclick=\"alert(1)\">x</p>",
        "<p style=\"position:fixed;inset:0\">x</p>",
        "<p class=\"unseen\">x</p>",
        "<p id=\"core\">x</p>",
        "<p hidden>x</p>",
        "<a href=\"javascript:alert(1)\">x</a>",
        "<a href=\"{{title}}\">x</a>",
        "<a href=\"//evil.example\">x</a>",
        "<a href=/x>x</a>",
        "<img src=\"https://tracker.example/x.png\">",
        "<img src=\"x\" onerror=\"alert(1)\">",
        "<p>never closed",
        "</p>",
        "<p></div></p>",
        "{{#paused}}<p>{{/paused}}</p>",
        "<p>{{#paused}}</p>{{/paused}}",
        "<p>{{#paused}}</p><p>{{/paused}}</p>",
        "{{#paused}}",
        "{{/paused}}",
        "{{nothing}}",
        "{{> other}}",
        "{{title",
        "a < b",
        "<",
        "</",
        "<p",
        "<p class",
        "<p class=\"t-card",
    ] {
        let said = mistakes(&format!("{{{{> waiting}}}}\n{markup}"));
        assert!(said.iter().any(|it| it.starts_with("line 2: ")), "{markup}: {said:?}");
    }
}

#[test]
fn ordinary_markup_is_taken_as_it_is() {
    let template = "<section class=\"t-card t-center\"><h2>Doors &amp; lights</h2>\n<p>5 > 4, it’s <em>true</em><br/>\
        <a href=\"/help?a=1&amp;b=2\" title='so \"far\"'>help</a> <img src=\"/a.png\" alt=\"A\" width=\"40\"></p></section>\n<!-- unsaid -->{{> waiting}}";
    let html = page(template);
    assert!(html.contains("<h2>Doors &amp; lights</h2>"));
    assert!(html.contains("5 &gt; 4"));
    assert!(html.contains("<a href=\"/help?a=1&amp;b=2\" title=\"so &quot;far&quot;\">help</a>"));
    assert!(html.contains("<img src=\"/a.png\" alt=\"A\" width=\"40\">"));
    assert!(!html.contains("unsaid"));
}

proptest! {
    /// Pieces of templates in any order: what is taken leaves the page around it whole.
    #[test]
    fn whatever_is_taken_as_a_template_breaks_nothing(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "<p>", "</p>", "<div class=\"t-card\">", "</div>", "<b>", "</b>", "{{title}}", "{{{reason}}}", "{{#paused}}",
            "{{^paused}}", "{{/paused}}", "{{#ahead}}", "{{/ahead}}", "text é", "<br>", "<!--", "-->", "\"", "'", ">", "<", "{", "}", "{{", "}}",
            "<script>", "</script>", "</main>", "<img src=\"/a\"", "&lt;",
        ]), 0..12),
        at in 0usize..12,
    ) {
        let mut pieces: Vec<&str> = pieces;
        pieces.insert(at.min(pieces.len()), "{{> waiting}}");
        let text = pieces.concat();
        if let Ok(template) = Template::read(&text) {
            let html = waiting(&Waiting { answer: Some(WAITS), template: Some(&template), ..shown() }).html;
            let plain = waiting(&Waiting { answer: Some(WAITS), ..shown() }).html;
            let core = |html: &str| {
                let html = &html[html.find("<div id=\"core\">").expect("the page is there")..];
                html[..html.find("</div>\n").expect("it ends")].to_owned()
            };
            prop_assert_eq!(core(&html), core(&plain));
            let depth = structure(&html).iter().fold(0i32, |depth, tag| {
                let void = ["meta", "link", "br", "hr", "img", "input", "!doctype"];
                match tag.split(' ').next().unwrap_or_default() {
                    name if void.contains(&name.trim_end_matches('/')) => depth,
                    name if name.starts_with('/') => depth - 1,
                    _ => depth + 1,
                }
            });
            prop_assert_eq!(depth, 0, "{}", text);
        }
    }

    #[test]
    fn no_text_at_all_makes_the_reader_of_templates_fail(text in "\\PC{0,80}|[<>/{}#^!\"'= a-z\\n-]{0,80}") {
        let _ = Template::read(&text);
    }
}
