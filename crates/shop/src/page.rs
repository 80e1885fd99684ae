//! The shop's pages: plain HTML with one style sheet inside, no script at all.
//!
//! Lives here: what is shown. Whatever people typed goes through [`text`]. The policy allows our
//! style by its hash and forms to our own host, and nothing else.

use std::fmt::Write as _;
use std::sync::OnceLock;

use base64::Engine as _;
use sha2::{Digest, Sha256};

use crate::door::Unwelcome;
use crate::seat::Seat;
use crate::shop::{SEATS_EACH_MAX, Settings};

const STYLE: &str = include_str!("page/style.css");

/// A finished document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page(pub String);

/// For the header `Content-Security-Policy`.
pub fn policy() -> &'static str {
    static POLICY: OnceLock<String> = OnceLock::new();
    POLICY.get_or_init(|| {
        let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(STYLE));
        format!(
            "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; base-uri 'none'; \
             frame-ancestors 'none'"
        )
    })
}

/// One part of the hall, as somebody sees it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Counted from 0.
    pub part: u32,
    /// Free seats of every part.
    pub free: &'a [u32],
    pub gone: &'a [Seat],
    pub mine: &'a [Seat],
    /// What was wished for and belongs to somebody else.
    pub taken: &'a [Seat],
}

/// What was wrong with a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Declined,
    NoCard,
}

pub fn hall(settings: &Settings, view: &View<'_>) -> Page {
    let free: u32 = view.free.iter().sum();
    let mut body = String::new();
    if free == 0 && view.mine.is_empty() {
        body.push_str(
            "<h1>Sold out, or nearly</h1><p class=\"lead\">Every seat is sold or in somebody's \
             basket. A reservation that is not paid for comes back: look again in a moment.</p>\
             <p><a class=\"go\" href=\"/\">Look again</a></p>",
        );
        return document(settings, "Sold out", &body);
    }
    let _ = write!(
        body,
        "<h1>Choose your seats</h1><p class=\"lead\">Up to {SEATS_EACH_MAX} seats, {} each. They are \
         yours for {} while you pay.</p>",
        money(settings.price_cents),
        span(settings.hold.as_secs())
    );
    if !view.taken.is_empty() {
        let _ = write!(
            body,
            "<p class=\"notice\" role=\"alert\"><b>Somebody was faster.</b> Taken meanwhile: {}. \
             Nothing was reserved; please choose again.</p>",
            names(view.taken)
        );
    }
    parts(&mut body, view);
    body.push_str(
        "<p class=\"stage\">Stage</p><form class=\"hall\" method=\"post\" action=\"/reserve\">",
    );
    rows(&mut body, settings, view);
    body.push_str(
        "<ul class=\"key\"><li><i></i>free</li><li><i class=\"k-mine\"></i>your choice</li>\
         <li><i class=\"k-gone\"></i>gone</li></ul>\
         <div class=\"bar\"><span><strong>chosen</strong></span>\
         <button>Reserve and go to checkout</button></div></form>",
    );
    document(settings, "Choose your seats", &body)
}

fn parts(body: &mut String, view: &View<'_>) {
    if view.free.len() < 2 {
        return;
    }
    body.push_str("<nav aria-label=\"Parts of the hall\">");
    for (part, free) in (0..).zip(view.free) {
        let current = if part == view.part { " aria-current=\"page\"" } else { "" };
        let number = part + 1;
        let _ = write!(
            body,
            "<a href=\"/?part={number}\"{current}>Part {number} <small>{free} free</small></a>"
        );
    }
    body.push_str("</nav>");
}

