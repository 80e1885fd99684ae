//! A crowd before a server that lies: crowd and judge together find it out, over real sockets.
//!
//! The honest server shows that they accuse nobody; each lie shows that they would.

mod room;
mod server;

use std::path::PathBuf;
use std::sync::Arc;

use room::Lie;
use server::serve;
use tokio::sync::Semaphore;
use waitroom_crowd::judge::{Clocks, judge};
use waitroom_crowd::{ApiKey, Mix, Operator, Outcome, Plan, Remote, Shape, Target, run};

/// Runs a small crowd against the server and returns which promises the history shows broken.
async fn found_out(lie: Lie) -> (Vec<u8>, Outcome) {
    let server = serve(lie).await;
    let target = Target::parse(&format!("http://{}", server.address)).expect("an address");
    let name = format!("waitroom-liar-{}-{lie:?}.jsonl", std::process::id());
    let history: PathBuf = std::env::temp_dir().join(name);
    let pauses = matches!(lie, Lie::IgnoresPause | Lie::None);
    let plan = Plan {
        admin: Some(target.clone()),
        key: Some(ApiKey("k".into())),
        room: "r".into(),
        over_ms: 300,
        shape: Shape::Steady,
        mix: Mix::parse("poll=1").expect("a mix"),
        abandon: 0.1,
        silent: 0.05,
        // Tricks keep people busy, and who looks late cannot tell how fast others came in.
        misbehave: if lie == Lie::Hurries { 0.0 } else { 0.7 },
        stay_ms: 200,
        duration_ms: 8_000,
        seed: 5,
        connections: 16,
        operator: Operator {
            pause_every_ms: pauses.then_some(500),
            pause_for_ms: 400,
            ..Operator::default()
        },
        history: Some(history.clone()),
        ..Plan::usual(target, 40)
    };
    plan.check(Remote::Refuse).expect("a plan that can be meant");
    let outcome = run(plan, |_| {}).await.expect("the server is there");
    let verdict = judge(std::slice::from_ref(&history), Clocks::Each).expect("a history");
    std::fs::remove_file(&history).expect("it was written");
    for violation in verdict.found.first() {
        println!("{violation}");
    }
    outcome.first_surprises.iter().for_each(|said| println!("on the spot: {said}"));
    assert_eq!(verdict.totals.lines + 1, outcome.history_lines, "every line was read");
    (verdict.found.counts().map(|(promise, _)| promise).collect(), outcome)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_honest_server_is_not_accused() {
    let (broken, outcome) = found_out(Lie::None).await;
    assert_eq!(broken, Vec::<u8>::new());
    assert_eq!(outcome.surprises, 0, "{:?}", outcome.first_surprises);
    assert!(outcome.forgeries > 10, "{}", outcome.forgeries);
    assert_eq!(outcome.people.joined, 40);
    let through = outcome.people.completed + outcome.people.left + outcome.people.silent;
    assert_eq!(through, 40, "{:?}", outcome.people);
}

/// Each lie, and the promise it breaks.
const LIES: [(Lie, u8); 10] = [
    (Lie::Forgets, 1),
    (Lie::IgnoresKeys, 2),
    (Lie::NewPassEachTime, 3),
    (Lie::OneTooMany, 4),
    (Lie::Hurries, 5),
    (Lie::LastFirst, 6),
    (Lie::Rises, 8),
    (Lie::IgnoresPause, 9),
    (Lie::AcceptsAnything, 11),
    (Lie::SameNumber, 14),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_lie_is_found_out() {
    // People mostly wait: a few crowds at once take hardly longer than one.
    let room = Arc::new(Semaphore::new(4));
    let runs = LIES.map(|(lie, promise)| {
        let room = room.clone();
        tokio::spawn(async move {
            let _permit = room.acquire().await.expect("never closed");
            let (broken, _) = found_out(lie).await;
            assert!(broken.contains(&promise), "{lie:?} breaks {promise}, found: {broken:?}");
        })
    });
    for run in runs {
        run.await.expect("the lie is found out");
    }
}
