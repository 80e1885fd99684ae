//! The shop: one request in, one answer out.
//!
//! | address | |
//! |---|---|
//! | `GET /` | the hall, one part of it (`?part=2`) |
//! | `POST /reserve` | holds up to four seats, instead of what was held |
//! | `GET /checkout` | what is held, until when, and the card |
//! | `POST /pay` | sells it, or says that the card was declined |
//! | `POST /give-back` | gives the seats back |
//! | `GET /health` | for whoever asks whether it lives |
//!
//! All but the last need a pass. A card number that ends in 0002 is declined, as test cards are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION};
use hyper::{Method, Request, Response, StatusCode};

use crate::checkout::{Checkout, Ended, Hears};
use crate::door::{Door, Unwelcome};
use crate::form;
use crate::page::{self, Page};
use crate::seat::{Hall, PART, Seat};
use crate::stock::{Buyer, Error, Reserved, Sold, Stock};

/// A form of ours has a few hundred bytes.
const BODY_BYTES_MAX: usize = 16 << 10;
/// A name is shown again; nobody's is longer.
const NAME_LETTERS_MAX: usize = 80;
/// One person can buy so many, in one order.
pub const SEATS_EACH_MAX: usize = 4;
/// What cards that are to be declined end in.
const DECLINED: &str = "0002";

#[derive(Clone, Debug)]
pub struct Settings {
    pub title: String,
    pub hall: Hall,
    pub price_cents: u64,
    /// How long seats are held for somebody who has not paid.
    pub hold: Duration,
    pub done_by: DoneBy,
}

/// How the waiting room hears that a visitor is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoneBy {
    /// A header of the answer that confirms the order.
    Header,
    /// Whoever hears of checkouts tells it ([`Hears`]).
    Checkout,
}

#[derive(Debug)]
pub struct Shop {
    pub settings: Settings,
    pub stock: Stock,
    pub door: Door,
    hears: Arc<dyn Hears>,
    /// How much longer every answer takes, in milliseconds: a shop under strain.
    strain_ms: AtomicU64,
    /// Requests that showed no good pass.
    turned_away: AtomicU64,
}

/// Somebody inside.
struct Guest<'a> {
    session: String,
    pass: &'a str,
}

impl Shop {
    pub fn new(settings: Settings, stock: Stock, door: Door, hears: Arc<dyn Hears>) -> Shop {
        let (strain_ms, turned_away) = (AtomicU64::new(0), AtomicU64::new(0));
        Shop { settings, stock, door, hears, strain_ms, turned_away }
    }

