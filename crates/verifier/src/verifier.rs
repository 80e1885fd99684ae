//! The verifier: keys, rules, and the order in which a pass is looked at.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::{Alg, Binding, KeySet, Pass, Presented, Refused, WrongKeys, jws::Outside, low_s};

/// The `typ` of a pass.
pub const TYP: &str = "JWT";

/// How far in the future `iat` may lie. A pass from a server whose clock is ahead is still a
/// pass; this only keeps nonsense out, `exp` is what ends it.
const ISSUED_AHEAD_MAX_S: u64 = 300;

/// Keys that are replaced while others read. Clones share them: one `update` reaches all.
#[derive(Clone, Debug)]
pub struct Keys(Arc<ArcSwap<KeySet>>);

impl Keys {
    pub fn new(set: KeySet) -> Self {
        Keys(Arc::new(ArcSwap::from_pointee(set)))
    }

    /// From now on these. Readers never wait; a check under way ends with the old ones.
    pub fn replace(&self, set: KeySet) {
        self.0.store(Arc::new(set));
    }

    pub fn now(&self) -> Arc<KeySet> {
        self.0.load_full()
    }
}

/// What a verifier asks of a pass besides a good signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    pub room: String,
    /// How long after `exp` a pass is still taken. Together with what this clock may be slow by
    /// it must stay within the room's `pass_leeway`, because the slot is free after that.
    pub leeway_s: u64,
    /// Bindings whose value this verifier can never see, such as a cookie of another host.
    /// They are left to whoever can.
    pub unseen: Unseen,
}

/// Which bindings are not this verifier's to check. None, unless said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    pub nonce: bool,
    pub ip: bool,
    pub user_agent: bool,
}

impl Rules {
    /// No leeway: between clocks that are kept, `exp` is `exp`.
    pub fn of_room(room: &str) -> Self {
        Rules { room: room.to_owned(), leeway_s: 0, unseen: Unseen::default() }
    }

    pub fn leeway_s(mut self, leeway_s: u64) -> Self {
        self.leeway_s = leeway_s;
        self
    }

    pub fn unseen(mut self, unseen: Unseen) -> Self {
        self.unseen = unseen;
        self
    }
}

/// Checks passes of one room.
#[derive(Clone, Debug)]
pub struct Verifier {
    keys: Keys,
    rules: Rules,
}

impl Verifier {
    /// `jwks_json` is the document of `/.well-known/jwks.json`.
    pub fn new(jwks_json: &str, room: &str) -> Result<Self, WrongKeys> {
        let keys = Keys::new(KeySet::parse(jwks_json)?);
        Ok(Self::with(keys, Rules::of_room(room)))
    }

    pub fn with(keys: Keys, rules: Rules) -> Self {
        Verifier { keys, rules }
    }

    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Takes a newly fetched document. If it is broken, the keys stay as they were: yesterday's
    /// keys are better than none.
    pub fn update(&self, jwks_json: &str) -> Result<(), WrongKeys> {
        self.keys.replace(KeySet::parse(jwks_json)?);
        Ok(())
    }

    /// Whether `pass` lets this request in, at `now_unix_s`.
    ///
    /// From cheap to dear, and nothing of the payload is read before the signature is known to
    /// be good. The header only ever *names* a key; the key says which algorithm it is for.
    pub fn verify(
        &self,
        pass: &str,
        now_unix_s: u64,
        presented: &Presented<'_>,
    ) -> Result<Pass, Refused> {
        let outside = Outside::read(pass)?;
        if outside.header.typ.as_deref() != Some(TYP) {
            return Err(Refused::TypeWrong);
        }
        let kid = outside.header.kid.as_deref().ok_or(Refused::KeyUnknown)?;
        let keys = self.keys.0.load();
        let key = keys.get(kid).ok_or(Refused::KeyUnknown)?;
        if outside.header.alg != key.alg().name() {
            return Err(Refused::AlgWrong);
        }
        let one_spelling = key.alg() != Alg::Es256 || low_s::is_low(&outside.signature);
        if !one_spelling || !key.verifies(outside.signed, &outside.signature) {
            return Err(Refused::SignatureWrong);
        }
        let pass = Pass::read(&outside.payload()?)?;
        self.in_force(&pass, now_unix_s)?;
        self.bound_here(&pass, presented)?;
        Ok(pass)
    }

    fn in_force(&self, pass: &Pass, now: u64) -> Result<(), Refused> {
        if pass.room != self.rules.room {
            return Err(Refused::RoomOther);
        }
        if pass.issued_at > now.saturating_add(ISSUED_AHEAD_MAX_S) {
            return Err(Refused::NotYet);
        }
        // `exp` is the first second in which the pass is over.
        if now >= pass.expires_at.saturating_add(self.rules.leeway_s) {
            return Err(Refused::Expired);
        }
        Ok(())
    }

    fn bound_here(&self, pass: &Pass, presented: &Presented<'_>) -> Result<(), Refused> {
        let unseen = self.rules.unseen;
        let bound = &pass.binding;
        let ours = Binding {
            nonce: bound.nonce.clone().filter(|_| !unseen.nonce),
            ip: bound.ip.clone().filter(|_| !unseen.ip),
            ip_bits: bound.ip_bits,
            ua: bound.ua.clone().filter(|_| !unseen.user_agent),
        };
        ours.check(&pass.ticket, presented)
    }
}
