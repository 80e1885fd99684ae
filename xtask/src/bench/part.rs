//! A part of a benchmark in a process of its own.
//!
//! Memory is only told apart, and a process only cold, in a fresh process. So the benchmark
//! starts its own program again with a hidden argument: the words of the part. The part answers
//! with its measures as one line of JSON on stdout.

use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::report::Measure;
use crate::failure::{Failure, OrFail, Outcome};

/// What a part found out.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Part {
    pub measures: Vec<Measure>,
    /// The room's digest, where two processes must agree on one.
    pub digest: Option<String>,
}

impl Part {
    pub fn of(measures: Vec<Measure>) -> Self {
        Self { measures, digest: None }
    }

    /// Runs a part of `bench NAME` in a fresh process.
    pub fn run(name: &str, words: &str) -> Outcome<Self> {
        let attempt = || format!("run the part {words:?} of bench {name}");
        let program = std::env::current_exe().or_fail(attempt)?;
        let output = Command::new(program)
            .args([name, "--part", words])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .or_fail(attempt)?;
        if !output.status.success() {
            return Err(Failure::new(format!("the part {words:?} failed")));
        }
        serde_json::from_slice(&output.stdout).or_fail(attempt)
    }

    /// A measure of this part by its name.
    pub fn value(&self, name: &str) -> Outcome<f64> {
        let found = self.measures.iter().find(|measure| measure.name == name);
        found
            .map(|measure| measure.value)
            .ok_or_else(|| Failure::new(format!("a part did not measure {name}")))
    }
}

/// Says what was measured, to the process that asked.
pub fn answer(part: Part) -> Outcome {
    println!("{}", serde_json::to_string(&part).expect("plain fields make plain JSON"));
    Ok(())
}
