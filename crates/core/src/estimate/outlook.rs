//! What a room can tell its visitors of their waits until it knows better.
//!
//! Lives here: the answer. It is made of the newest projection and of what the calibration has
//! learned so far, both immutable, so that any thread may ask while the room goes on learning.
//! Stays out: learning, and the line itself: whoever asks knows how many are before them.

use super::calibration::Voice;
use super::projection::Projection;
use super::settings::Doors;
use super::{Interval, Unknown};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Outlook {
    doors: Doors,
    projection: Arc<Projection>,
    /// By lane, in the order of the projection's rows.
    voices: Vec<(u8, Voice)>,
}

impl Outlook {
    /// Of a room that has learned nothing: it can say that its doors are shut, and no more.
    pub fn unknown(doors: Doors) -> Outlook {
        Outlook { doors, projection: Arc::default(), voices: Vec::new() }
    }

    pub(super) fn new(
        doors: Doors,
        projection: Arc<Projection>,
        voices: Vec<(u8, Voice)>,
    ) -> Outlook {
        Outlook { doors, projection, voices }
    }

    /// The wait of somebody in `lane` with `ahead` people before them.
    pub fn estimate(&self, ahead: u64, lane: u8) -> Result<Interval, Unknown> {
        let voices = self.voices.iter().map(|(lane, voice)| (*lane, voice));
        estimate(self.doors, &self.projection, voices, ahead, lane)
    }
}

/// The one way from a place in line to an interval, for the estimator and for its outlook.
pub(super) fn estimate<'a>(
    doors: Doors,
    projection: &Projection,
    mut voices: impl Iterator<Item = (u8, &'a Voice)>,
    ahead: u64,
    lane: u8,
) -> Result<Interval, Unknown> {
    match doors {
        Doors::Open => {}
        Doors::NotStarted => return Err(Unknown::NotStarted),
        Doors::Paused => return Err(Unknown::Paused),
        Doors::Closed => return Err(Unknown::Closed),
    }
    let mut row = 0;
    let (_, voice) = voices
        .find(|(known, _)| {
            *known == lane || {
                row += 1;
                false
            }
        })
        .ok_or(Unknown::NoData)?;
    voice.interval(projection.wait(ahead, row)?)
}
