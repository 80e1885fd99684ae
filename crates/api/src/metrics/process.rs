//! What the system says of this process, under the names that Prometheus' own clients use.

use std::fs;

/// Figures of `/proc/self`; none where there is no such thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Process {
    pub cpu_seconds: f64,
    pub resident_bytes: u64,
    pub threads: u64,
    pub open_files: u64,
    pub files_max: u64,
    pub started_at: f64,
}

/// Linux counts processor time in hundredths of a second for every program there is.
const TICKS_A_SECOND: f64 = 100.0;

pub(super) fn now() -> Option<Process> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let boot = fs::read_to_string("/proc/stat").ok()?;
    let open_files = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    // The name is in brackets and may hold anything; the figures follow the last one.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
    let line = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(Process {
        cpu_seconds: (number(11)? + number(12)?) / TICKS_A_SECOND,
        resident_bytes: line(&status, "VmRSS:")? * 1024,
        threads: line(&status, "Threads:")?,
        // The folder that is being read is one of them.
        open_files: open_files.saturating_sub(1),
        files_max: line(&limits, "Max open files")?,
        started_at: line(&boot, "btime ")? as f64 + number(19)? / TICKS_A_SECOND,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_figures_that_can_be() {
        let now_s = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("after 1970")
            .as_secs_f64();
        let found = now().expect("Linux has /proc");
        assert!(found.resident_bytes > 100_000 && found.threads >= 1 && found.open_files >= 3);
        assert!((now_s - 86_400.0..=now_s + 2.0).contains(&found.started_at), "{found:?}");
    }
}
