//! Notices, wired: which rooms and channels there are, and where a ticket stands.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use waitroom_api::desk::{NoticeDesk, RoomDesk};
use waitroom_api::{Code, Desk, Problem};
use waitroom_core::id::TicketId;
use waitroom_core::{Board, Status};
use waitroom_outbox::Pending;
use waitroom_outbox::notify::{
    Asked, Channel, Email, Notice, NoticeFigures, Notices, Push, PushHosts, PushKey, Relay,
    RelayTls, Sms, Stand, Voices, Wish,
};
use waitroom_outbox::webhook::{Line, Manners, Reach, Secrets, SystemResolver};
use waitroom_store::seal::MasterKey;
use waitroom_store::{RoomName, Shelf, Store};

use super::installation::House;
use crate::config::{Config, Notify, SmtpTls, StoreKind};
use crate::failure::{Exit, Failure};

/// Who wants to hear of what, in every room that offers it.
#[derive(Debug)]
pub struct Office {
    rooms: BTreeMap<RoomName, Notices>,
    voices: Voices,
    push_key: Option<String>,
    figures: NoticeFigures,
    near_ahead: u64,
    near_wait: Duration,
}

/// How often is looked who is near. Nobody's turn comes in less from `near_ahead` people away.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// For a push service or the operator's own address for text messages.
const WITHIN: Duration = Duration::from_secs(10);
/// Under which name the key lies by which push services know us.
const PUSH_KEY: &str = "notify/push";

/// None where no room offers anything. Addresses of rooms that no longer do are removed.
pub async fn open<S: Store + Clone>(
    config: &Config,
    house: &House<S>,
) -> Result<Option<Arc<Office>>, Failure> {
    let of = &config.notify;
    let wrong = |why: String| {
        Failure::new(Exit::Wrong, format!("notices: {why}")).means("the server does not start")
    };
    let folder =
        (config.store.kind != StoreKind::Memory).then(|| config.server.data.join("notify"));
    if let Some(folder) = &folder {
        clear_away(folder, &of.rooms).map_err(|error| wrong(error.to_string()))?;
    }
    if of.rooms.is_empty() {
        return Ok(None);
    }
    let mut rooms = BTreeMap::new();
    for room in &of.rooms {
        let key = house.secret(&format!("room/{room}/notify")).await;
        let key = MasterKey::from_bytes(key.map_err(|error| wrong(error.to_string()))?);
        let shelf = match &folder {
            None => Ok(Shelf::in_memory(key)),
            Some(folder) => Shelf::open(&folder.join(room.as_str()), key),
        };
        let notices = shelf.and_then(Notices::on).map_err(|error| wrong(error.to_string()))?;
        rooms.insert(room.clone(), notices);
    }
    let reach = if of.allow_private { Reach::Anywhere } else { Reach::Public };
    let push = match &of.push_subject {
        None => None,
        Some(subject) => {
            let key = push_key(house).await.map_err(wrong)?;
            let clock = house.clock.clone();
            let hosts = PushHosts::new(of.push_hosts.iter().cloned());
            Some(Push { key, subject: subject.clone(), hosts, within: WITHIN, clock })
        }
    };
    let push_key = push.as_ref().map(|push| push.key.public());
    let voices = Voices {
        email: email(of).map_err(wrong)?,
        sms: sms(of, reach, house).map_err(wrong)?,
        push,
    };
    let (near_ahead, near_wait) = (of.near_ahead, of.near_wait);
    let figures = NoticeFigures::default();
    Ok(Some(Arc::new(Office { rooms, voices, push_key, figures, near_ahead, near_wait })))
}

