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
    run(compare(Topic::Objects, extent(1, FULL)));
}

#[test]
fn hidden_versions_and_markings_change_no_answer() {
    run(compare(Topic::Versions, extent(1, FULL)));
}

#[test]
fn hidden_texts_change_no_answer() {
    run(compare(Topic::Texts, extent(1, FULL)));
}

#[test]
fn hidden_feed_items_change_no_answer() {
    run(compare(Topic::Feeds, extent(1, FULL)));
}

/// Compares as many pairs of worlds. `THREAT_MEMORY_DIFFERENTIAL_SEED` sets the first seed, to repeat a failure.
async fn compare(topic: Topic, cases: usize) {
    let app = TestApp::shared().await;
    let first: u64 = std::env::var("THREAT_MEMORY_DIFFERENTIAL_SEED")
        .ok()
        .map_or(1, |seed| seed.parse().unwrap());
    for seed in (first..).take(cases) {
        let program = acts(topic, &mut StdRng::seed_from_u64(seed));
        if difference(&app, &program).await.is_some() {
            let (program, difference) = reduce(&app, program).await;
            let program: Vec<String> = program.iter().map(Act::to_string).collect();
            panic!(
                "{topic:?}, seed {seed}:\n{difference}\nacts:\n{}",
                program.join("\n")
            );
        }
    }
    app.stop().await;
}

/// The first answer that differs between the world with the hidden acts and the world without them.
async fn difference(app: &TestApp, program: &[Act]) -> Option<String> {
    let without = World::play(app, program.iter().filter(|act| !act.is_hidden)).await;
    let with = World::play(app, program.iter()).await;
    let differing = without.iter().zip(&with).find(|(one, other)| one != other);
    differing
        .map(|(one, other)| format!("without what is hidden: {one}\nwith it:                {other}"))
        .or_else(|| (without.len() != with.len()).then(|| "different numbers of answers".to_owned()))
}

/// A smaller program that still differs.
async fn reduce(app: &TestApp, mut program: Vec<Act>) -> (Vec<Act>, String) {
    let mut shown = difference(app, &program)
        .await
        .unwrap_or_else(|| "not again".to_owned());
    let mut place = program.len();
    for _ in 0..MAX_REDUCTIONS {
        if place == 0 {
            break;
        }
        place -= 1;
        let mut smaller = program.clone();
        smaller.remove(place);
        if let Some(difference) = difference(app, &smaller).await {
            (program, shown) = (smaller, difference);
        }
    }
    (program, shown)
}
