//! What is hidden does not exist: two worlds that differ only in what lies above the caller's clearance answer the same
//! calls of the same caller with the same bytes, but for random ids and times.

mod acts;
pub mod transcript;
mod world;

use rand::SeedableRng;
use rand::rngs::StdRng;
use test_support::extent;

use crate::helpers::{TestApp, run};
use acts::{Act, Topic, acts};
use world::World;

/// Cases per topic in full; five thousand in all.
const FULL: usize = 1250;
/// Times that a failing case is tried with an act less.
const MAX_REDUCTIONS: usize = 30;

#[test]
fn hidden_objects_change_no_answer() {
    run(compare(Topic::Objects, programs()));
}

#[test]
fn hidden_versions_and_markings_change_no_answer() {
    run(compare(Topic::Versions, programs()));
}

#[test]
fn hidden_texts_change_no_answer() {
    run(compare(Topic::Texts, programs()));
}

#[test]
fn hidden_feed_items_change_no_answer() {
    run(compare(Topic::Feeds, programs()));
}

/// Programs of a topic: `THREAT_MEMORY_DIFFERENTIAL_CASES` sets another number than the usual one.
fn programs() -> usize {
    let set = std::env::var("THREAT_MEMORY_DIFFERENTIAL_CASES").ok();
    set.map_or(extent(1, FULL), |cases| cases.parse().unwrap())
}

/// Compares as many pairs of worlds. `THREAT_MEMORY_DIFFERENTIAL_SEED` sets the first seed, to repeat a failure.
async fn compare(topic: Topic, cases: usize) {
    let app = TestApp::shared().await;
    let first: u64 = std::env::var("THREAT_MEMORY_DIFFERENTIAL_SEED")
        .ok()
        .map_or(1, |seed| seed.parse().unwrap());
    let (mut answers, mut to_agents) = (0, 0);
    for seed in (first..).take(cases) {
        let program = acts(topic, &mut StdRng::seed_from_u64(seed));
        match difference(&app, &program).await {
            Ok(compared) => {
                answers += compared.len();
                to_agents += compared
                    .iter()
                    .filter(|line| line.starts_with("agent's "))
                    .count();
            }
            Err(_) => {
                let (program, difference) = reduce(&app, program).await;
                let program: Vec<String> = program.iter().map(Act::to_string).collect();
                panic!(
                    "{topic:?}, seed {seed}:\n{difference}\nacts:\n{}",
                    program.join("\n")
                );
            }
        }
    }
    println!("{topic:?}: {cases} programs, {answers} answers the same, {to_agents} of them to agents");
    app.stop().await;
}

/// The answers of both worlds, with the hidden acts and without them.
///
/// # Errors
/// The first answer that differs.
async fn difference(app: &TestApp, program: &[Act]) -> Result<Vec<String>, String> {
    let without = World::play(app, program.iter().filter(|act| !act.is_hidden)).await;
    let with = World::play(app, program.iter()).await;
    let differing = without.iter().zip(&with).find(|(one, other)| one != other);
    match differing {
        Some((one, other)) => Err(format!(
            "without what is hidden: {one}\nwith it:                {other}"
        )),
        None if without.len() != with.len() => Err("different numbers of answers".to_owned()),
        None => Ok(with),
    }
}

/// A smaller program that still differs.
async fn reduce(app: &TestApp, mut program: Vec<Act>) -> (Vec<Act>, String) {
    let again = difference(app, &program).await.err();
    let mut shown = again.unwrap_or_else(|| "not again".to_owned());
    let mut place = program.len();
    for _ in 0..MAX_REDUCTIONS {
        if place == 0 {
            break;
        }
        place -= 1;
        let mut smaller = program.clone();
        smaller.remove(place);
        if let Err(difference) = difference(app, &smaller).await {
            (program, shown) = (smaller, difference);
        }
    }
    (program, shown)
}
