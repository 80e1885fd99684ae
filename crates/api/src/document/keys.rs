//! Every key of a room document: how it is read into the settings and written from them.
//!
//! Lives here: the table. Stays out: what values look like (`value.rs`, `nested.rs`).

use serde_json::{Value, json};
use waitroom_core::Settings;
use waitroom_core::settings::{ClaimMode, NoShow, PublicBoardMode};

use super::value::{self, Words};
use super::{Field, looks, nested};

pub struct Key {
    pub name: &'static str,
    /// Into the settings if it can be read, else into the field's mistakes.
    pub read: fn(&mut Field<'_>, &Value, &mut Settings),
    pub write: fn(&Settings) -> Value,
}

pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

/// A key whose value stands by itself: the setting of the same name, read and written by the two
/// functions.
macro_rules! plain {
    ($name:ident, $read:expr, $write:expr) => {
        Key {
            name: stringify!($name),
            read: |field, given, settings| {
                if let Some(read) = field.take($read(given)) {
                    settings.$name = read;
                }
            },
            write: |settings| $write(&settings.$name),
        }
    };
}

/// A key whose parts can be wrong one by one.
macro_rules! nested {
    ($name:ident, $read:path, $write:path) => {
        Key {
            name: stringify!($name),
            read: |field, given, settings| {
                if let Some(read) = $read(field, given) {
                    settings.$name = read;
                }
            },
            write: |settings| $write(&settings.$name),
        }
    };
}

const CLAIM: Words<ClaimMode> =
    Words(&[("explicit", ClaimMode::Explicit), ("on_admission", ClaimMode::OnAdmission)]);
const NO_SHOW: Words<NoShow> = Words(&[("keep", NoShow::Keep), ("return", NoShow::Return)]);
const PUBLIC_BOARD: Words<PublicBoardMode> = Words(&[
    ("full", PublicBoardMode::Full),
    ("coarse", PublicBoardMode::Coarse),
    ("off", PublicBoardMode::Off),
]);

/// In the order of the core's settings.
pub const KEYS: &[Key] = &[
    plain!(title, value::text, |it: &String| json!(it)),
    plain!(target_url, value::text, |it: &String| json!(it)),
    nested!(lanes, nested::read_lanes, nested::write_lanes),
    nested!(returning, nested::read_returning, nested::write_returning),
    plain!(max_active, value::count, |it: &u64| json!(it)),
    plain!(max_waiting, value::count, |it: &u64| json!(it)),
    nested!(rate, nested::read_rate, nested::write_rate),
    plain!(burst, |given| value::or_none(given, value::small_count), |it: &Option<u32>| json!(it)),
    plain!(tick, value::span, value::span_json),
    plain!(queue_all, value::flag, |it: &bool| json!(it)),
    plain!(claim, |given| CLAIM.read(given), |it| CLAIM.write(it)),
    plain!(claim_within, value::span, value::span_json),
    plain!(session_timeout, value::span, value::span_json),
    plain!(session_renewal, value::flag, |it: &bool| json!(it)),
    plain!(pass_life, value::span, value::span_json),
    plain!(pass_leeway, value::span, value::span_json),
    plain!(heartbeat_timeout, value::span, value::span_json),
    plain!(ticket_life, value::span, value::span_json),
    plain!(memory, value::span, value::span_json),
    plain!(no_show, |given| NO_SHOW.read(given), |it| NO_SHOW.write(it)),
    plain!(opens_at, |given| value::or_none(given, value::moment), value::moment_json),
    plain!(starts_at, |given| value::or_none(given, value::moment), value::moment_json),
    plain!(ends_at, |given| value::or_none(given, value::moment), value::moment_json),
    nested!(draw, nested::read_draw, nested::write_draw),
    plain!(shuffle_window, value::small_count, |it: &u32| json!(it)),
    plain!(public_board, |given| PUBLIC_BOARD.read(given), |it| PUBLIC_BOARD.write(it)),
    plain!(keep_inside, value::flag, |it: &bool| json!(it)),
    plain!(keep_user_id, value::flag, |it: &bool| json!(it)),
    nested!(allowed_origins, nested::read_texts, nested::write_texts),
    plain!(heartbeat_interval, value::span, value::span_json),
    plain!(message, value::text, |it: &String| json!(it)),
    nested!(theme, looks::read_theme, looks::write_theme),
    nested!(template, looks::read_template, looks::write_template),
];
