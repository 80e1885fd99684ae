//! Seeing what happens: figures, alerts, the dashboard, log lines, spans and `top`, of the real
//! binary, read by the programs that people read them with (promtool, Prometheus, a collector's own
//! library, tmux). A program that is missing fails the test and says so: `cargo xtask setup`.

#[path = "../serve/instance.rs"]
#[allow(dead_code, reason = "shared with another target, which uses the rest")]
mod instance;

mod figures;
mod lines;
mod prometheus;
mod spans;
mod store;
mod top;