    /// Makes every answer take so much longer, from now on.
    pub fn strain(&self, more: Duration) {
        self.strain_ms.store(more.as_millis() as u64, Relaxed);
    }

    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Relaxed)
    }

    /// Frees what was held too long, and tells of it.
    pub async fn sweep(&self) -> Result<(), Error> {
        let at_ms = now_ms();
        for session in self.stock.lapse(at_ms).await? {
            self.hears.ended(&Checkout { session, ended: Ended::Expired, at_ms });
        }
        Ok(())
    }

    pub async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: hyper::body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        if head.uri.path() == "/health" {
            return Response::new(Full::from("fine\n"));
        }
        let guest = match self.door.check(&head.headers, now_ms() / 1_000).await {
            Ok((pass, text)) => Guest { session: pass.ticket, pass: text },
            Err(why) => {
                self.turned_away.fetch_add(1, Relaxed);
                let status = match why {
                    Unwelcome::NoKeys => StatusCode::SERVICE_UNAVAILABLE,
                    _ => StatusCode::FORBIDDEN,
                };
                return shown(status, page::outside(&self.settings, why));
            }
        };
        let strain = self.strain_ms.load(Relaxed);
        if strain > 0 {
            tokio::time::sleep(Duration::from_millis(strain)).await;
        }
        let answered = match (&head.method, head.uri.path()) {
            (&Method::GET, "/") => self.hall(&guest, head.uri.query().unwrap_or("")).await,
            (&Method::GET, "/checkout") => self.checkout(&guest).await,
            (&Method::POST, path @ ("/reserve" | "/pay" | "/give-back")) => {
                let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
                    return shown(StatusCode::PAYLOAD_TOO_LARGE, page::too_much(&self.settings));
                };
                let fields = form::fields(&String::from_utf8_lossy(&body.to_bytes()));
                match path {
                    "/reserve" => self.reserve(&guest, &fields).await,
                    "/pay" => self.pay(&guest, &fields).await,
                    _ => self.give_back(&guest).await,
                }
            }
            (_, "/" | "/checkout") => return not_so("GET"),
            (_, "/reserve" | "/pay" | "/give-back") => return not_so("POST"),
            _ => Ok(shown(StatusCode::NOT_FOUND, page::not_there(&self.settings))),
        };
        answered.unwrap_or_else(|error| {
            // The database's words are for whoever runs the shop.
            eprintln!("the shop's stock: {error}");
            shown(StatusCode::SERVICE_UNAVAILABLE, page::broken(&self.settings))
        })
    }

    async fn hall(&self, guest: &Guest<'_>, query: &str) -> Result<Answer, Error> {
        let asked = form::fields(query);
        let asked = form::field(&asked, "part").and_then(|it| it.parse::<u32>().ok());
        let page = self.hall_page(guest, asked, &[]).await?;
        Ok(shown(StatusCode::OK, page))
    }

    /// The part that was asked for (counted from 1), or the first with a free seat.
    async fn hall_page(
        &self,
        guest: &Guest<'_>,
        asked: Option<u32>,
        taken: &[Seat],
    ) -> Result<Page, Error> {
        let (hall, now) = (self.settings.hall, now_ms());
        let gone = self.stock.gone(Seat(1), Seat(hall.seats()), now).await?;
        let mine = self.stock.held(&guest.session, now).await?.seats;
        let mut free: Vec<u32> = (0..hall.parts()).map(|it| hall.part(it).count() as u32).collect();
        for seat in gone.iter().filter(|it| hall.has(**it)) {
            free[((seat.0 - 1) / PART) as usize] -= 1;
        }
        let first = || free.iter().position(|it| *it > 0).unwrap_or(0) as u32;
        let part = asked.and_then(|it| it.checked_sub(1)).filter(|it| *it < hall.parts());
        let view = page::View {
            part: part.unwrap_or_else(first),
            free: &free,
            gone: &gone,
            mine: &mine,
            taken,
        };
        Ok(page::hall(&self.settings, &view))
    }

    async fn reserve(
        &self,
        guest: &Guest<'_>,
        fields: &[(String, String)],
    ) -> Result<Answer, Error> {
        let asked = fields.iter().filter(|(name, _)| name == "seat");
        let mut seats: Vec<Seat> =
            asked.filter_map(|(_, value)| value.parse().ok().map(Seat)).collect();
        seats.sort();
        seats.dedup();
        let fits = (1..=SEATS_EACH_MAX).contains(&seats.len())
            && seats.iter().all(|it| self.settings.hall.has(*it));
        if !fits {
            let page = page::choose(&self.settings, seats.len());
            return Ok(shown(StatusCode::UNPROCESSABLE_ENTITY, page));
        }
        let now = now_ms();
        let until = now + self.settings.hold.as_millis() as u64;
        match self.stock.reserve(&guest.session, &seats, now, until).await? {
            Reserved::Held => Ok(see("/checkout")),
            Reserved::Taken(taken) => {
                let part = seats.first().map(|it| (it.0 - 1) / PART + 1);
                let page = self.hall_page(guest, part, &taken).await?;
                Ok(shown(StatusCode::CONFLICT, page))
            }
        }
    }

    async fn checkout(&self, guest: &Guest<'_>) -> Result<Answer, Error> {
        let now = now_ms();
        let hold = self.stock.held(&guest.session, now).await?;
        if hold.seats.is_empty() {
            return Ok(shown(StatusCode::OK, page::nothing_held(&self.settings)));
        }
        let left_s = hold.until_ms.saturating_sub(now) / 1_000;
        Ok(shown(StatusCode::OK, page::checkout(&self.settings, &hold.seats, left_s, None)))
    }

    async fn pay(&self, guest: &Guest<'_>, fields: &[(String, String)]) -> Result<Answer, Error> {
        let at_ms = now_ms();
        let name: String = form::field(fields, "name")
            .unwrap_or("")
            .trim()
            .chars()
            .take(NAME_LETTERS_MAX)
            .collect();
        let card: String = form::field(fields, "card")
            .unwrap_or("")
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        let hold = self.stock.held(&guest.session, at_ms).await?;
        if !hold.seats.is_empty() && !(12..=19).contains(&card.len()) {
            let left_s = hold.until_ms.saturating_sub(at_ms) / 1_000;
            let page =
                page::checkout(&self.settings, &hold.seats, left_s, Some(page::Wrong::NoCard));
            return Ok(shown(StatusCode::UNPROCESSABLE_ENTITY, page));
        }
        if !hold.seats.is_empty() && card.ends_with(DECLINED) {
            let ended = Ended::Failed;
            self.hears.ended(&Checkout { session: guest.session.clone(), ended, at_ms });
            let left_s = hold.until_ms.saturating_sub(at_ms) / 1_000;
            let page =
                page::checkout(&self.settings, &hold.seats, left_s, Some(page::Wrong::Declined));
            return Ok(shown(StatusCode::PAYMENT_REQUIRED, page));
        }
        let buyer = Buyer { session: &guest.session, pass: guest.pass, name: &name };
        match self.stock.sell(buyer, at_ms).await? {
            Sold::Now { order, seats, left } => {
                let ended = Ended::Completed { order, seats: seats.clone() };
                self.hears.ended(&Checkout { session: guest.session.clone(), ended, at_ms });
                let answer =
                    shown(StatusCode::OK, page::bought(&self.settings, order, &seats, &name));
                Ok(self.told(answer, left == 0))
            }
            Sold::Before { order, seats } => {
                let answer =
                    shown(StatusCode::OK, page::bought(&self.settings, order, &seats, &name));
                Ok(self.told(answer, false))
            }
            Sold::NothingHeld => {
                Ok(shown(StatusCode::CONFLICT, page::nothing_held(&self.settings)))
            }
        }
    }

    async fn give_back(&self, guest: &Guest<'_>) -> Result<Answer, Error> {
        self.stock.give_back(&guest.session).await?;
        Ok(see("/"))
    }

    /// What the waiting room hears: this visitor is done, and perhaps the whole sale is.
    fn told(&self, mut answer: Answer, sold_out: bool) -> Answer {
        let headers = answer.headers_mut();
        if self.settings.done_by == DoneBy::Header {
            headers.insert("waitroom-session", "complete".parse().expect("a plain word"));
        }
        if sold_out {
            headers.insert("waitroom-room", "sold-out".parse().expect("a plain word"));
        }
        answer
    }
}

type Answer = Response<Full<Bytes>>;

fn shown(status: StatusCode, page: Page) -> Answer {
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "text/html; charset=utf-8")
        .header(CACHE_CONTROL, "no-store")
        .header(CONTENT_SECURITY_POLICY, page::policy())
        .header("x-content-type-options", "nosniff")
        .body(Full::from(page.0))
        .expect("every part is well formed")
}

fn see(path: &'static str) -> Answer {
    let answer = Response::builder().status(StatusCode::SEE_OTHER).header(LOCATION, path);
    answer.body(Full::default()).expect("every part is well formed")
}

fn not_so(allowed: &'static str) -> Answer {
    let answer = Response::builder().status(StatusCode::METHOD_NOT_ALLOWED).header(ALLOW, allowed);
    answer.body(Full::default()).expect("every part is well formed")
}

pub(crate) fn now_ms() -> u64 {
    UNIX_EPOCH.elapsed().map_or(0, |it| it.as_millis() as u64)
}
