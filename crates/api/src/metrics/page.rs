//! The page: what rooms, listeners and requests have counted, read when somebody asks.

use std::sync::Arc;

use waitroom_core::{Counts, LaneId, State};
use waitroom_engine::figures::ERROR_SCALE;
use waitroom_listen::Counts as Door;
use waitroom_store::RoomName;
use waitroom_watch::{Counter, Family, Page, Picture, span};

use super::families as f;
use super::{CLASSES, LIMITED, TOKENS, process, routes};
use crate::answer::room_status;
use crate::desk::{ClusterFigures, Desk, RoomDesk, SinkLag, SinkPicture};
use crate::health;
use crate::live::Carrier;
use crate::problem::Code;

pub(super) fn write(desk: &Desk) -> String {
    let mut page = Page::default();
    let rooms = desk.rooms();
    lengths(&mut page, desk, &rooms);
    totals(&mut page, &rooms);
    waits(&mut page, &rooms);
    writers(&mut page, &rooms);
    live(&mut page, &rooms);
    requests(&mut page, desk);
    listeners(&mut page, desk);
    events(&mut page, desk);
    checkouts(&mut page, desk);
    cluster(&mut page, desk);
    notices(&mut page, desk);
    instance(&mut page, desk, rooms.len());
    page.into_text()
}

type Rooms = [Arc<RoomDesk>];

