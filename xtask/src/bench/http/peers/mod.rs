//! The servers that ours is held against, each as small as it can be written.
//!
//! They run in processes of their own, with the same runtime as `waitroom serve`: tokio's, with
//! as many threads as cores it may use. What an interface costs by itself is the peer's figure;
//! what the waiting room adds is the difference.

mod hyper;
mod hyper_redis;
mod multiplexed;
mod tonic;

use std::future::Future;
use std::io::Read;
use std::net::SocketAddr;

use crate::failure::{Failure, OrFail, Outcome};

/// Serves as the peer that `words` name, until standard input ends: our caller is gone then.
pub fn serve(words: &str) -> Outcome {
    let body = |file: &str| std::fs::read(file).or_fail(|| format!("read {file}"));
    match words.splitn(3, ' ').collect::<Vec<_>>()[..] {
        ["peer", "tonic", file] => run(tonic::serve(body(file)?)),
        ["peer", "hyper", file] => run(hyper::serve(body(file)?)),
        ["peer", "hyper-redis", rest] => {
            let (redis, file) = rest
                .split_once(' ')
                .ok_or_else(|| Failure::new("hyper-redis wants an address and a file"))?;
            let redis = redis.parse().or_fail(|| format!("read {redis} as an address"))?;
            run(hyper_redis::serve(redis, body(file)?))
        }
        _ => Err(Failure::new(format!("bench http has no part {words:?}"))),
    }
}

fn run(server: impl Future<Output = Outcome>) -> Outcome {
    std::thread::spawn(|| {
        let mut ignored = [0; 64];
        let mut input = std::io::stdin().lock();
        while matches!(input.read(&mut ignored), Ok(read) if read > 0) {}
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.or_fail(|| "start a runtime")?.block_on(server)
}

/// Tells our caller where we listen.
fn say(address: SocketAddr) {
    println!("{address}");
}
