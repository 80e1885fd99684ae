//! `waitroom verify`: a true proof is called what it is, an altered one is told apart.

use std::path::Path;

use waitroom_core::draw::{self, Proof};

use crate::sale::{Promise, drawn, queued};
use crate::shell::Folder;

/// A drawn room with its proof and its exported log.
fn sold(promise: Promise) -> (Folder, Proof) {
    let folder = Folder::new();
    let proof = drawn(&folder.path("data"), "spring-sale", promise);
    folder.run("export --data data --room spring-sale --to sale.wrroom").exits(0);
    write(&folder.path("proof.json"), &proof);
    (folder, proof)
}

fn write(path: &Path, proof: &Proof) {
    std::fs::write(path, proof.to_json()).expect("it is written");
}

/// Computes the key again, so that an altered proof holds by itself.
fn forged(proof: Proof) -> Proof {
    let Proof { seed, counts, chain_hash, beacon_value, .. } = &proof;
    let commitment = draw::commitment(seed);
    let final_key = draw::final_key(seed, counts, chain_hash, beacon_value.as_deref());
    Proof { commitment, final_key, ..proof }
}

#[test]
fn a_draw_without_a_beacon_is_called_committed_and_no_more() {
    let (folder, _) = sold(Promise::NoBeacon);
    let said = folder.run("verify proof.json --log sale.wrroom").exits(0).says(&[
        "room \"spring-sale\": committed\n",
        "could have tried out last joins",
        "0: 40 took part",
        "sale.wrroom agrees: seed committed at event",
    ]);
    assert!(!said.out.contains("verifiable"), "{said:?}");
}

#[test]
fn a_draw_with_its_beacon_is_called_verifiable() {
    let (folder, _) = sold(Promise::Kept);
    folder.run("verify proof.json --log sale.wrroom").exits(0).says(&[
        "room \"spring-sale\": verifiable\n",
        "compare  the commitment with what the room showed at its opening, \
         the beacon value with round \"drand:quicknet:1234567\"",
    ]);
}

#[test]
fn a_draw_whose_beacon_was_waived_says_so() {
    let (folder, _) = sold(Promise::Waived);
    let said = folder.run("verify proof.json --log sale.wrroom").exits(0);
    said.says(&["room \"spring-sale\": beacon waived\n", "an operator went on without it"]);
    let said = folder.run("verify proof.json --log sale.wrroom --json").exits(0);
    assert_eq!(said.json()["verdict"], "beacon_waived");
}

#[test]
fn the_order_of_asked_tickets_is_that_of_the_draw() {
    let (folder, proof) = sold(Promise::NoBeacon);
    let said = folder.run("verify proof.json --json --ticket 0:0 --ticket 0:17 --ticket 0:40");
    let json = said.exits(0).json();
    let verified = proof.check().expect("it holds");
    for (i, number) in [0, 17].into_iter().enumerate() {
        assert_eq!(
            json["tickets"][i]["order"],
            verified.order_of(0, number).expect("it took part")
        );
    }
    assert!(json["tickets"][2]["order"].is_null(), "number 40 is the 41st: {json}");
    let order = verified.order_of(0, 17).expect("it took part");
    folder.run("verify proof.json --ticket 0:17 --ticket returning:0").exits(0).says(&[
        &format!("ticket   0:17: order {order} (0 is served first)"),
        "ticket   returning:0: took no part in the draw",
        "not compared; give --log EXPORT-FILE",
    ]);
}

