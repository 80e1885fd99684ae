//! The draw: the published permutation and nothing else, and a proof that cannot be bent.

use proptest::prelude::*;
use serde_json::Value;
use waitroom_core::draw::{
    Assurance, Format, LaneCount, Proof, ProofError, commitment, final_key, lane_key, window_key,
};
use waitroom_core::permutation::{N_MAX, Permutation};

#[test]
fn commitments_and_keys_are_those_of_the_second_implementation() {
    let vectors = vectors();
    for vector in list(&vectors, "commitments") {
        assert_eq!(text_of(&commitment(&bytes(vector, "seed"))), vector["commitment"], "{vector}");
    }
    for vector in list(&vectors, "final_keys") {
        let counts: Vec<LaneCount> =
            serde_json::from_value(vector["counts"].clone()).expect("counts");
        let beacon = vector["beacon"].as_str().map(bytes_of);
        let key = final_key(
            &bytes(vector, "seed"),
            &counts,
            &bytes(vector, "chain_hash"),
            beacon.as_deref(),
        );
        assert_eq!(text_of(&key), vector["final_key"], "{vector}");
    }
    for vector in list(&vectors, "lane_keys") {
        let key = lane_key(&bytes(vector, "final_key"), number(vector, "lane") as u8);
        assert_eq!(text_of(&key), vector["lane_key"], "{vector}");
    }
    for vector in list(&vectors, "window_keys") {
        let lane = number(vector, "lane") as u8;
        let key = window_key(&bytes(vector, "seed"), lane, number(vector, "start"));
        assert_eq!(text_of(&key), vector["window_key"], "{vector}");
    }
}

#[test]
fn every_place_is_that_of_the_second_implementation() {
    for vector in list(&vectors(), "permutations") {
        let n = number(vector, "n");
        let order = Permutation::new(bytes(vector, "key"), n);
        let expected: Vec<(u64, u64)> = match vector["all"].as_array() {
            Some(all) => (0..).zip(all.iter().map(|v| v.as_u64().expect("a place"))).collect(),
            None => serde_json::from_value(vector["some"].clone()).expect("pairs"),
        };
        assert!(expected.len() as u64 >= n.min(10), "n = {n}");
        for (number, place) in expected {
            assert_eq!(order.forward(number), place, "number {number} of {n}");
            assert_eq!(order.inverse(place), number, "place {place} of {n}");
        }
    }
}

#[test]
fn the_worked_example_in_the_document_is_true() {
    let document = include_str!("../../../docs/draw.md");
    let says = |line: String| assert!(document.contains(&format!("    {line}\n")), "{line}");
    let given = |name: &str| {
        let line = document.lines().find(|line| line.trim_start().starts_with(name));
        bytes_of(line.expect(name).rsplit(' ').next().expect("a value"))
    };
    let seed = given("seed ").try_into().expect("32 bytes");
    let counts = [LaneCount { lane: 0, count: 5 }, LaneCount { lane: 1, count: 2000 }];
    let chain_hash = given("chain hash  ").try_into().expect("32 bytes");
    let key = final_key(&seed, &counts, &chain_hash, Some(&given("beacon value ")));
    says(format!("commitment    {}", text_of(&commitment(&seed))));
    says(format!("final key     {}", text_of(&key)));
    for LaneCount { lane, count } in counts {
        let lane_key = lane_key(&key, lane);
        says(format!("lane key {lane}    {}", text_of(&lane_key)));
        let order = Permutation::new(lane_key, count);
        let places: Vec<String> = (0..count.min(6)).map(|i| order.forward(i).to_string()).collect();
        says(format!("lane {lane}        {}", places.join(" ")));
    }
}

#[test]
fn a_good_proof_shows_every_place_and_how_much_it_proves() {
    for vector in list(&vectors(), "proofs_good") {
        let proof = Proof::from_json(&vector["proof"].to_string()).expect("readable");
        let verified = proof.check().unwrap_or_else(|error| panic!("{error}: {vector}"));
        assert_eq!(verified.assurance().word(), vector["assurance"], "{vector}");
        assert_eq!(verified.counts().collect::<Vec<_>>(), proof.counts);
        for place in list(vector, "orders") {
            let (lane, number) = (number(place, "lane") as u8, number(place, "number"));
            let order = place["order"].as_u64();
            assert_eq!(verified.order_of(lane, number), order, "{place} {vector}");
            assert_eq!(proof.order_of(lane, number), Ok(order), "{place} {vector}");
            match order {
                Some(order) => assert_eq!(verified.number_at(lane, order), Some(number)),
                // A number beyond the lane's count: no place there either.
                None => assert_eq!(verified.number_at(lane, number), None),
            }
        }
        assert_eq!(Proof::from_json(&proof.to_json()), Ok(proof));
    }
}

