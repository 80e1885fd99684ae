//! `waitroom demo` as a whole: the built binary, its report, and a person who stands in line.
//!
//! Nothing here is mocked: the shop sells, the gate checks, bots try, Chromium waits and buys.

mod browser;
mod bus;
#[path = "../../../crates/outbox/tests/outbox/parts.rs"]
#[allow(dead_code, reason = "shared with another target, which uses the rest")]
mod parts;
mod play;
#[path = "../../../crates/shop/tests/stock/postgres.rs"]
mod postgres;
mod story;

/// What `postgres.rs` waits with.
pub fn wait_for<T>(doing: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(doing)
}
