//! Every name on the page, with its labels and what it means. `docs/metrics.md` is made of this.

use waitroom_watch::{Family, Kind};

macro_rules! families {
    ($($family:ident $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(super) const $family: Family = Family {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// All of them, in the order of the page.
        pub const FAMILIES: &[Family] = &[$($family,)*];
    };
}

families! {
    WAITING Gauge "waitroom_waiting" ["room"] "People in line.";
    LANE_WAITING Gauge "waitroom_lane_waiting" ["room", "lane"] "People in line in each lane.";
    ADMITTED Gauge "waitroom_admitted" ["room"] "Admitted, and not claimed yet.";
    ACTIVE Gauge "waitroom_active" ["room"] "Sessions inside.";
    SLOTS_TAKEN Gauge "waitroom_slots_taken" ["room"] "Slots taken: admitted, inside, and ended ones whose pass some gate may still accept.";
    SLOTS_MAX Gauge "waitroom_slots_max" ["room"] "Slots there are (max_active).";
    RATE Gauge "waitroom_rate_limit_per_second" ["room"] "Admissions a second that the room may make; no series where only operators admit.";
    STATUS Gauge "waitroom_room_status" ["room", "status"] "1, with the room's status in the label.";
    ROOM_OPEN Gauge "waitroom_room_open" ["room"] "1 while the room can write, 0 while it has lost its store or cannot be opened.";
    JOINED Counter "waitroom_joined_total" ["room"] "Tickets given since the room was made.";
    ADMISSIONS Counter "waitroom_admissions_total" ["room"] "Admissions since the room was made.";
    NO_SHOWS Counter "waitroom_no_shows_total" ["room"] "Admissions that nobody claimed in time, since the room was made.";
    COMPLETED Counter "waitroom_completed_total" ["room"] "Sessions completed since the room was made.";
    LEFT Counter "waitroom_left_total" ["room"] "Visitors who left the line, since the room was made.";
    EXPIRED Counter "waitroom_expired_total" ["room"] "Tickets expired since the room was made, for any reason.";
    REVOKED Counter "waitroom_revoked_total" ["room"] "Tickets revoked since the room was made.";
    ENDINGS Counter "waitroom_endings_total" ["room", "reason"] "Tickets ended since this instance opened the room, by the reason.";
    WAITS Histogram "waitroom_wait_seconds" ["room"] "From joining to being admitted, of those admitted since this instance opened the room.";
    ESTIMATES_TOLD Counter "waitroom_estimates_told_total" ["room"] "Sampled estimates of the wait whose visitor was admitted.";
    ESTIMATES_HELD Counter "waitroom_estimates_held_total" ["room"] "Of these, the ones whose 80 % interval held.";
    ESTIMATE_ERROR Histogram "waitroom_estimate_error_ratio" ["room"] "How far the likely wait was from the real one, as a share of the likely one.";
    LIKELY_WAIT Gauge "waitroom_likely_wait_seconds" ["room"] "The likely wait of the last in line (lane 0); no series while it is unknown.";
    APPEND Histogram "waitroom_journal_append_seconds" ["room"] "From the close of a round until it is durable: waiting for the disk, and its sync.";
    BATCH Histogram "waitroom_journal_batch_events" ["room"] "Events that one append made durable.";
    QUEUE Gauge "waitroom_queue_depth" ["room"] "Requests that wait for the room's writer now.";
    BOARD_AGE Gauge "waitroom_board_age_seconds" ["room"] "How long readers have been shown an older board than there is; 0 when they see the newest.";
    VERSION Gauge "waitroom_version" ["room"] "Index of the newest event that is on the board.";
    FAILURES Counter "waitroom_room_failures_total" ["room"] "Times the room lost its store and was rebuilt from it.";
    UNANSWERED Counter "waitroom_unanswered_total" ["room", "reason"] "Commands that got no reply from the room's writer, by the reason.";
    LIVE Gauge "waitroom_live_connections" ["room", "kind"] "Live channels open now: websocket, or events (SSE).";
    FRAMES Counter "waitroom_live_frames_total" ["room"] "Boards and personal frames handed to live channels.";
    REQUESTS Counter "waitroom_requests_total" ["listener", "route", "status"] "Requests answered, by class of status; for gRPC, 2xx is OK, 4xx the caller's fault, 5xx ours.";
    REQUEST_SECONDS Histogram "waitroom_request_seconds" ["listener", "route"] "From the request's headers until its answer begins.";
    PROBLEMS Counter "waitroom_problems_total" ["code"] "Requests refused over HTTP, by the code of the problem document.";
    LIMITED Counter "waitroom_rate_limited_total" ["route"] "Requests beyond the limit of their route.";
    TOKENS Counter "waitroom_tokens_refused_total" ["kind", "reason"] "Credentials that were missing or not good.";
    PASSES Counter "waitroom_passes_signed_total" [] "Passes signed.";
    KEY_CHANGES Counter "waitroom_pass_key_changes_total" [] "Times the set of pass keys changed: published, signing, retired.";
    RELOADS Counter "waitroom_reloads_total" ["outcome"] "Reloads that were asked for (SIGHUP): done, or refused, and then the old settings stay.";
    CONNECTIONS Gauge "waitroom_listener_connections" ["listener"] "Connections open now, live channels included.";
    ACCEPTED Counter "waitroom_listener_accepted_total" ["listener"] "Connections that were given a seat.";
    UPGRADED Counter "waitroom_listener_upgraded_total" ["listener"] "Connections that became WebSockets.";
    CONNECTIONS_REFUSED Counter "waitroom_listener_refused_total" ["listener", "reason"] "Connections closed at once: full, address (has its share), proxy (not a listed one), system (no file or memory).";
    CONNECTIONS_FAILED Counter "waitroom_listener_failed_total" ["listener", "reason"] "Connections that broke: proxy header, tls, http.";
    CONNECTIONS_LATE Counter "waitroom_listener_late_total" ["listener", "stage"] "Connections cut because they were too slow, by the stage they were in.";
    EVENTS_SENT Counter "waitroom_events_sent_total" ["sink"] "Messages that a sink acknowledged, repeats included.";
    EVENTS_FAILURES Counter "waitroom_events_failures_total" ["sink"] "Deliveries to a sink that failed and are tried again.";
    EVENTS_GAPS Counter "waitroom_events_gaps_total" ["sink"] "Stretches of a log that were given up for a sink that did not keep up.";
    EVENTS_DEAD Gauge "waitroom_events_dead_letters" ["sink"] "Messages that a webhook did not take and that nobody has sent again or thrown away.";
    EVENTS_LAG Gauge "waitroom_events_lag" ["sink", "room"] "Events of the log that a sink has not acknowledged.";
    EVENTS_LAG_SECONDS Gauge "waitroom_events_lag_seconds" ["sink", "room"] "How long the oldest of them has waited.";
    CHECKOUTS Counter "waitroom_checkouts_total" ["source", "outcome"] "Messages of checkouts: ended a session, or why not.";
    CLUSTER_INSTANCES Gauge "waitroom_cluster_instances" [] "Instances that share the rooms, this one included; no series where nobody does.";
    CLUSTER_OWNED Gauge "waitroom_cluster_rooms_owned" [] "Rooms that this instance owns; it follows the others.";
    CLUSTER_SENT Counter "waitroom_cluster_requests_total" ["way"] "Requests sent on to owners of rooms (sent), and those taken in from others (taken).";
    CLUSTER_UNKNOWN Counter "waitroom_cluster_unanswered_total" [] "Requests sent on that got no answer: their outcome is unknown.";
    CLUSTER_MOVES Counter "waitroom_cluster_moves_total" ["way"] "Rooms that this instance began to own (taken), and those it handed over in order (given).";
    NOTICES Counter "waitroom_notices_total" ["channel", "outcome"] "Messages to visitors whose turn came near: sent, or failed and given up.";
    NOTICES_WAITING Gauge "waitroom_notices_waiting" ["room"] "Visitors who asked for such a message and have not had it yet.";
    ROOMS Gauge "waitroom_rooms" [] "Rooms of this instance.";
    READY Gauge "waitroom_ready" [] "1 while /health/ready says that visitors may be sent.";
    SPANS Counter "waitroom_spans_total" ["outcome"] "Spans of followed requests: sent to the collector, or dropped because it did not keep up.";
    BUILD Gauge "waitroom_build_info" ["version"] "1; the version is in the label.";
    CPU Counter "process_cpu_seconds_total" [] "Processor time used.";
    MEMORY Gauge "process_resident_memory_bytes" [] "Resident memory.";
    THREADS Gauge "process_threads" [] "Threads.";
    FILES Gauge "process_open_fds" [] "Open files and sockets.";
    FILES_MAX Gauge "process_max_fds" [] "Files and sockets that may be open.";
    STARTED Gauge "process_start_time_seconds" [] "When the process was started, in seconds since 1970.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_custom_of_prometheus() {
        let mut seen = std::collections::BTreeSet::new();
        for family in FAMILIES {
            let name = family.name;
            assert!(seen.insert(name), "{name} twice");
            assert!(name.starts_with("waitroom_") || name.starts_with("process_"), "{name}");
            assert_eq!(family.kind == Kind::Counter, name.ends_with("_total"), "{name}");
            assert!(family.help.ends_with('.'), "{name}: {}", family.help);
            assert!(!name.contains("_ms") && !name.contains("_us"), "{name}: base units only");
        }
    }
}
