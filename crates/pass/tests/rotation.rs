//! Rotation denies nobody: whatever the order of signing, rotating, restarting and fetching.
//!
//! Two instances share keys, the second hears of a new one late; clients fetch the key set from
//! either, each at its own pace; every living pass is shown to everybody all the time. Time is
//! a number.

use proptest::prelude::*;
use waitroom_core::{Session, Timestamp, id::TicketId};
use waitroom_pass::{
    Alg, PassClaims, Passes, Presented, Refused, Rotation, Rules, SigningKey, StoredKey, Verifier,
};

const START: u64 = 1_790_000_000;
const HEARS_AFTER_MAX_S: u64 = 5;
const LIFE_MAX_S: u64 = 40;
const LEEWAY_S: u64 = 3;
const ROTATION: Rotation =
    Rotation { publish_for_s: 20, pass_life_max_s: LIFE_MAX_S, leeway_s: LEEWAY_S };

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Sign { by: usize, life_s: u64 },
    Rotate { alg: Alg, heard_after_s: u64 },
    Restart(usize),
}

#[derive(Clone, Debug)]
struct Fetches {
    every_s: u64,
    first_after_s: u64,
    from: usize,
}

struct Client {
    verifier: Verifier,
    fetches: Fetches,
}

struct World {
    now: u64,
    rotation: Rotation,
    instances: [Passes; 2],
    /// What the second instance has not heard of yet, and when it will.
    on_the_way: Vec<(u64, StoredKey)>,
    clients: Vec<Client>,
    passes: Vec<(String, u64)>,
}

impl World {
    fn new(rotation: Rotation, clients: &[Fetches]) -> Self {
        let first = Passes::generate(Alg::EdDsa, rotation, START);
        let second = load(&first.stored(), rotation, START);
        let client = |fetches: &Fetches| Client {
            verifier: Verifier::new(&first.jwks(), "sale").expect("a key set").with_rules(rules()),
            fetches: fetches.clone(),
        };
        let clients = clients.iter().map(client).collect();
        let instances = [first, second];
        World { now: START, rotation, instances, on_the_way: vec![], clients, passes: vec![] }
    }

    fn step(&mut self, step: &Step) -> Result<(), Refused> {
        match step {
            Step::Wait(seconds) => {
                for _ in 0..*seconds {
                    self.second()?;
                }
            }
            Step::Sign { by, life_s } => {
                let expires_s = self.now + life_s;
                let pass = self.instances[*by].sign(&claims(self.now, expires_s));
                self.passes.push((pass, expires_s));
            }
            Step::Rotate { alg, heard_after_s } => {
                let before = self.instances[0].stored();
                // Refused when there are too many keys, which is as good.
                let _ = self.instances[0].rotate(SigningKey::generate(*alg), self.now);
                let new = self.instances[0].stored().into_iter().find(|key| !before.contains(key));
                self.on_the_way.extend(new.map(|key| (self.now + heard_after_s, key)));
            }
            Step::Restart(which) => {
                let stored = self.instances[*which].stored();
                self.instances[*which] = load(&stored, self.rotation, self.now);
            }
        }
        self.everybody_is_let_in()
    }

    fn second(&mut self) -> Result<(), Refused> {
        self.now += 1;
        for (due, key) in &self.on_the_way {
            if *due <= self.now {
                let _ = self.instances[1].adopt(key, self.now);
            }
        }
        let now = self.now;
        self.on_the_way.retain(|(due, _)| *due > now);
        for instance in &self.instances {
            instance.advance(self.now);
        }
        for client in &self.clients {
            let since = (self.now - START).checked_sub(client.fetches.first_after_s);
            if since.is_some_and(|since| since % client.fetches.every_s == 0) {
                let jwks = self.instances[client.fetches.from].jwks();
                client.verifier.update(&jwks).expect("a key set");
            }
        }
        self.everybody_is_let_in()
    }

    fn everybody_is_let_in(&mut self) -> Result<(), Refused> {
        let now = self.now;
        self.passes.retain(|(_, exp)| now < exp + LEEWAY_S);
        for (pass, _) in &self.passes {
            let shown = |verifier: &Verifier| verifier.verify(pass, now, &Presented::default());
            for client in &self.clients {
                shown(&client.verifier)?;
            }
            for instance in &self.instances {
                shown(&instance.verifier("sale").with_rules(rules()))?;
            }
        }
        Ok(())
    }
}

