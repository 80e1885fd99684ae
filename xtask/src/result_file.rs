//! Results of long jobs: `results/NAME-<commit>.json`, with the machine they ran on.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::commit::commit;
use crate::failure::{OrFail, Outcome};
use crate::machine::Machine;
use crate::shell::root;

/// What became of a long job.
#[derive(Debug, Clone, Serialize)]
pub struct ResultFile {
    pub name: String,
    pub commit: String,
    pub machine: Machine,
    pub command: String,
    /// Seconds since 1970, UTC.
    pub ended_at: u64,
    pub seconds: f64,
    pub passed: bool,
    /// The last lines the job printed; its totals are among them.
    pub last_lines: Vec<String>,
}

impl ResultFile {
    pub fn new(name: &str, command: String, took: Duration, passed: bool) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            name: name.into(),
            commit: commit(),
            machine: Machine::this(),
            command,
            ended_at: since_1970.as_secs(),
            seconds: took.as_secs_f64(),
            passed,
            last_lines: vec![],
        }
    }

    /// Writes the file and says where.
    pub fn write(&self) -> Outcome<PathBuf> {
        let folder = root().join("results");
        fs::create_dir_all(&folder).or_fail(|| "create results/")?;
        let file = folder.join(format!("{}-{}.json", self.name, self.commit));
        let text = serde_json::to_string_pretty(self).expect("plain fields make plain JSON");
        fs::write(&file, text + "\n").or_fail(|| format!("write {}", file.display()))?;
        Ok(file)
    }
}
