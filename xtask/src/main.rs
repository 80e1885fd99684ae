//! `cargo xtask`: the developer's door. Everything it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::run()
}