/// A family, and where its value is found.
type OfRoom = (&'static Family, fn(Counts) -> u64);
type OfDoor = (&'static Family, fn(&Door) -> u64);
type OfSink = (&'static Family, fn(&SinkPicture) -> u64);
type OfLag = (&'static Family, fn(&SinkLag) -> f64);
type OfCluster = (&'static Family, fn(&ClusterFigures) -> u64);

/// One series for each room that has the figure.
fn each<V: std::fmt::Display>(
    page: &mut Page,
    family: &'static Family,
    rooms: &Rooms,
    figure: impl Fn(&RoomDesk) -> Option<V>,
) {
    page.family(family, |series| {
        for room in rooms {
            if let Some(value) = figure(room) {
                series.value(&[room.name().as_str()], value);
            }
        }
    });
}

/// The same for what the board tells.
fn board<V: std::fmt::Display>(
    page: &mut Page,
    family: &'static Family,
    rooms: &Rooms,
    figure: impl Fn(&State) -> Option<V>,
) {
    each(page, family, rooms, |room| figure(room.handle().board_guard().state()));
}

fn lengths(page: &mut Page, desk: &Desk, rooms: &Rooms) {
    board(page, &f::WAITING, rooms, |state| Some(state.counts().waiting));
    page.family(&f::LANE_WAITING, |series| {
        for room in rooms {
            let board = room.handle().board_guard();
            for lane in board.state().lane_ids() {
                let waiting = board.state().lane_counts(lane).waiting;
                let lane = lane_name(board.state(), lane);
                series.value(&[room.name().as_str(), &lane], waiting);
            }
        }
    });
    board(page, &f::ADMITTED, rooms, |state| Some(state.counts().admitted));
    board(page, &f::ACTIVE, rooms, |state| Some(state.counts().active));
    board(page, &f::SLOTS_TAKEN, rooms, |state| Some(state.slots_taken()));
    board(page, &f::SLOTS_MAX, rooms, |state| Some(state.settings()?.max_active));
    board(page, &f::RATE, rooms, |state| {
        let rate = state.settings()?.rate?;
        Some(f64::from(rate.count) * 1_000.0 / rate.per.0.max(1) as f64)
    });
    page.family(&f::STATUS, |series| {
        for room in rooms {
            let board = room.handle().board_guard();
            let (status, _) = room_status(board.state());
            series.value(&[room.name().as_str(), status], 1);
        }
    });
    page.family(&f::ROOM_OPEN, |series| {
        for room in rooms {
            let open = room.handle().figures().trouble().is_none();
            series.value(&[room.name().as_str()], u8::from(open));
        }
        let listed = |name: &RoomName| rooms.iter().any(|room| room.name() == name);
        for room in desk.unopened.rooms().keys().filter(|name| !listed(name)) {
            series.value(&[room.as_str()], 0);
        }
    });
}

fn lane_name(state: &State, lane: LaneId) -> String {
    if lane == LaneId::RETURNING {
        return "returning".to_owned();
    }
    let named = state.settings().and_then(|it| it.lanes.get(usize::from(lane.0)));
    named.map_or_else(|| lane.0.to_string(), |lane| lane.name.clone())
}

fn totals(page: &mut Page, rooms: &Rooms) {
    let figures: [OfRoom; 7] = [
        (&f::JOINED, |counts| counts.joined),
        (&f::ADMISSIONS, |counts| counts.admissions),
        (&f::NO_SHOWS, |counts| counts.no_shows),
        (&f::COMPLETED, |counts| counts.completed),
        (&f::LEFT, |counts| counts.left),
        (&f::EXPIRED, |counts| counts.expired),
        (&f::REVOKED, |counts| counts.revoked),
    ];
    for (family, figure) in figures {
        board(page, family, rooms, |state| Some(figure(state.counts())));
    }
    page.family(&f::ENDINGS, |series| {
        for room in rooms {
            for (reason, count) in room.handle().figures().endings() {
                series.value(&[room.name().as_str(), reason], count);
            }
        }
    });
}

fn waits(page: &mut Page, rooms: &Rooms) {
    histograms(page, &f::WAITS, rooms, |room| room.handle().figures().waits.now());
    let judged = |room: &RoomDesk| *room.handle().outlook_guard().judged();
    each(page, &f::ESTIMATES_TOLD, rooms, |room| Some(judged(room).told));
    each(page, &f::ESTIMATES_HELD, rooms, |room| Some(judged(room).held));
    histograms(page, &f::ESTIMATE_ERROR, rooms, |room| {
        let judged = judged(room);
        let (buckets, sum) = (judged.errors.to_vec(), judged.error_permille);
        Picture { scale: &ERROR_SCALE, buckets, sum }
    });
    each(page, &f::LIKELY_WAIT, rooms, |room| {
        let waiting = room.handle().board_guard().state().lane_counts(LaneId(0)).waiting;
        let wait = room.estimate(waiting, LaneId(0)).ok()?;
        Some(wait.likely_ms as f64 / 1_000.0)
    });
}

fn histograms(
    page: &mut Page,
    family: &'static Family,
    rooms: &Rooms,
    picture: impl Fn(&RoomDesk) -> Picture,
) {
    page.family(family, |series| {
        for room in rooms {
            series.histogram(&[room.name().as_str()], &picture(room));
        }
    });
}

fn writers(page: &mut Page, rooms: &Rooms) {
    histograms(page, &f::APPEND, rooms, |room| room.handle().figures().append.now());
    histograms(page, &f::BATCH, rooms, |room| room.handle().figures().batch.now());
    each(page, &f::QUEUE, rooms, |room| Some(room.handle().queued()));
    each(page, &f::BOARD_AGE, rooms, |room| Some(room.handle().behind().0 as f64 / 1_000.0));
    each(page, &f::VERSION, rooms, |room| Some(room.handle().board_guard().version()));
    each(page, &f::FAILURES, rooms, |room| Some(room.handle().figures().failures.get()));
    page.family(&f::UNANSWERED, |series| {
        for room in rooms {
            for (reason, count) in room.handle().figures().unanswered() {
                series.value(&[room.name().as_str(), reason], count);
            }
        }
    });
}

fn live(page: &mut Page, rooms: &Rooms) {
    page.family(&f::LIVE, |series| {
        for room in rooms {
            for (kind, carrier) in [("websocket", Carrier::WebSocket), ("events", Carrier::Events)]
            {
                series.value(&[room.name().as_str(), kind], room.hub.connected_by(carrier));
            }
        }
    });
    each(page, &f::FRAMES, rooms, |room| Some(room.hub.pushes()));
}

fn requests(page: &mut Page, desk: &Desk) {
    let metrics = &desk.metrics;
    page.family(&f::REQUESTS, |series| {
        for route in routes::all() {
            let classes = &metrics.routes[route.index()].classes;
            for (class, count) in CLASSES.into_iter().zip(classes) {
                // A switch of protocols is rare enough to be told when there is one.
                if class != "1xx" || count.get() > 0 {
                    series.value(&[route.door(), &route.name(), class], count.get());
                }
            }
        }
    });
    page.family(&f::REQUEST_SECONDS, |series| {
        for route in routes::all() {
            let picture = metrics.routes[route.index()].seconds.now();
            if picture.count() > 0 {
                series.histogram(&[route.door(), &route.name()], &picture);
            }
        }
    });
    page.family(&f::PROBLEMS, |series| {
        for (code, count) in Code::ALL.iter().zip(&metrics.problems) {
            series.value(&[code.text()], count.get());
        }
    });
    page.family(&f::LIMITED, |series| {
        for (route, count) in LIMITED.into_iter().zip(&metrics.limited) {
            series.value(&[route], count.get());
        }
    });
    page.family(&f::TOKENS, |series| {
        for (kind, reason, code) in TOKENS {
            series.value(&[kind, reason], metrics.problems[code as usize].get());
        }
    });
    page.alone(&f::PASSES, metrics.passes.get());
    page.alone(&f::KEY_CHANGES, metrics.key_changes.get());
    page.family(&f::RELOADS, |series| {
        for (outcome, count) in ["done", "refused"].into_iter().zip(&metrics.reloads) {
            series.value(&[outcome], count.get());
        }
    });
}

fn listeners(page: &mut Page, desk: &Desk) {
    let listeners = desk.metrics.listeners.get().map_or(&[][..], Vec::as_slice);
    let doors: Vec<(&str, Door)> =
        listeners.iter().map(|(name, stats)| (*name, stats.now())).collect();
    let single: [OfDoor; 3] = [
        (&f::CONNECTIONS, |door| door.open),
        (&f::ACCEPTED, |door| door.accepted),
        (&f::UPGRADED, |door| door.upgraded),
    ];
    for (family, figure) in single {
        page.family(family, |series| {
            doors.iter().for_each(|(name, door)| series.value(&[name], figure(door)));
        });
    }
    type Reasons = &'static [(&'static str, fn(&Door) -> u64)];
    let by_reason: [(&'static Family, Reasons); 3] = [
        (
            &f::CONNECTIONS_REFUSED,
            &[
                ("full", |door| door.refused_full),
                ("address", |door| door.refused_address),
                ("proxy", |door| door.refused_proxy),
                ("system", |door| door.accept_failed),
            ],
        ),
        (
            &f::CONNECTIONS_FAILED,
            &[
                ("proxy", |door| door.failed_proxy),
                ("tls", |door| door.failed_tls),
                ("http", |door| door.failed_http),
            ],
        ),
        (
            &f::CONNECTIONS_LATE,
            &[
                ("handshake", |door| door.late_handshake),
                ("header", |door| door.late_header),
                ("idle", |door| door.late_idle),
                ("write", |door| door.late_write),
            ],
        ),
    ];
    for (family, reasons) in by_reason {
        page.family(family, |series| {
            for (name, door) in &doors {
                for (reason, figure) in reasons {
                    series.value(&[name, reason], figure(door));
                }
            }
        });
    }
}

fn events(page: &mut Page, desk: &Desk) {
    let sinks = desk.outbox.get().map(|outbox| outbox.sinks()).unwrap_or_default();
    let counted: [OfSink; 3] = [
        (&f::EVENTS_SENT, |sink| sink.sent),
        (&f::EVENTS_FAILURES, |sink| sink.failures),
        (&f::EVENTS_GAPS, |sink| sink.gaps),
    ];
    for (family, figure) in counted {
        page.family(family, |series| {
            sinks.iter().for_each(|sink| series.value(&[&sink.name], figure(sink)));
        });
    }
    page.family(&f::EVENTS_DEAD, |series| {
        let dead = sinks.iter().filter_map(|sink| Some((sink, sink.dead?)));
        dead.for_each(|(sink, dead)| series.value(&[&sink.name], dead));
    });
    let lags: [OfLag; 2] =
        [(&f::EVENTS_LAG, |lag| lag.events as f64), (&f::EVENTS_LAG_SECONDS, |lag| lag.seconds)];
    for (family, figure) in lags {
        page.family(family, |series| {
            for sink in &sinks {
                for lag in &sink.lags {
                    series.value(&[&sink.name, lag.room.as_str()], figure(lag));
                }
            }
        });
    }
}

fn checkouts(page: &mut Page, desk: &Desk) {
    let heard = desk.outbox.get().map(|outbox| outbox.checkouts()).unwrap_or_default();
    page.family(&f::CHECKOUTS, |series| {
        heard.iter().for_each(|(source, outcome, count)| series.value(&[source, outcome], count));
    });
}

fn cluster(page: &mut Page, desk: &Desk) {
    let figures = desk.cluster.get().map(|cluster| cluster.figures());
    let alone: [OfCluster; 3] = [
        (&f::CLUSTER_INSTANCES, |it| it.instances),
        (&f::CLUSTER_OWNED, |it| it.rooms_owned),
        (&f::CLUSTER_UNKNOWN, |it| it.unknown),
    ];
    for (family, figure) in alone {
        page.family(family, |series| {
            figures.iter().for_each(|it| series.value(&[], figure(it)));
        });
    }
    page.family(&f::CLUSTER_SENT, |series| {
        if let Some(it) = &figures {
            series.value(&["sent"], it.sent_on);
            series.value(&["taken"], it.taken_in);
        }
    });
    page.family(&f::CLUSTER_MOVES, |series| {
        if let Some(it) = &figures {
            series.value(&["taken"], it.takeovers);
            series.value(&["given"], it.handovers);
        }
    });
}

fn notices(page: &mut Page, desk: &Desk) {
    let told = desk.notices.get().map(|it| it.counts()).unwrap_or_default();
    let waiting = desk.notices.get().map(|it| it.waiting()).unwrap_or_default();
    page.family(&f::NOTICES, |series| {
        told.iter().for_each(|(channel, outcome, count)| series.value(&[channel, outcome], count));
    });
    page.family(&f::NOTICES_WAITING, |series| {
        waiting.iter().for_each(|(room, count)| series.value(&[room.as_str()], count));
    });
}

fn instance(page: &mut Page, desk: &Desk, rooms: usize) {
    page.alone(&f::ROOMS, rooms);
    page.alone(&f::READY, u8::from(health::obstacles(desk).is_empty()));
    page.family(&f::SPANS, |series| {
        let outcomes: [(&str, &Counter); 2] = [("sent", &span::SENT), ("dropped", &span::DROPPED)];
        outcomes.into_iter().for_each(|(word, count)| series.value(&[word], count.get()));
    });
    page.family(&f::BUILD, |series| series.value(&[env!("CARGO_PKG_VERSION")], 1));
    let Some(process) = process::now() else { return };
    page.alone(&f::CPU, process.cpu_seconds);
    page.alone(&f::MEMORY, process.resident_bytes);
    page.alone(&f::THREADS, process.threads);
    page.alone(&f::FILES, process.open_files);
    page.alone(&f::FILES_MAX, process.files_max);
    page.alone(&f::STARTED, process.started_at);
}
