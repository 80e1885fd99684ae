//! When which key signs, and when it may go.
//!
//! Nobody may meet a pass whose key he could not have known. So a key is *published* first, and
//! signs only `publish_for` later, when every copy of the key set that is in use has it; and when
//! the next one takes over it stays published until the last pass it signed is dead. All of this
//! follows from one moment that is kept with each key, when it begins to sign: instances that
//! know the same keys agree on who signs without asking each other.
//!
//! ```text
//! A  published, signs ───────────────────────┐ published until its passes are dead ┐
//! B                     published, waits ────┤ signs ─────────────────────────────────
//!                       ◀── publish_for ───▶ ◀── pass_life_max + leeway + late ───▶
//! ```

/// How much longer than needed a key stays published: an instance that was asleep may sign with
/// the old key for a moment after its time.
pub(crate) const LATE_S: u64 = 60;

/// The spans of a rotation, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// How long a key is published before it signs. Whoever caches the key set must fetch it
    /// at least this often.
    pub publish_for_s: u64,
    /// The longest life of a pass in any room.
    pub pass_life_max_s: u64,
    /// The largest leeway with which anyone may still take an expired pass.
    pub leeway_s: u64,
}

impl Default for Rotation {
    /// An hour suits the caches of common libraries (five minutes to half an hour); passes of a
    /// day cover every session that is not a mistake; the leeway is the most that a room allows.
    fn default() -> Self {
        Rotation { publish_for_s: 3_600, pass_life_max_s: 86_400, leeway_s: 300 }
    }
}

impl Rotation {
    /// How long a copy of the key set may be kept, for `Cache-Control`. A quarter of
    /// `publish_for`: one fetch may fail and one cache may stand behind another.
    pub fn jwks_max_age_s(&self) -> u64 {
        self.publish_for_s / 4
    }

    /// Which key signs now: the last one whose time has come. Should none have come, because
    /// all others were withdrawn, the first need not wait any longer.
    pub(crate) fn signer(&self, signs_from_s: &[u64], now_s: u64) -> usize {
        signs_from_s.iter().rposition(|from| *from <= now_s).unwrap_or(0)
    }

    /// Whether no pass of this key can be alive. `last_exp_s` is the latest end that was signed
    /// here; other instances are covered by `pass_life_max_s`.
    pub(crate) fn is_over(
        &self,
        signs_from_s: &[u64],
        index: usize,
        last_exp_s: u64,
        now_s: u64,
    ) -> bool {
        let Some(replaced_s) = signs_from_s.get(index + 1) else { return false };
        let others_s = replaced_s.saturating_add(self.pass_life_max_s).saturating_add(LATE_S);
        now_s >= others_s.max(last_exp_s).saturating_add(self.leeway_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROTATION: Rotation = Rotation { publish_for_s: 100, pass_life_max_s: 50, leeway_s: 5 };

    #[test]
    fn each_key_signs_from_its_time_on_and_a_lonely_one_always() {
        let signs_from = [1_000, 2_000, 2_000, 2_010];
        assert_eq!(ROTATION.signer(&signs_from, 0), 0);
        assert_eq!(ROTATION.signer(&signs_from, 1_999), 0);
        assert_eq!(ROTATION.signer(&signs_from, 2_000), 2);
        assert_eq!(ROTATION.signer(&signs_from, 2_010), 3);
    }

    #[test]
    fn an_old_key_stays_until_its_last_pass_is_dead() {
        let signs_from = [0, 1_100];
        let last = 1_100 + 50 + LATE_S + 5;
        assert!(!ROTATION.is_over(&signs_from, 0, 0, last - 1));
        assert!(ROTATION.is_over(&signs_from, 0, 0, last));
        assert!(!ROTATION.is_over(&signs_from, 0, 5_000, 5_004), "a long pass was signed here");
        assert!(ROTATION.is_over(&signs_from, 0, 5_000, 5_005));
        assert!(!ROTATION.is_over(&signs_from, 1, 0, u64::MAX), "the newest never goes");
    }
}
