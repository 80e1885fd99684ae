//! The machine a figure was measured on, as far as a reader needs it to judge the figure.

use std::fs;

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    pub cpu: String,
    /// Cores this process may run on, which can be fewer than the machine has.
    pub cores: usize,
    pub memory_bytes: u64,
    pub kernel: String,
}

impl Machine {
    /// Reads what Linux tells. What cannot be read is said to be unknown, or 0 bytes.
    pub fn this() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self {
            cpu: cpu_model(&read("/proc/cpuinfo")).unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes(&read("/proc/meminfo")).unwrap_or(0),
            kernel: match read("/proc/sys/kernel/osrelease").trim() {
                "" => "unknown".to_owned(),
                release => format!("Linux {release}"),
            },
        }
    }

    pub fn line(&self) -> String {
        let gib = self.memory_bytes as f64 / f64::from(1 << 30);
        format!("{}, {} cores, {gib:.1} GiB, {}", self.cpu, self.cores, self.kernel)
    }
}

fn cpu_model(cpuinfo: &str) -> Option<&str> {
    value_of(cpuinfo, "model name")
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let kib: u64 = value_of(meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The value of the first `key : value` line.
fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cpu_and_the_total_memory_are_read() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Example 9000 @ 2.5GHz\nprocessor\t: 1\n";
        assert_eq!(cpu_model(cpuinfo), Some("Example 9000 @ 2.5GHz"));
        let meminfo = "MemFree:  1 kB\nMemTotal:       2048 kB\n";
        assert_eq!(memory_bytes(meminfo), Some(2_097_152));
    }

    #[test]
    fn unreadable_facts_are_missing_rather_than_invented() {
        assert_eq!(cpu_model(""), None);
        assert_eq!(memory_bytes("MemTotal: many kB"), None);
    }
}