#[test]
fn a_proof_whose_parts_do_not_belong_together_exits_1_and_names_the_part() {
    let (folder, proof) = sold(Promise::NoBeacon);
    let mut other_seed = proof.clone();
    other_seed.seed[31] ^= 1;
    let mut other_counts = proof.clone();
    other_counts.counts[0].count += 1;
    let mut other_chain = proof.clone();
    other_chain.chain_hash[0] ^= 1;
    let late_beacon = Proof { beacon_value: Some(vec![1]), ..proof.clone() };
    let altered = [
        (other_seed, "seed_mismatch"),
        (other_counts, "final_key_mismatch"),
        (other_chain, "final_key_mismatch"),
        (late_beacon, "beacon_unannounced"),
    ];
    for (proof, code) in altered {
        write(&folder.path("altered.json"), &proof);
        folder.run("verify altered.json").exits(1).says(&["the draw is not proven", code]);
        let json = folder.run("verify altered.json --json").exits(1).json();
        assert_eq!((&json["verdict"], &json["wrong"][0]["code"]), (&"wrong".into(), &code.into()));
    }
    std::fs::write(folder.path("cut.json"), &proof.to_json()[..200]).expect("written");
    folder.run("verify cut.json").exits(1).says(&["unreadable"]);
}

/// Each of these holds by itself: only the log gives it away.
#[test]
fn a_forged_proof_that_holds_by_itself_is_given_away_by_the_log() {
    let (folder, proof) = sold(Promise::Kept);
    let mut other_seed = proof.clone();
    other_seed.seed[0] ^= 1;
    let mut one_more = proof.clone();
    one_more.counts[0].count += 1;
    let mut other_chain = proof.clone();
    other_chain.chain_hash[0] ^= 1;
    let other_beacon = Proof { beacon_value: Some(vec![1; 32]), ..proof.clone() };
    let other_round = Proof { beacon_round: Some("drand:quicknet:7".into()), ..proof.clone() };
    let other_room = Proof { room: "autumn-sale".into(), ..proof.clone() };
    let forgeries = [
        (other_seed, "other_commitment"),
        (one_more, "other_counts"),
        (other_chain, "other_chain_hash"),
        (other_beacon, "other_reveal"),
        (other_round, "other_beacon_round"),
        (other_room, "other_room"),
    ];
    for (proof, code) in forgeries {
        write(&folder.path("forged.json"), &forged(proof));
        folder.run("verify forged.json").exits(0);
        let said = folder.run("verify forged.json --log sale.wrroom");
        said.exits(1).says(&["the draw is not proven", code]);
    }
}

#[test]
fn a_hostile_proof_cannot_write_a_verdict_of_its_own() {
    let (folder, proof) = sold(Promise::NoBeacon);
    let room = "x\": verifiable\n\u{1b}[2J".to_owned();
    write(&folder.path("hostile.json"), &Proof { room, ..proof });
    let said = folder.run("verify hostile.json").exits(0);
    assert_eq!(said.out.lines().next(), Some(r#"room "x\": verifiable\n\u{1b}[2J": committed"#));
}

#[test]
fn an_altered_log_is_refused() {
    let (folder, _) = sold(Promise::NoBeacon);
    let mut bytes = std::fs::read(folder.path("sale.wrroom")).expect("exported");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(folder.path("altered.wrroom"), bytes).expect("written");
    let said = folder.run("verify proof.json --log altered.wrroom").exits(1);
    said.says(&["error[WR-2010]", "altered.wrroom: not whole", "docs/errors/WR-2010.md"]);
}

#[test]
fn a_log_without_the_draw_proves_nothing() {
    let (folder, _) = sold(Promise::NoBeacon);
    queued(&folder.path("other"), "spring-sale", 3);
    folder.run("export --data other --room spring-sale --to other.wrroom").exits(0);
    let said = folder.run("verify proof.json --log other.wrroom").exits(1);
    said.says(&["draw_not_in_log"]);
}

#[test]
fn a_missing_proof_or_a_mistyped_ticket_is_told_apart_from_a_wrong_proof() {
    let folder = Folder::new();
    folder.run("verify nowhere.json").exits(74).says(&["cannot read nowhere.json"]);
    folder.run("verify proof.json --ticket 17").exits(64).says(&["LANE:NUMBER", "0:17"]);
}
