//! The disk by itself: append 4 KiB, fdatasync, again and again.
//!
//! Every durable acknowledgement waits for one of these, so the journal's figures are read
//! beside them. The file grows with each write, as a journal's does.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::failure::{OrFail, Outcome};

use super::Scale;
use super::data::DataFolder;
use super::report::Figure;

const WRITE_BYTES: usize = 4096;

pub fn run(scale: Scale) -> Outcome<Vec<Figure>> {
    let folder = DataFolder::new("disk")?;
    let probe = SyncProbe::measure(folder.path(), scale)?;
    Ok(vec![
        Figure::alone("fdatasync_p50_ms", probe.p50.as_secs_f64() * 1e3, "ms"),
        Figure::alone("fdatasync_p99_ms", probe.p99.as_secs_f64() * 1e3, "ms"),
        Figure::alone("fdatasync_longest_ms", probe.longest.as_secs_f64() * 1e3, "ms"),
        Figure::alone("fdatasyncs_per_s", probe.per_second, "1/s"),
    ])
}

/// How long a write of 4 KiB with its fdatasync takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SyncProbe {
    pub p50: Duration,
    pub p99: Duration,
    pub longest: Duration,
    pub per_second: f64,
}

impl SyncProbe {
    pub fn measure(folder: &Path, scale: Scale) -> Outcome<Self> {
        // At the 0.2 ms of an ordinary disk this is under a second; a slow one of 10 ms
        // needs half a minute for the full probe.
        let rounds = match scale {
            Scale::Full => 3_000,
            Scale::Quick => 500,
        };
        let mut one = OneSync::create(&folder.join("sync-probe"))?;
        let mut times = Vec::with_capacity(rounds);
        let began = Instant::now();
        for _ in 0..rounds {
            times.push(one.time()?);
        }
        let per_second = rounds as f64 / began.elapsed().as_secs_f64();
        times.sort_unstable();
        Ok(Self {
            p50: percentile(&times, 50),
            p99: percentile(&times, 99),
            longest: percentile(&times, 100),
            per_second,
        })
    }
}

/// A file that grows by 4 KiB at a time, each made durable.
#[derive(Debug)]
pub struct OneSync {
    file: File,
    path: PathBuf,
}

impl OneSync {
    pub fn create(path: &Path) -> Outcome<Self> {
        let file = File::create(path).or_fail(|| format!("create {}", path.display()))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// How long the next one takes.
    pub fn time(&mut self) -> Outcome<Duration> {
        let began = Instant::now();
        let written = self.file.write_all(&[0x5a; WRITE_BYTES]);
        let synced = written.and_then(|()| self.file.sync_data());
        synced.or_fail(|| format!("write {}", self.path.display()))?;
        Ok(began.elapsed())
    }
}

/// The smallest time that at least `percent` of all times do not exceed.
pub fn percentile<T: Copy>(sorted: &[T], percent: usize) -> T {
    sorted[percentile_index(sorted.len(), percent)]
}

/// Where that one lies among `count` sorted ones.
pub fn percentile_index(count: usize, percent: usize) -> usize {
    (count * percent).div_ceil(100).max(1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_times_and_counts_from_the_bottom() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 50), Duration::from_millis(100));
        assert_eq!(percentile(&times, 99), Duration::from_millis(198));
        assert_eq!(percentile(&times, 100), Duration::from_millis(200));
        assert_eq!(percentile(&times[..1], 50), Duration::from_millis(1));
    }
}
