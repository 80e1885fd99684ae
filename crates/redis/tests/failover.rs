//! Servers fail while rooms are written: killed, held, cut off, moved. At `redis-sync` nothing that
//! was acknowledged is lost; at `redis-async` what is lost is counted and told.
//!
//! Each story is told twice in CI. `cargo xtask long redis` tells them more often, by
//! `WAITROOM_REDIS_CYCLES`, and keeps what they print.

#[path = "common/cutter.rs"]
mod cutter;
#[path = "common/servers.rs"]
mod servers;
#[path = "common/writers.rs"]
mod writers;

use cutter::Cutter;
use servers::{Cluster, DURABLE, Sentinels, Server, until};
use waitroom_redis::{Level, Where};
use writers::{Verdict, Writers};

/// As many as there are: whichever is promoted has it.
const SYNC: Level = Level::Sync { replicas_required: 1 };
/// How long a primary may be silent before another one is made.
const SILENT_MS: u32 = 1_000;
/// Enough that a fault falls into the middle of something.
const BUSY: usize = 40;

fn cycles() -> usize {
    let given = std::env::var("WAITROOM_REDIS_CYCLES").ok();
    given.map_or(2, |given| given.parse().expect("WAITROOM_REDIS_CYCLES is a number"))
}

/// One line for people and for the result file.
fn tell(story: &str, cycles: usize, verdict: &Verdict) {
    let Verdict { acknowledged, lost, opened, longest } = verdict;
    println!(
        "{story}: {cycles} cycles, {acknowledged} batches acknowledged, {lost} lost, \
         rooms opened {opened} times, longest without an answer {:.1} s",
        longest.as_secs_f64()
    );
}

fn by_sentinels(all: &Sentinels) -> Where {
    Where::Sentinel { sentinels: all.urls(), name: Sentinels::NAME.into() }
}

/// Kills the primary, then holds the next one with SIGSTOP until its replica was promoted, and so
/// on by turns.
fn primaries_that_fail(level: Level, cycles: usize) -> Verdict {
    let mut all = Sentinels::watching(&DURABLE, SILENT_MS);
    let writers = Writers::start(by_sentinels(&all), level, 4);
    for cycle in 0..cycles {
        writers.more(BUSY);
        let old = all.primary();
        let killed = cycle % 2 == 0;
        match killed {
            true => all.servers[old].kill(),
            false => all.servers[old].signal("STOP"),
        }
        let new = all.until_promoted(old);
        let port = all.servers[new].port;
        match killed {
            true => all.servers[old].restart_as_replica_of(port),
            false => {
                // It wakes up as the primary that it was, and does what it was asked meanwhile.
                all.servers[old].signal("CONT");
                assert!(all.servers[old].say("PING").contains("PONG"));
                // What sentinels do as well, ten seconds later.
                let said = all.servers[old].say(&format!("REPLICAOF 127.0.0.1 {port}"));
                assert!(said.contains("OK"), "{said}");
            }
        }
        until("the new primary is followed", || all.servers[new].is_followed());
        writers.more(BUSY);
    }
    writers.judge()
}

#[test]
fn sentinels_promote_a_replica_and_nothing_acknowledged_is_lost() {
    let verdict = primaries_that_fail(SYNC, cycles());
    tell("redis-sync, primary killed or held, by sentinels", cycles(), &verdict);
    assert_eq!(verdict.lost, 0, "{verdict:?}");
    // Once at first, once by the judge.
    assert!(verdict.opened >= 4 * (cycles() + 2), "every room noticed every time: {verdict:?}");
}

/// A primary with its clients on one side; its replica and the sentinels on the other.
fn a_primary_cut_off(level: Level) -> (Verdict, usize) {
    let primary = Server::redis(&DURABLE);
    let direct = Where::Single { url: primary.url() };
    let between = Cutter::to(primary.port);
    let all = Sentinels::around(primary, between.port, between.port, &DURABLE, SILENT_MS);
    let writers = Writers::start(direct, level, 4);
    writers.more(BUSY);
    between.close();
    let before = writers.acknowledged();
    let replica = all.servers[1].port;
    until("the replica is promoted on the other side", || {
        all.named() == replica && all.servers[1].is_primary()
    });
    let meanwhile = writers.acknowledged() - before;
    // The level of whoever judges on the other side, where nobody follows yet.
    let verdict = writers.judge_by(Some((by_sentinels(&all), Level::Async)));
    (verdict, meanwhile)
}

