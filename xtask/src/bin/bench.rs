//! The benchmarks as a program, so that they can be built in the release profile while
//! `cargo xtask` itself stays quick to build. All of it is in `xtask::bench`.

use std::process::ExitCode;

/// The product's own: what is measured in this process is measured with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    xtask::bench::main()
}