fn rows(body: &mut String, settings: &Settings, view: &View<'_>) {
    let mut row = String::new();
    for seat in settings.hall.part(view.part) {
        if seat.row() != row {
            if !row.is_empty() {
                body.push_str("</fieldset>");
            }
            row = seat.row();
            let _ = write!(
                body,
                "<fieldset><legend>Row {row}</legend><b class=\"letters\" aria-hidden=\"true\">{row}</b>"
            );
        }
        let (number, chair, mine) = (seat.0, seat.chair(), view.mine.contains(&seat));
        if view.gone.binary_search(&seat).is_ok() && !mine {
            body.push_str("<div class=\"seat gone\"><span></span></div>");
            continue;
        }
        let checked = if mine { " checked" } else { "" };
        let _ = write!(
            body,
            "<div class=\"seat\"><input type=\"checkbox\" name=\"seat\" value=\"{number}\" \
             aria-label=\"Seat {seat}\"{checked}><span aria-hidden=\"true\">{chair}</span></div>"
        );
    }
    body.push_str("</fieldset>");
}

pub fn choose(settings: &Settings, chosen: usize) -> Page {
    let why = match chosen {
        0 => "You have not chosen a seat.".to_owned(),
        some if some > SEATS_EACH_MAX => format!("That is more than {SEATS_EACH_MAX} seats."),
        _ => "There is no such seat.".to_owned(),
    };
    let body = format!(
        "<h1>Which seats?</h1><p class=\"lead\">{why} Choose between one and {SEATS_EACH_MAX}.</p>\
         <p><a class=\"go\" href=\"/\">Back to the hall</a></p>"
    );
    document(settings, "Which seats?", &body)
}

pub fn checkout(settings: &Settings, seats: &[Seat], left_s: u64, wrong: Option<Wrong>) -> Page {
    let mut body = String::from("<h1>Checkout</h1>");
    let _ =
        write!(body, "<p class=\"lead\">These seats are yours for another {}.</p>", span(left_s));
    match wrong {
        Some(Wrong::Declined) => body.push_str(
            "<p class=\"notice\" role=\"alert\"><b>Your card was declined.</b> Nothing was charged, and \
             your seats are still reserved. Try another card.</p>",
        ),
        Some(Wrong::NoCard) => body.push_str(
            "<p class=\"notice\" role=\"alert\"><b>This is no card number.</b> It has 12 to 19 digits. \
             Your seats are still reserved.</p>",
        ),
        None => {}
    }
    body.push_str("<div class=\"card\"><ul class=\"seats\" aria-label=\"Your seats\">");
    for seat in seats {
        let _ = write!(body, "<li>{seat}</li>");
    }
    let _ = write!(
        body,
        "</ul><p class=\"sum\"><span>Together</span><span>{}</span></p>\
         <form method=\"post\" action=\"/pay\">\
         <label class=\"field\"><span>Your name</span><input name=\"name\" autocomplete=\"name\" required></label>\
         <label class=\"field\"><span>Card number</span><input name=\"card\" inputmode=\"numeric\" \
         autocomplete=\"off\" value=\"4242 4242 4242 4242\" required>\
         <small>This is a demo: no money moves. A number that ends in 0002 is declined.</small></label>\
         <button>Pay {}</button></form>\
         <form method=\"post\" action=\"/give-back\"><button class=\"plain\">Give the seats back</button></form></div>",
        sum(settings, seats),
        sum(settings, seats)
    );
    document(settings, "Checkout", &body)
}

pub fn bought(settings: &Settings, order: u64, seats: &[Seat], name: &str) -> Page {
    let thanks = if name.is_empty() { String::new() } else { format!(", {}", text(name)) };
    let mut body = format!(
        "<h1>Thank you{thanks}</h1><p class=\"lead\">See you in the hall.</p>\
        <div class=\"card\"><p>Order</p><p class=\"number\">{order}</p>\
        <ul class=\"seats\" aria-label=\"Your seats\">"
    );
    for seat in seats {
        let _ = write!(body, "<li>{seat}</li>");
    }
    let _ = write!(
        body,
        "</ul><p class=\"sum\"><span>Paid</span><span>{}</span></p>\
         <p>Your visit is over, and your place inside goes to the next in line.</p></div>",
        sum(settings, seats)
    );
    document(settings, "Thank you", &body)
}