#[test]
fn a_primary_that_is_cut_off_with_its_clients_acknowledges_nothing_more() {
    for _ in 0..cycles().div_ceil(2) {
        let (verdict, meanwhile) = a_primary_cut_off(SYNC);
        tell("redis-sync, primary cut off with its clients", 1, &verdict);
        // What was on its way when the way was cut may have been seen by the replica just before.
        assert!(meanwhile <= 4, "{meanwhile} batches were acknowledged by nobody but itself");
        assert_eq!(verdict.lost, 0, "{verdict:?}");
    }
}

#[test]
fn what_redis_async_loses_is_what_the_replica_had_not_seen() {
    let (verdict, meanwhile) = a_primary_cut_off(Level::Async);
    tell("redis-async, primary cut off with its clients", 1, &verdict);
    assert!(meanwhile > 4, "it goes on alone: {meanwhile}");
    assert!(verdict.lost >= meanwhile, "and all of that is gone: {verdict:?}, {meanwhile}");
    assert!(verdict.lost < verdict.acknowledged, "but not what came before: {verdict:?}");
    let cycles = cycles() / 2;
    let verdict = primaries_that_fail(Level::Async, cycles);
    tell("redis-async, primary killed or held, by sentinels", cycles, &verdict);
}

#[test]
fn a_cluster_promotes_a_replica_and_nothing_acknowledged_is_lost() {
    let mut cluster = Cluster::watching(&DURABLE, 1_500);
    let seeds = cluster.urls();
    let writers = Writers::start(Where::Cluster { seeds }, SYNC, 6);
    for cycle in 0..cycles() {
        writers.more(BUSY);
        let primaries: Vec<usize> =
            (0..6).filter(|server| cluster.servers[*server].is_primary()).collect();
        let old = primaries[cycle % primaries.len()];
        cluster.servers[old].kill();
        until("a replica is promoted", || {
            let up = cluster.servers.iter().filter(|server| server.runs() && server.is_primary());
            up.count() == 3
        });
        // It finds out by itself that it is a replica now.
        cluster.servers[old].restart();
        cluster.until_whole();
        writers.more(BUSY);
    }
    let verdict = writers.judge();
    tell("redis-sync, primary of a cluster killed", cycles(), &verdict);
    assert_eq!(verdict.lost, 0, "{verdict:?}");
}

#[test]
fn a_slot_moves_to_another_server_while_its_room_is_written() {
    let cluster = Cluster::start(&DURABLE);
    let seeds = cluster.urls();
    let writers = Writers::start(Where::Cluster { seeds }, SYNC, 6);
    for cycle in 0..cycles() {
        writers.more(BUSY);
        let key = format!("waitroom:{{room-{}}}:tip", cycle % 6);
        move_slot(&cluster, &key);
        writers.more(BUSY);
    }
    let verdict = writers.judge();
    tell("redis-sync, slot moved while it is written", cycles(), &verdict);
    assert_eq!(verdict.lost, 0, "{verdict:?}");
}

/// Moves the slot of a key to another primary, key by key, as `redis-cli --cluster reshard` does.
fn move_slot(cluster: &Cluster, key: &str) {
    let primaries: Vec<&Server> =
        cluster.servers.iter().filter(|server| server.is_primary()).collect();
    let slot = primaries[0].say(&format!("CLUSTER KEYSLOT {key}"));
    let has = |server: &&&Server| server.say(&format!("CLUSTER COUNTKEYSINSLOT {slot}")) != "0";
    let from = primaries.iter().find(has).expect("the room is written");
    let to = primaries.iter().find(|to| to.port != from.port).expect("there are three");
    let id = |server: &Server| server.say("CLUSTER MYID");
    let set = |on: &Server, how: &str| {
        let said = on.say(&format!("CLUSTER SETSLOT {slot} {how}"));
        assert!(said.contains("OK"), "{said}");
    };
    set(to, &format!("IMPORTING {}", id(from)));
    set(from, &format!("MIGRATING {}", id(to)));
    until("all keys of the slot are there", || {
        let keys = from.say(&format!("CLUSTER GETKEYSINSLOT {slot} 10"));
        for key in keys.lines() {
            let said = from.say(&format!("MIGRATE 127.0.0.1 {} {key} 0 5000", to.port));
            assert!(said.contains("OK") || said.contains("NOKEY"), "{said}");
        }
        keys.is_empty()
    });
    for server in [to, from] {
        set(server, &format!("NODE {}", id(to)));
    }
}
