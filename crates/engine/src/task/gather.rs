//! When a round begins: not before those who are about to ask have asked.

use super::Tenure;
use crate::handle::Request;
use waitroom_store::Store;

/// How long a round is kept open for those who keep coming: a few syncs of a quick disk.
const GATHER_MS_MAX: u64 = 2;

/// Turns of the others without anybody new after which nobody is expected: the first may come
/// before clients that were just answered could ask again.
const GATHER_QUIET: u32 = 2;

impl<S: Store> Tenure<'_, S> {
    /// Takes in what is about to come. The answers of the last round have just gone out, and on a
    /// busy machine their receivers run next, and whoever waits behind them in the sockets: a
    /// round that begins before they had their turn is small, and a sync costs the processor as
    /// much as several joins. So as long as each turn of the others brings more, it is waited for.
    /// A lone request waits for two turns of nobody.
    pub(super) async fn gather(&mut self, requests: &mut Vec<Request>) {
        let since = self.task.seams.clock.now_ms();
        let round = self.task.config.round;
        let mut quiet = 0;
        while quiet < GATHER_QUIET && requests.len() < round {
            let before = requests.len();
            tokio::task::yield_now().await;
            while requests.len() < round
                && let Ok(request) = self.task.inbox.try_recv()
            {
                requests.push(request);
            }
            quiet = if requests.len() == before { quiet + 1 } else { 0 };
            if self.task.seams.clock.now_ms().saturating_sub(since) >= GATHER_MS_MAX {
                return;
            }
        }
    }
}
