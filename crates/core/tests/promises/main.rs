//! What `waitroom-core` promises, one file per verb, in words.
//!
//! One test binary: the files share the script language, and a machine links it once.

mod admit;
mod any_sequence;
mod bucket;
mod claim;
mod draw_room;
mod epochs;
mod event_bytes;
mod forgetting;
mod hold;
mod idempotency;
mod identity;
mod join;
mod lanes;
mod leave_and_lapse;
mod lifecycle;
mod move_and_hand_over;
mod public_board;
mod returning;
mod schedule;
mod script;
mod sessions;
mod settings;
mod snapshots;
mod windows;