/// Takes away what belongs to rooms that offer no notices.
fn clear_away(folder: &Path, rooms: &[RoomName]) -> std::io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        if !rooms.iter().any(|room| room.as_str() == name) {
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

async fn push_key<S: Store + Clone>(house: &House<S>) -> Result<PushKey, String> {
    let kept = house.secret_or(PUSH_KEY, PushKey::generate).await;
    let kept = kept.map_err(|error| error.to_string())?;
    PushKey::read(&kept).ok_or_else(|| "the key for push is damaged".to_owned())
}

fn email(of: &Notify) -> Result<Option<Email>, String> {
    let (Some((host, port)), Some(from)) = (&of.smtp, &of.from) else { return Ok(None) };
    let user = match (&of.smtp_user, &of.smtp_password_file) {
        (Some(user), Some(file)) => {
            let password = fs::read_to_string(file);
            let password = password.map_err(|error| format!("{}: {error}", file.display()))?;
            Some((user.clone(), password.trim().to_owned()))
        }
        _ => None,
    };
    let tls = match of.smtp_tls {
        SmtpTls::Always => RelayTls::Always,
        SmtpTls::StartTls => RelayTls::StartTls,
        SmtpTls::Never => RelayTls::Never,
    };
    let (host, ca, from) = (host.clone(), of.smtp_ca.clone(), from.clone());
    Email::by(&Relay { host, port: *port, tls, ca, user, from }).map(Some)
}

fn sms<S: Store + Clone>(
    of: &Notify,
    reach: Reach,
    house: &House<S>,
) -> Result<Option<Sms>, String> {
    let (Some(url), Some(secrets)) = (&of.sms_url, &of.sms_secret_file) else { return Ok(None) };
    let manners = Manners { reach, within: WITHIN, ca: None };
    let line = Line::to(url, manners, Arc::new(SystemResolver)).map_err(|it| it.to_string())?;
    let secrets = Secrets::load(secrets).map_err(|it| it.to_string())?;
    Ok(Some(Sms { line, secrets, clock: house.clock.clone() }))
}

/// Looks who is near, until it is dropped.
pub async fn run(office: Arc<Office>, desk: Arc<Desk>) {
    let mut every = tokio::time::interval(LOOK_EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        for (name, notices) in &office.rooms {
            // A room that is not there yet may come; its addresses wait.
            let Ok(room) = desk.room(name.as_str()) else { continue };
            let (board, _) = room.board_since(0).await;
            let stands = |ticket: &str| office.stands(&room, &board, ticket);
            notices.look_round(&office.voices, &office.figures, stands).await;
        }
    }
}

impl Office {
    fn stands(&self, room: &RoomDesk, board: &Board, ticket: &str) -> Stand {
        let Ok(id) = TicketId::parse(ticket) else { return Stand::Over };
        let Some(presented) = room.presented(id, None) else { return Stand::Over };
        let view = match room.look(board, &presented) {
            Ok(sight) => sight.view,
            Err(problem) if room.is_behind(board, &problem) => return Stand::Far,
            Err(problem) => {
                return match problem.code {
                    Code::TicketUnknown | Code::TicketForgotten | Code::PlaceLost => Stand::Over,
                    _ => Stand::Far,
                };
            }
        };
        let ahead = match (view.status, view.position) {
            (Status::Waiting, Some(position)) => {
                let ahead = position.saturating_sub(1);
                let likely = room.estimate(ahead, view.ticket.lane).ok();
                let soon = |it: u64| Duration::from_millis(it) <= self.near_wait;
                if ahead > self.near_ahead && !likely.is_some_and(|it| soon(it.likely_ms)) {
                    return Stand::Far;
                }
                Some(ahead)
            }
            (Status::Waiting, None) => return Stand::Far,
            (Status::Admitted, _) => None,
            _ => return Stand::Over,
        };
        let settings = room.settings();
        let title = settings.as_ref().map(|it| it.title.to_string()).unwrap_or_default();
        let link = settings.as_ref().map(|it| it.target_url.to_string()).unwrap_or_default();
        let name = room.name().clone();
        let title = if title.is_empty() { name.to_string() } else { title };
        Stand::Near(Notice { room: name, title, ahead, link, ticket: ticket.to_owned() })
    }
}

impl NoticeDesk for Office {
    fn channels(&self, room: &RoomName) -> Vec<&'static str> {
        if !self.rooms.contains_key(room) {
            return Vec::new();
        }
        let on = Channel::ALL.into_iter().filter(|it| self.voices.has(*it));
        on.map(Channel::word).collect()
    }

    fn push_key(&self) -> Option<String> {
        self.push_key.clone()
    }

    fn state(&self, room: &RoomName, ticket: TicketId) -> Option<&'static str> {
        let done = self.rooms.get(room)?.of(&ticket.to_string())?;
        Some(if done { "sent" } else { "waiting" })
    }

    fn ask<'a>(
        &'a self,
        room: &'a RoomName,
        ticket: TicketId,
        wish: Value,
    ) -> Pending<'a, Result<(), Problem>> {
        Box::pin(async move {
            let bad = |why: &str| Problem::new(Code::BadRequest, why).in_room(room);
            // The words of the parser would repeat what somebody typed.
            let wish: Wish = serde_json::from_value(wish)
                .map_err(|_| bad("no address of the kind that the channel takes"))?;
            wish.check().and_then(|()| self.voices.takes(&wish)).map_err(bad)?;
            let Some(notices) = self.rooms.get(room) else {
                return Err(Problem::new(Code::NotFound, "this room sends no notices"));
            };
            match notices.ask(&ticket.to_string(), &wish).await {
                Ok(Asked::Kept | Asked::DoneBefore) => Ok(()),
                Ok(Asked::NamedOften) => {
                    let detail = "too many tickets of this room name that address";
                    Err(Problem::new(Code::RateLimited, detail).in_room(room))
                }
                Ok(Asked::Full) => {
                    let detail = "no more notices can be kept in this room";
                    Err(Problem::new(Code::Unavailable, detail).in_room(room))
                }
                Err(why) => Err(Problem::new(Code::Unavailable, why).in_room(room)),
            }
        })
    }

    fn forget<'a>(
        &'a self,
        room: &'a RoomName,
        ticket: TicketId,
    ) -> Pending<'a, Result<(), Problem>> {
        Box::pin(async move {
            let Some(notices) = self.rooms.get(room) else { return Ok(()) };
            let gone = notices.forget(&ticket.to_string()).await;
            gone.map(|_| ()).map_err(|why| Problem::new(Code::Unavailable, why).in_room(room))
        })
    }

    fn counts(&self) -> Vec<(&'static str, &'static str, u64)> {
        self.figures.all().collect()
    }

    fn waiting(&self) -> Vec<(RoomName, u64)> {
        self.rooms.iter().map(|(room, kept)| (room.clone(), kept.waiting() as u64)).collect()
    }
}
