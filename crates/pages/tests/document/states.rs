use crate::{WAITS, shown};
use waitroom_pages::{
    Draw, Notice, STATES, Schedule, Waiting, languages, notice, preview, privacy, waiting,
};

/// What a person reads who runs no script: no tags, nothing that is hidden.
fn read(html: &str) -> String {
    let body = html.split("<body>").nth(1).expect("a body");
    let body = body.split("<dialog").next().expect("a page before the dialog");
    let mut seen = String::new();
    let mut hidden: Option<String> = None;
    for part in body.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        let name = tag.split(' ').next().unwrap_or_default().to_owned();
        match &hidden {
            Some(open) if name == format!("/{open}") => {
                hidden = None;
                seen.push_str(text);
            }
            Some(_) => {}
            None if tag.ends_with(" hidden") => hidden = Some(name),
            None => seen.push_str(text),
        }
        seen.push(' ');
    }
    seen.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn without_script_a_visitor_reads_place_people_wait_and_code() {
    let page = waiting(&Waiting { answer: Some(WAITS), back_to: Some("/shop"), ..shown() });
    let said = read(&page.html);
    for words in [
        "You are in line",
        "Your place in line 1,204",
        "1,203 people ahead of you",
        "Estimated wait 11–17 minutes",
        "Support code K7M-4QX",
        "This page refreshes by itself.",
    ] {
        assert!(said.contains(words), "{words:?} is not in {said:?}");
    }
    assert!(page.html.contains(
        r#"<noscript><meta http-equiv="refresh" content="10;url=/.waitroom/wait?to=/shop"></noscript>"#
    ));
    assert!(page.html.contains("<title>1,204 · Spring sale</title>"));
}

#[test]
fn who_has_no_place_yet_is_taken_to_one_at_once() {
    let page = waiting(&shown());
    assert!(read(&page.html).contains("Finding your place…"));
    assert!(page.html.contains(r#"content="1;url=/.waitroom/wait""#));
}

#[test]
fn a_reason_is_shown_with_who_says_it() {
    let answer =
        WAITS.replace("\"running\"", "\"paused\",\"reason\":\"The payment provider is down.\"");
    let said = read(&waiting(&Waiting { answer: Some(&answer), ..shown() }).html);
    assert!(said.contains("The line is paused"), "{said}");
    assert!(said.contains("Everyone keeps their place."), "{said}");
    assert!(said.contains("Message from the organiser The payment provider is down."), "{said}");
}

#[test]
fn before_the_start_the_page_says_when_and_no_more_about_the_draw_than_is_true() {
    let answer =
        r#"{"status":"waiting","room_status":"held","draw_pending":true,"support_code":"A"}"#;
    let page = |draw| {
        let schedule =
            Schedule { starts_at_ms: Some(1_777_629_600_000), draw, ..Schedule::default() };
        read(&waiting(&Waiting { answer: Some(answer), schedule, ..shown() }).html)
    };
    let verifiable = page(Some(Draw::Verifiable));
    assert!(verifiable.contains("Starts at 2026-05-01 10:00 UTC"), "{verifiable}");
    assert!(verifiable.contains("Coming earlier is no advantage."));
    assert!(verifiable.contains("Anyone can recompute the draw"));
    let committed = page(Some(Draw::Committed));
    assert!(committed.contains("fixed their part") && !committed.contains("recompute"));
    assert!(!page(None).contains("recompute"));
}

#[test]
fn a_lost_place_says_why() {
    for (because, words) in [
        ("heartbeat_timeout", "not heard from your device"),
        ("no_show", "nobody came in before"),
        ("place_lost", "failure on our side"),
        ("moved_elsewhere", "Another device holds"),
        ("left", "You left the line"),
        ("something new", "ended some time ago"),
    ] {
        let said = read(&notice(&shown(), Notice::Lost(because)).html);
        assert!(said.contains("You no longer have a place") && said.contains(words), "{said}");
    }
}

#[test]
fn a_problem_instead_of_an_answer_is_told_in_the_visitors_words() {
    let said = |code: &str| {
        let problem =
            format!(r#"{{"status":409,"code":"{code}","detail":"Back at ten.","title":"T"}}"#);
        read(&waiting(&Waiting { answer: Some(&problem), ..shown() }).html)
    };
    assert!(said("maintenance").contains("Back soon"), "{}", said("maintenance"));
    assert!(said("maintenance").contains("Back at ten."));
    assert!(said("queue_full").contains("The line is full"));
    assert!(said("not_open_yet").contains("The doors are not open yet"));
    assert!(said("room_ended").contains("This is over"));
    assert!(said("moved_elsewhere").contains("Another device holds"));
    assert!(said("room_unknown").contains("Something went wrong"));
    // What passes by itself is no news: the page goes on asking.
    assert!(said("overloaded").contains("Finding your place"));
    let page = notice(&shown(), Notice::Error("The shop does not answer."));
    let said = read(&page.html);
    assert!(said.contains("The shop does not answer.") && !said.contains("organiser"), "{said}");
}

#[test]
fn the_end_of_a_sale_has_its_own_page() {
    let said = read(&notice(&shown(), Notice::Ended("sold_out")).html);
    assert!(said.contains("Sold out") && !said.contains("sold_out"), "{said}");
    let said = read(&notice(&shown(), Notice::Ended("Come back on Monday.")).html);
    assert!(said.contains("This is over") && said.contains("Come back on Monday."), "{said}");
}

#[test]
fn every_state_can_be_previewed_in_every_language() {
    for (tag, _) in languages() {
        for state in STATES {
            let shown = Waiting { accept_language: tag, ..shown() };
            let page = preview(state, &shown).unwrap_or_else(|| panic!("{state}"));
            assert_eq!(page.language, tag);
            let direction = if ["ar", "he", "fa"].contains(&tag) { "rtl" } else { "ltr" };
            assert!(page.html.contains(&format!("<html lang=\"{tag}\" dir=\"{direction}\"")));
            assert!(!page.html.contains("[["), "{state} has an open slot");
            assert!(!read(&page.html).contains(['{', '}']), "{state} {tag}: {}", read(&page.html));
        }
    }
    assert!(preview("no such state", &shown()).is_none());
}

#[test]
fn the_privacy_page_leads_back() {
    let page = privacy(&Waiting { back_to: Some("/shop"), ..shown() });
    assert!(page.html.contains("href=\"/shop\"") && !page.html.contains("<script"));
}
