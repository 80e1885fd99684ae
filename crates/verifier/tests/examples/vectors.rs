//! What an example said of each pass in `docs/vectors/passes.json`, held against the file.

use serde_json::Value;

use crate::Known;

pub const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/vectors/passes.json");

/// `said` has a line for each pass, first the good ones: `accepted`, or why not.
pub fn judge(said: &str, known: &Known) {
    let text = std::fs::read_to_string(PATH).expect("the vectors are in the tree");
    let vectors: Value = serde_json::from_str(&text).expect("JSON");
    let list = |name: &str| vectors[name].as_array().expect("a list").clone();
    let all: Vec<Value> = [list("good"), list("refused")].concat();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), all.len(), "a line for each vector:\n{said}");
    let wrong: Vec<String> = all
        .iter()
        .zip(&lines)
        .filter_map(|(vector, got)| {
            let word = |name: &str| vector[name].as_str().unwrap_or_default();
            let wanted = wanted(word("why"), word("alg"), word("code"), known);
            let fits = wanted.iter().any(|it| it == got);
            (!fits).then(|| format!("{} {}: {got}, not {wanted:?}", word("alg"), word("why")))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The words that will do for one vector.
fn wanted<'a>(why: &str, alg: &str, code: &'a str, known: &Known) -> Vec<&'a str> {
    if known.accepts.contains(&why) && (known.eddsa || alg != "EdDSA") {
        return vec!["accepted"];
    }
    let mut words = match code {
        "" => vec!["accepted"],
        // Libraries look for a key of this `kid` and this `alg`, and find none.
        "alg_wrong" => vec![code, "key_unknown"],
        // By a name that is there twice, some are stopped a step later.
        "malformed" => vec![code, "signature_wrong"],
        _ => vec![code],
    };
    let signed_as_eddsa = alg == "EdDSA" || why == "the kid and alg of another published key";
    if !known.eddsa && signed_as_eddsa {
        // Whatever else is wrong with it, there is no key for it here. Never accepted.
        words.retain(|it| *it != "accepted");
        words.push("key_unknown");
    }
    words
}
