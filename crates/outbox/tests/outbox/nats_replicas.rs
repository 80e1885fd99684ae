//! Three NATS servers that hold every stream together, and the one that leads a stream is killed
//! while it is told: every event at least once, in order, without a gap, under the same id.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::{self, stream};
use waitroom_core::{Command, Join};
use waitroom_outbox::body::ReadyToken;
use waitroom_outbox::nats::{Link, NatsSink, Streams};

use crate::house::{House, SOON, kills};
use crate::nats::judge_at;
use crate::parts::{Part, free_port, scratch};

/// One of three servers.
struct One {
    part: Option<Part>,
    port: u16,
}

struct Three {
    servers: [One; 3],
    folder: PathBuf,
}

impl Three {
    /// Servers that know each other must be told their ports. Between our look and theirs somebody
    /// may take one; then they do not find together, and others are tried.
    async fn start() -> Three {
        for _ in 0..4 {
            let three = Three::on(scratch("three-nats"));
            if three.context(Duration::from_secs(20)).await.is_some() {
                return three;
            }
        }
        panic!("no three servers of NATS found together (cargo xtask setup installs nats-server)");
    }

    fn on(folder: PathBuf) -> Three {
        let ports: [(u16, u16); 3] = std::array::from_fn(|_| (free_port(), free_port()));
        let routes = ports.map(|(_, route)| format!("\"nats://127.0.0.1:{route}\"")).join(", ");
        for (at, (port, route)) in ports.iter().enumerate() {
            let home = folder.join(format!("n{at}"));
            fs::create_dir_all(&home).expect("a folder");
            let config = format!(
                "server_name: n{at}\nlisten: \"127.0.0.1:{port}\"\n\
                 jetstream {{ store_dir: \"{}\" }}\n\
                 cluster {{ name: three, listen: \"127.0.0.1:{route}\", routes: [{routes}] }}\n",
                home.display()
            );
            fs::write(home.join("server.conf"), config).expect("a file");
        }
        let servers = ports.map(|(port, _)| One { part: None, port });
        let mut three = Three { servers, folder };
        (0..3).for_each(|at| three.start_again(at));
        three
    }

    fn start_again(&mut self, at: usize) {
        let home = self.folder.join(format!("n{at}"));
        let words = ["nats-server", "-c", "server.conf"];
        self.servers[at].part = Some(Part::start(&words, &home));
    }

    /// `kill -9`.
    fn kill(&mut self, at: usize) {
        self.servers[at].part = None;
    }

    fn url(&self, at: usize) -> String {
        format!("nats://127.0.0.1:{}", self.servers[at].port)
    }

    fn urls(&self) -> String {
        (0..3).map(|at| self.url(at)).collect::<Vec<_>>().join(",")
    }

    /// A client, once streams can be made; none if they cannot in time.
    async fn context(&self, within: Duration) -> Option<jetstream::Context> {
        let until = Instant::now() + within;
        while Instant::now() < until {
            let urls: Vec<String> = (0..3).map(|at| self.url(at)).collect();
            if let Ok(client) = async_nats::connect(urls.as_slice()).await {
                // Before they have found together they answer nothing.
                let asked = ContextBuilder::new().timeout(Duration::from_millis(500));
                let context = asked.build(client);
                let config = stream::Config {
                    name: "TOGETHER".to_owned(),
                    subjects: vec!["together".to_owned()],
                    num_replicas: 3,
                    ..stream::Config::default()
                };
                if context.get_or_create_stream(config).await.is_ok() {
                    return Some(context);
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        None
    }

    /// The server that leads a stream, once all three have all of it.
    async fn leader(&self, stream: &str) -> usize {
        let context = self.context(SOON).await.expect("they are together");
        let until = Instant::now() + SOON;
        loop {
            if let Ok(mut stream) = context.get_stream(stream).await
                && let Ok(info) = stream.info().await
                && let Some(cluster) = &info.cluster
                && let Some(leader) = &cluster.leader
                && cluster.replicas.len() == 2
                && cluster.replicas.iter().all(|it| it.current && !it.offline)
            {
                return leader.trim_start_matches('n').parse().expect("we named them");
            }
            assert!(Instant::now() < until, "no leader that all others follow");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Three {
    fn drop(&mut self) {
        (0..3).for_each(|at| self.kill(at));
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_with_replicas_misses_nothing_when_its_leader_is_killed() {
    let mut three = Three::start().await;
    let house = House::new();
    let room = house.room("spring-sale").await;
    let streams = Streams {
        replicas: 3,
        keep: Duration::from_secs(3_600),
        // Short: a server may know the id of a message that it lost, until it forgets it.
        remember: Duration::from_secs(2),
    };
    let link = Link { servers: three.urls(), credentials: None };
    let mut relay =
        house.relay(&room, "nats", Arc::new(NatsSink::new(link, ReadyToken::On, streams)));
    relay.pace.batch = 64;
    let running = tokio::spawn(async move { relay.run().await });
    let reaches = async |head: u64| {
        let until = Instant::now() + SOON;
        while house.cursor(room.handle.name(), "nats").await < head {
            assert!(Instant::now() < until, "the streams stay behind event {head}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    room.join_many(200).await;
    reaches(room.handle.committed()).await;
    // People come all the time, so that something is under way whenever a server dies.
    let joining = tokio::spawn({
        let handle = room.handle.clone();
        async move {
            loop {
                let joins = vec![Command::Join(Join::default()); 5];
                handle.send_many(joins).await.expect("they join");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
    for _ in 0..kills(1) {
        let leader = three.leader("POSITION_EVENTS").await;
        three.kill(leader);
        room.admit(50).await;
        // The two others go on without it.
        reaches(room.handle.committed()).await;
        three.start_again(leader);
    }
    joining.abort();
    let _ = joining.await;
    reaches(room.handle.committed()).await;
    let last = three.leader("POSITION_EVENTS").await;
    judge_at(&house, &room, &three.url(last)).await;
    running.abort();
    house.stop().await;
}
