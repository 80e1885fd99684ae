//! Time as a core spends it: CPU time of this thread, and which core runs whom.
//!
//! Wall time on a shared machine swings tenfold; CPU time per unit of work stays within
//! about a fifth. So work in this process is measured by its thread's CPU time, best of five:
//! the best round is the one that the neighbours disturbed least.

use std::time::Duration;

use crate::failure::{OrFail, Outcome};
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// How often a measurement is repeated.
pub const ROUNDS: usize = 5;

/// CPU time that this thread has used so far.
pub fn thread_cpu() -> Duration {
    cpu(ClockId::ThreadCPUTime)
}

/// CPU time that this process has used so far, with all threads it ever had.
pub fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).expect("nobody can use less than no time");
    let nanos = u32::try_from(time.tv_nsec).expect("the kernel keeps this below a second");
    Duration::new(seconds, nanos)
}

/// Nanoseconds of this thread's CPU time per operation, in the best of five rounds. `round` does
/// `operations` of them; what it must prepare first belongs outside, or in `prepare`.
pub fn best_ns<T>(
    operations: u64,
    mut prepare: impl FnMut() -> T,
    mut round: impl FnMut(T),
) -> f64 {
    let one = || {
        let prepared = prepare();
        let began = thread_cpu();
        round(prepared);
        (thread_cpu() - began).as_nanos() as f64 / operations as f64
    };
    std::iter::repeat_with(one).take(ROUNDS).fold(f64::INFINITY, f64::min)
}

/// Cores for a server and for its clients: two different ones where there are two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cores {
    pub server: usize,
    pub client: usize,
}

impl Cores {
    /// The first two cores that we may use; on a single core both share it.
    pub fn split() -> Outcome<Self> {
        let allowed = sched_getaffinity(None).or_fail(|| "ask which cores we may use")?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let client = cores.next().expect("we are running, so on some core");
        Ok(Self { server: cores.next().unwrap_or(client), client })
    }
}

/// Keeps a process's first thread, and threads it starts from now on, on one core.
/// `None` is the calling thread.
pub fn pin(pid: Option<Pid>, core: usize) -> Outcome {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(pid, &set).or_fail(|| format!("pin a process to core {core}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_cpu_time_and_it_never_runs_backwards() {
        let before = thread_cpu();
        let sum = (0..1_000_000_u64).fold(0, |sum: u64, n| std::hint::black_box(sum ^ n));
        std::hint::black_box(sum);
        assert!(thread_cpu() > before);
    }

    #[test]
    fn five_rounds_are_run_and_only_the_round_itself_counts() {
        let (mut prepared, mut ran) = (0, 0);
        let ns = best_ns(1, || prepared += 1, |()| ran += 1);
        assert_eq!((prepared, ran), (ROUNDS, ROUNDS));
        assert!(ns.is_finite());
    }
}
