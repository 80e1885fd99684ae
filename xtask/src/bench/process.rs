//! What Linux knows of a process: the CPU time it used and the memory it holds.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::failure::{Failure, OrFail, Outcome};

/// CPU time of a process with all threads it has now, without its children.
///
/// From `schedstat`, which counts nanoseconds. The better known `stat` counts ticks of 10 ms:
/// among short rounds the luckiest rounding would win. A thread that ended takes its time with
/// it, so this suits programs with steady threads, such as a server.
pub fn cpu_of(pid: u32) -> Outcome<Duration> {
    Ok(Duration::from_nanos(Threads::of(pid)?.nanos.values().sum()))
}

/// The CPU time of each thread of a process at one moment.
///
/// Between two of them only the time of threads that ended in between is missing; the time that
/// earlier ones took with them is not counted as time running backwards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Threads {
    nanos: BTreeMap<u32, u64>,
}

impl Threads {
    pub fn of(pid: u32) -> Outcome<Self> {
        let tasks = format!("/proc/{pid}/task");
        let attempt = || format!("read {tasks}");
        let mut nanos = BTreeMap::new();
        for task in fs::read_dir(&tasks).or_fail(attempt)? {
            let task = task.or_fail(attempt)?;
            let path = task.path().join("schedstat");
            // A thread may end between the listing and the look.
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let id = task.file_name().to_string_lossy().parse();
            let id = id.or_fail(|| format!("read the name of {}", path.display()))?;
            let ran =
                on_cpu(&text).ok_or_else(|| Failure::new(format!("{tasks}: reads {text}")))?;
            nanos.insert(id, ran);
        }
        Ok(Self { nanos })
    }

    /// What these threads have used since `earlier`.
    pub fn since(&self, earlier: &Self) -> Duration {
        let used = |(id, now): (&u32, &u64)| {
            now.saturating_sub(earlier.nanos.get(id).copied().unwrap_or(0))
        };
        Duration::from_nanos(self.nanos.iter().map(used).sum())
    }
}

/// The first of three numbers: nanoseconds on a core, nanoseconds waiting for one, turns.
fn on_cpu(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

/// Bytes of memory that a process holds in RAM, the pages it shares with others included.
pub fn resident_of(pid: u32) -> Outcome<u64> {
    let path = format!("/proc/{pid}/statm");
    let statm = fs::read_to_string(&path).or_fail(|| format!("read {path}"))?;
    let pages: Option<u64> = statm.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    let pages = pages.ok_or_else(|| Failure::new(format!("{path} reads: {statm}")))?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// Bytes that this process holds in RAM now.
pub fn resident() -> Outcome<u64> {
    resident_of(std::process::id())
}

/// The most that this process ever held in RAM since it began, to within a few hundred KB:
/// the kernel keeps this number per core and adds it up lazily.
pub fn resident_peak() -> Outcome<u64> {
    const PATH: &str = "/proc/self/status";
    let status = fs::read_to_string(PATH).or_fail(|| format!("read {PATH}"))?;
    peak(&status).ok_or_else(|| Failure::new(format!("{PATH} has no VmHWM")))
}

/// From now on the peak counts from what is held now.
pub fn forget_peak() -> Outcome {
    const PATH: &str = "/proc/self/clear_refs";
    fs::write(PATH, "5").or_fail(|| format!("write {PATH}"))
}

fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_time_on_a_core_is_the_first_number() {
        assert_eq!(on_cpu("1234567 99 3\n"), Some(1_234_567));
        assert_eq!(on_cpu(""), None);
    }

    #[test]
    fn a_thread_that_ended_does_not_make_time_run_backwards() {
        let threads = |nanos: &[(u32, u64)]| Threads { nanos: nanos.iter().copied().collect() };
        let (before, after) = (threads(&[(1, 100), (2, 900)]), threads(&[(1, 150), (3, 7)]));
        assert_eq!(after.since(&before), Duration::from_nanos(57));
    }

    #[test]
    fn the_work_of_a_program_shows_in_its_time() {
        // The shell counts, says so, and then waits for us: its time is read while it stands.
        let count = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done; read x";
        let mut shell = Command::new("sh")
            .args(["-c", count])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("every machine has a shell");
        let mut said = String::new();
        let out = shell.stdout.take().expect("it was piped");
        BufReader::new(out).read_line(&mut said).expect("the shell speaks");
        let spent = cpu_of(shell.id());
        drop(shell.stdin.take());
        shell.wait().expect("the shell ends with its input");
        assert_eq!(said, "done\n");
        let spent = spent.expect("Linux tells");
        assert!(spent > Duration::from_millis(5), "{spent:?}");
    }

    #[test]
    fn memory_that_is_touched_is_resident_and_the_peak_remembers_it() {
        const BYTES: usize = 32 << 20;
        let before = resident().expect("Linux tells");
        let block = std::hint::black_box(vec![1_u8; BYTES]);
        let during = resident().expect("Linux tells");
        drop(block);
        let grown = before + BYTES as u64 / 2;
        assert!(during > grown, "{before} {during}");
        assert!(resident_peak().expect("Linux tells") > grown);
    }

    #[test]
    fn the_peak_is_read_in_bytes() {
        assert_eq!(peak("VmPeak:\t 9 kB\nVmHWM:\t  12 kB\n"), Some(12_288));
        assert_eq!(peak("VmPeak:\t 9 kB\n"), None);
    }
}
