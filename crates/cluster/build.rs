//! Turns the `.proto` of what instances say to each other into Rust, without needing `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let described = protox::compile(["waitroom/cluster/v1/cluster.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(described)?;
    Ok(())
}
