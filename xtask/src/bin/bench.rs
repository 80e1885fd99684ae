//! The benchmarks as a program, so that they can be built in the release profile while
//! `cargo xtask` itself stays quick to build. All of it is in `xtask::bench`.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::bench::main()
}