pub fn nothing_held(settings: &Settings) -> Page {
    let body = "<h1>Nothing is reserved</h1><p class=\"lead\">Your reservation lapsed, or there was none. \
         Nothing was charged.</p><p><a class=\"go\" href=\"/\">Choose seats</a></p>";
    document(settings, "Nothing is reserved", body)
}

pub fn outside(settings: &Settings, why: Unwelcome) -> Page {
    let body = format!(
        "<h1>Please come in through the waiting room</h1><p class=\"lead\">This shop serves those who \
         were let in, and this request shows no good pass ({}).</p>",
        why.code()
    );
    document(settings, "Not this way", &body)
}

pub fn not_there(settings: &Settings) -> Page {
    let body =
        "<h1>There is no such page</h1><p><a class=\"go\" href=\"/\">Back to the hall</a></p>";
    document(settings, "Not there", body)
}

pub fn too_much(settings: &Settings) -> Page {
    document(
        settings,
        "Too much",
        "<h1>That was too much</h1><p class=\"lead\">A form of ours is smaller.</p>",
    )
}

pub fn broken(settings: &Settings) -> Page {
    let body = "<h1>The till is stuck</h1><p class=\"lead\">Nothing was charged. Please try again in a \
         moment; your place inside is yours.</p>";
    document(settings, "One moment", body)
}

fn document(settings: &Settings, title: &str, body: &str) -> Page {
    let shop = text(&settings.title);
    Page(format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} · {shop}</title><style>{STYLE}</style></head><body>\
         <header><a href=\"/\">{shop}</a><span>{} seats, one evening</span></header>\
         <main>{body}</main>\
         <footer>A demo shop behind a waiting room. It sells nothing.</footer></body></html>",
        settings.hall.seats()
    ))
}

fn sum(settings: &Settings, seats: &[Seat]) -> String {
    money(settings.price_cents * seats.len() as u64)
}

fn money(cents: u64) -> String {
    format!("€{}.{:02}", cents / 100, cents % 100)
}

fn span(seconds: u64) -> String {
    match seconds {
        0..=1 => "a second".to_owned(),
        2..=119 => format!("{seconds} seconds"),
        _ => format!("{} minutes", seconds / 60),
    }
}

fn names(seats: &[Seat]) -> String {
    let names: Vec<String> = seats.iter().map(Seat::to_string).collect();
    names.join(", ")
}

/// Text that stays text.
fn text(written: &str) -> String {
    let mut safe = String::with_capacity(written.len());
    for letter in written.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat::{Hall, PART};
    use std::time::Duration;

    fn settings(seats: u32) -> Settings {
        Settings {
            title: "Autumn <Lights>".into(),
            hall: Hall::new(seats).expect("a hall"),
            price_cents: 4_000,
            hold: Duration::from_secs(120),
            done_by: crate::shop::DoneBy::Header,
        }
    }

    #[test]
    fn what_people_type_stays_text() {
        for typed in ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onload='x"]
        {
            let Page(html) = bought(&settings(10), 7, &[Seat(3)], typed);
            assert!(!html.contains(typed), "{html}");
            assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
        }
    }

    #[test]
    fn the_largest_hall_is_no_larger_a_page_than_a_small_one() {
        let page = |seats: u32| {
            let settings = settings(seats);
            let free: Vec<u32> = (0..settings.hall.parts()).map(|_| PART).collect();
            let view = View { part: 0, free: &free, gone: &[], mine: &[], taken: &[] };
            hall(&settings, &view).0.len()
        };
        assert!(page(2_000) < page(200) * 11 / 10, "{} and {}", page(2_000), page(200));
    }

    #[test]
    fn a_seat_that_is_gone_cannot_be_chosen_and_ones_own_is_chosen() {
        let view =
            View { part: 0, free: &[18], gone: &[Seat(2), Seat(3)], mine: &[Seat(3)], taken: &[] };
        let Page(html) = hall(&settings(20), &view);
        assert!(html.contains("value=\"1\"") && !html.contains("value=\"2\""));
        assert!(html.contains("value=\"3\" aria-label=\"Seat A3\" checked"), "{html}");
    }
}
