//! Turns the service's `.proto` into a client, without needing `protoc` on the machine. The file
//! is the server's own: a crowd that spoke another contract would prove nothing.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = "../api/proto";
    println!("cargo::rerun-if-changed={folder}");
    let described = protox::compile(["waitroom/v1/waitroom.proto"], [folder])?;
    tonic_prost_build::configure().build_server(false).compile_fds(described)?;
    Ok(())
}
