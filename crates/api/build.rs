//! Turns the service's `.proto` into Rust, without needing `protoc` on the machine.

use std::{env, path::PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let described = protox::compile(["waitroom/v1/waitroom.proto"], ["proto"])?;
    // Reflection hands the description out, so it is kept as bytes too.
    let out = PathBuf::from(env::var("OUT_DIR")?);
    std::fs::write(out.join("waitroom.bin"), prost::Message::encode_to_vec(&described))?;
    tonic_prost_build::configure().build_client(false).compile_fds(described)?;
    Ok(())
}
