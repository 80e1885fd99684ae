//! Turns Envoy's question and answer into Rust, without needing `protoc` on the machine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let described = protox::compile(["envoy/service/auth/v3/external_auth.proto"], ["proto"])?;
    tonic_prost_build::configure().build_client(false).compile_fds(described)?;
    Ok(())
}