fn claims(issued_s: u64, expires_s: u64) -> PassClaims {
    let session = Session {
        issued_at: Timestamp(issued_s * 1000),
        expires_at: Timestamp(expires_s * 1000),
        pass_expires_at: Timestamp(expires_s * 1000),
    };
    PassClaims::of(TicketId::from_bytes([7; 16]), "sale", &session)
}

fn rules() -> Rules {
    Rules::of_room("sale").leeway_s(LEEWAY_S)
}

fn load(stored: &[StoredKey], rotation: Rotation, now: u64) -> Passes {
    Passes::load(stored, rotation, now).expect("our own keys").expect("at least one")
}

fn run(rotation: Rotation, clients: &[Fetches], steps: &[Step]) -> Result<(), Refused> {
    let mut world = World::new(rotation, clients);
    steps.iter().try_for_each(|step| world.step(step))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let alg = prop_oneof![Just(Alg::EdDsa), Just(Alg::Es256)];
    let step = prop_oneof![
        4 => (0..15u64).prop_map(Step::Wait),
        4 => (0..2usize, 1..=LIFE_MAX_S).prop_map(|(by, life_s)| Step::Sign { by, life_s }),
        2 => (alg, 0..=HEARS_AFTER_MAX_S)
            .prop_map(|(alg, heard_after_s)| Step::Rotate { alg, heard_after_s }),
        1 => (0..2usize).prop_map(Step::Restart),
    ];
    prop::collection::vec(step, 1..60)
}

/// Whoever fetches more often than `publish_for`, less what instances may lag behind.
fn clients() -> impl Strategy<Value = Vec<Fetches>> {
    let often = ROTATION.publish_for_s - HEARS_AFTER_MAX_S;
    let client = (1..often, 0..often, 0..2usize)
        .prop_map(|(every_s, first_after_s, from)| Fetches { every_s, first_after_s, from });
    prop::collection::vec(client, 2)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_things_denies_a_living_pass(clients in clients(), steps in steps()) {
        prop_assert_eq!(run(ROTATION, &clients, &steps), Ok(()));
    }
}

const SLOW: Fetches = Fetches { every_s: 30, first_after_s: 1, from: 0 };
const QUICK: Fetches = Fetches { every_s: 1, first_after_s: 0, from: 0 };

fn a_rotation() -> Vec<Step> {
    let rotate = Step::Rotate { alg: Alg::EdDsa, heard_after_s: 0 };
    let sign = Step::Sign { by: 0, life_s: LIFE_MAX_S };
    vec![Step::Wait(2), rotate, Step::Wait(19), sign.clone(), Step::Wait(2), sign, Step::Wait(80)]
}

/// The test above can see what it looks for: a key that signs before a slow client can know it.
#[test]
fn a_client_that_fetches_too_rarely_is_seen_to_be_denied() {
    assert_eq!(run(ROTATION, &[SLOW], &a_rotation()), Err(Refused::KeyUnknown));
    assert_eq!(run(ROTATION, &[QUICK], &a_rotation()), Ok(()));
}

/// And a key that goes before its passes do.
#[test]
fn a_key_withdrawn_too_early_is_seen_to_deny() {
    // After a restart nobody remembers what was signed, so only `pass_life_max` protects it.
    let hasty = Rotation { pass_life_max_s: 0, leeway_s: 0, ..ROTATION };
    let mut steps = a_rotation();
    let long = Step::Sign { by: 0, life_s: 200 };
    steps.splice(3..6, [long, Step::Restart(0), Step::Wait(3)]);
    assert_eq!(run(hasty, &[QUICK], &steps), Err(Refused::KeyUnknown));
}

/// Signers and verifiers run on while keys come: our own verifiers never meet a stranger.
#[test]
fn rotation_under_load_denies_nobody() {
    let at_once = Rotation { publish_for_s: 0, ..ROTATION };
    for _ in 0..10 {
        let passes = Passes::generate(Alg::EdDsa, at_once, START);
        let verifier = passes.verifier("sale");
        std::thread::scope(|scope| {
            let busy = || {
                for _ in 0..100 {
                    let pass = passes.sign(&claims(START, START + 10));
                    let read = verifier.verify(&pass, START, &Presented::default());
                    assert_eq!(read.err(), None);
                }
            };
            scope.spawn(busy);
            scope.spawn(busy);
            for now in START..START + 15 {
                passes.rotate(SigningKey::generate(Alg::EdDsa), now).expect("room for another");
                assert_eq!(
                    verifier
                        .verify(
                            &passes.sign(&claims(START, START + 10)),
                            START,
                            &Presented::default()
                        )
                        .err(),
                    None
                );
            }
        });
    }
}