#[test]
fn a_bent_proof_is_refused_with_the_reason() {
    for vector in list(&vectors(), "proofs_bad") {
        let error = Proof::from_json(&vector["proof"].to_string())
            .and_then(|proof| proof.check())
            .expect_err(&format!("accepted: {vector}"));
        assert_eq!(error.code(), vector["error"], "{error}: {vector}");
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn a_proof_that_says_a_thing_twice_is_refused() {
    let text = example().to_json().replace("\"seed\"", "\"room\": \"other\", \"seed\"");
    let refused = Proof::from_json(&text);
    assert!(matches!(refused, Err(ProofError::Unreadable { .. })), "{refused:?}");
}

#[test]
fn a_proof_reads_as_documented() {
    let expected = "{
  \"format\": \"waitroom-draw-1\",
  \"room\": \"spring-sale\",
  \"commitment\": \"COMMITMENT\",
  \"beacon_round\": \"drand/quicknet/13335\",
  \"counts\": [
    {
      \"lane\": 0,
      \"count\": 10
    },
    {
      \"lane\": 1,
      \"count\": 2000
    }
  ],
  \"chain_hash\": \"0808080808080808080808080808080808080808080808080808080808080808\",
  \"seed\": \"0707070707070707070707070707070707070707070707070707070707070707\",
  \"beacon_value\": \"090909\",
  \"final_key\": \"FINAL\"
}";
    let proof = example();
    let expected = expected
        .replace("COMMITMENT", &text_of(&proof.commitment))
        .replace("FINAL", &text_of(&proof.final_key));
    assert_eq!(proof.to_json(), expected);
}

#[test]
fn the_same_facts_in_two_spellings_are_our_own_mistake() {
    for lanes in [[1, 0], [0, 0]] {
        let counts = lanes.map(|lane| LaneCount { lane, count: 1 });
        let key = std::panic::catch_unwind(|| final_key(&[0; 32], &counts, &[0; 32], None));
        assert!(key.is_err(), "lanes {lanes:?}");
    }
}

#[test]
fn errors_tell_a_reader_what_to_think() {
    assert_eq!(
        ProofError::TooMany { lane: 3, count: N_MAX + 1 }.to_string(),
        "lane 3 cannot have 1099511627777 people: 1099511627776 is the most"
    );
    assert_eq!(
        ProofError::BeaconUnannounced.to_string(),
        "a beacon value was used, but no beacon round was named at the opening: \
         it may have been picked afterwards"
    );
    assert_eq!(
        ProofError::FinalKeyMismatch { computed: [0xab; 32] }.to_string(),
        format!(
            "seed, counts, chain hash and beacon give the final key {}, not the published one",
            "ab".repeat(32)
        )
    );
}

proptest! {
    #[test]
    fn what_a_room_draws_its_proof_proves(
        seed in any::<[u8; 32]>(),
        chain_hash in any::<[u8; 32]>(),
        lanes in prop::collection::btree_map(any::<u8>(), 0..5_000u64, 0..4),
        beacon in prop::option::of(prop::collection::vec(any::<u8>(), 1..100)),
    ) {
        let counts: Vec<LaneCount> =
            lanes.into_iter().map(|(lane, count)| LaneCount { lane, count }).collect();
        let proof = proof_of(seed, counts, chain_hash, beacon.clone());
        let verified = Proof::from_json(&proof.to_json()).expect("readable").check().expect("good");
        let expected =
            if beacon.is_some() { Assurance::Verifiable } else { Assurance::Committed };
        prop_assert_eq!(verified.assurance(), expected);
        for &LaneCount { lane, count } in &proof.counts {
            let order = Permutation::new(lane_key(&proof.final_key, lane), count);
            for number in 0..count.min(50) {
                prop_assert_eq!(verified.order_of(lane, number), Some(order.forward(number)));
            }
        }
    }

    /// One hexadecimal digit anywhere in the proof, changed to another.
    #[test]
    fn no_digit_of_a_proof_can_be_changed(at in 0..4usize * 64 + 6, by in 1..16u32) {
        let mut proof = example();
        let Proof { commitment, chain_hash, seed, final_key, beacon_value, .. } = &mut proof;
        let beacon = beacon_value.as_mut().expect("the example has a beacon");
        let mut all: Vec<&mut u8> =
            commitment.iter_mut().chain(chain_hash).chain(seed).chain(final_key).chain(beacon).collect();
        *all[at / 2] ^= (by << (4 * (at % 2))) as u8;
        prop_assert!(proof.check().is_err());
    }

    #[test]
    fn no_text_whatever_makes_the_reader_panic(text in any::<String>()) {
        let _ = Proof::from_json(&text).and_then(|proof| proof.check());
    }

    #[test]
    fn windows_lanes_and_starts_have_keys_of_their_own(
        seed in any::<[u8; 16]>(),
        a in (any::<u8>(), any::<u64>()),
        b in (any::<u8>(), any::<u64>()),
    ) {
        prop_assume!(a != b);
        prop_assert_ne!(window_key(&seed, a.0, a.1), window_key(&seed, b.0, b.1));
    }
}

fn example() -> Proof {
    let counts = vec![LaneCount { lane: 0, count: 10 }, LaneCount { lane: 1, count: 2000 }];
    proof_of([7; 32], counts, [8; 32], Some(vec![9; 3]))
}

fn proof_of(
    seed: [u8; 32],
    counts: Vec<LaneCount>,
    chain_hash: [u8; 32],
    beacon_value: Option<Vec<u8>>,
) -> Proof {
    Proof {
        format: Format::V1,
        room: "spring-sale".into(),
        commitment: commitment(&seed),
        beacon_round: beacon_value.as_ref().map(|_| "drand/quicknet/13335".into()),
        final_key: final_key(&seed, &counts, &chain_hash, beacon_value.as_deref()),
        counts,
        chain_hash,
        seed,
        beacon_value,
    }
}

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../docs/vectors/draw.json")).expect("JSON")
}

fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    let list = of[name].as_array().expect("a list");
    assert!(!list.is_empty(), "{name} is empty");
    list
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().expect("a number")
}

fn bytes<const N: usize>(of: &Value, name: &str) -> [u8; N] {
    bytes_of(of[name].as_str().expect("a text")).try_into().expect("the right length")
}

fn bytes_of(text: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digits).collect()
}

fn text_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
