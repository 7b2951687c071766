//! For any order of decisions and commits, concurrent or interrupted by a crash, every entity ends up committed once,
//! discarded, or still staged.

use std::collections::HashMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{Client, TestApp, run};
use crate::process::{Service, hosted, started_once};
use crate::stix::text;

const STATUSES: [&str; 5] = ["pending", "accepted", "rejected", "merged", "uncertain"];
const ENTITIES: usize = 6;
const STEPS: usize = 25;
const SEED: u64 = 0x5eed;

/// A batch of entities that occur nowhere else, and a node that they may be merged into.
struct Case {
    client: Client,
    batch: Value,
    entities: Vec<Value>,
    target: Value,
}

/// The outcome of one step.
#[derive(Debug, Clone)]
enum Step {
    Decided {
        entity: usize,
        wanted: &'static str,
        with_target: bool,
        status: u16,
    },
    Committed(Value),
}

impl Case {
    async fn new(client: &Client, word: &str) -> Self {
        let host = format!("{word}target.com");
        let target = json!({"nodes": [{"name": host, "node_type": "ioc"}]});
        client.send_in("analyst", &target).await;
        let target = client.one(&host).await["id"].clone();
        let hosts: Vec<String> = (0..ENTITIES).map(|n| format!("{word}x{n}.com")).collect();
        let told = format!("These were called: {}.", hosts.join(" and "));
        let preview = client.preview(&json!({"text": told})).await;
        let entities = preview["entities"].as_array().unwrap().clone();
        assert_eq!(entities.len(), ENTITIES, "{preview}");
        Self {
            client: client.clone(),
            batch: preview["batch_id"].clone(),
            entities,
            target,
        }
    }

    /// A random step: mostly a decision, sometimes a commit.
    async fn step(&self, rng: &mut StdRng) -> Step {
        if rng.random_bool(0.2) {
            return Step::Committed(self.client.commit(&self.batch).await);
        }
        let entity = rng.random_range(0..ENTITIES);
        let wanted = *STATUSES.choose(rng).unwrap();
        let with_target = wanted == "merged" && rng.random_bool(0.8);
        let mut body = json!({"status": wanted});
        if with_target {
            body["merge_target_id"] = self.target.clone();
        }
        let path = format!("/api/ingest/staging/{}", text(&self.entities[entity], "id"));
        let answer = self.client.patch(&path, &body).await;
        let status = answer.status();
        assert!([200, 400, 404, 409].contains(&status), "{status}");
        Step::Decided {
            entity,
            wanted,
            with_target,
            status,
        }
    }

    /// The entities still in the batch, by id.
    async fn rows(&self) -> HashMap<String, Value> {
        let batch = self.client.batch(&self.batch).await;
        let entities = batch["entities"].as_array().unwrap().iter();
        entities
            .map(|entity| (text(entity, "id").to_owned(), entity.clone()))
            .collect()
    }

    /// The final state of each entity, read from the batch and from the nodes.
    async fn ends(&self, what: &str) -> Vec<End> {
        let rows = self.rows().await;
        let mut ends = Vec::new();
        for entity in &self.entities {
            let nodes = self.client.named(text(entity, "name")).await;
            let end = match rows.get(text(entity, "id")) {
                None => End::Discarded,
                Some(row) if row["node_id"].is_null() => End::Staged(text(row, "status").to_owned()),
                Some(row) if row["node_id"] == self.target => {
                    assert_eq!(row["status"], "merged", "{what}: {row}");
                    End::Merged
                }
                Some(row) => {
                    assert_eq!(row["status"], "accepted", "{what}: {row}");
                    End::Node
                }
            };
            let expected = usize::from(end == End::Node);
            assert_eq!(nodes.len(), expected, "{what}: {end:?} {nodes:?}");
            for node in nodes {
                assert_eq!(node["id"], rows[text(entity, "id")]["node_id"], "{what}");
                assert_eq!(node["linked_evidence_ids"].as_array().unwrap().len(), 1, "{what}");
            }
            ends.push(end);
        }
        ends
    }
}

#[derive(Debug, Clone, PartialEq)]
enum End {
    Staged(String),
    Node,
    Merged,
    Discarded,
}

/// Totals of the commits among the steps: created, merged, discarded, evidence.
fn sums<'s>(steps: impl Iterator<Item = &'s Step>) -> [u64; 4] {
    let mut sums = [0; 4];
    for step in steps {
        if let Step::Committed(done) = step {
            for (sum, key) in
                sums.iter_mut()
                    .zip(["nodes_created", "merged", "discarded", "evidence_created"])
            {
                *sum += done[key].as_u64().unwrap();
            }
        }
    }
    sums
}

fn assert_sums(sums: [u64; 4], ends: &[End], what: &str) {
    let count = |end: &End| ends.iter().filter(|other| *other == end).count() as u64;
    let (nodes, merged) = (count(&End::Node), count(&End::Merged));
    let evidence = u64::from(nodes + merged > 0);
    assert_eq!(
        sums,
        [nodes, merged, count(&End::Discarded), evidence],
        "{what}: {ends:?}"
    );
}

/// The state machine as the contract describes it.
#[derive(Debug)]
struct Model(Vec<End>);

impl Model {
    fn check(&mut self, step: &Step, what: &str) {
        match step {
            Step::Decided {
                entity,
                wanted,
                with_target,
                status,
            } => {
                let state = &mut self.0[*entity];
                let expected = match state {
                    End::Node | End::Merged => 409,
                    End::Discarded => 404,
                    End::Staged(now) if *wanted == "merged" && !with_target && now != "merged" => 400,
                    End::Staged(_) => 200,
                };
                assert_eq!(*status, expected, "{what}: {step:?} in {state:?}");
                if expected == 200 {
                    *state = End::Staged((*wanted).to_owned());
                }
            }
            Step::Committed(done) => {
                let before = self.0.clone();
                for state in &mut self.0 {
                    *state = match &*state {
                        End::Staged(status) if status == "accepted" => End::Node,
                        End::Staged(status) if status == "merged" => End::Merged,
                        End::Staged(status) if status == "rejected" => End::Discarded,
                        other => other.clone(),
                    };
                }
                let fresh = |end: &End| {
                    let count = |list: &[End]| list.iter().filter(|other| *other == end).count();
                    json!(count(&self.0) - count(&before))
                };
                let open = self.0.iter().filter(|end| matches!(end, End::Staged(_)));
                assert_eq!(
                    (
                        &done["nodes_created"],
                        &done["merged"],
                        &done["discarded"],
                        &done["remaining"]
                    ),
                    (
                        &fresh(&End::Node),
                        &fresh(&End::Merged),
                        &fresh(&End::Discarded),
                        &json!(open.count())
                    ),
                    "{what}: {before:?}"
                );
            }
        }
    }
}

#[test]
fn one_after_the_other_every_step_does_what_the_state_machine_says() {
    run(async {
        let app = TestApp::shared().await;
        for number in 0..extent(2, 12) {
            let what = format!("seed {SEED} case {number}");
            let mut rng = StdRng::seed_from_u64(SEED + number);
            let case = Case::new(&app.admin, &format!("zqs{number}")).await;
            let mut model = Model(vec![End::Staged("pending".into()); ENTITIES]);
            let mut steps = Vec::new();
            for _ in 0..STEPS {
                let step = case.step(&mut rng).await;
                model.check(&step, &what);
                steps.push(step);
            }
            let ends = case.ends(&what).await;
            assert_eq!(ends, model.0, "{what}");
            assert_sums(sums(steps.iter()), &ends, &what);
            let open = ends.iter().any(|end| matches!(end, End::Staged(_)));
            let batch = case.client.batch(&case.batch).await;
            if open {
                assert_eq!(batch["batch"]["status"], "open", "{what}");
            }
        }
        app.stop().await;
    });
}

#[test]
fn at_the_same_time_nothing_is_lost_doubled_or_half_committed() {
    run(async {
        let app = TestApp::shared().await;
        for number in 0..extent(2, 12) {
            let what = format!("seed {SEED} case {number}");
            let case = Case::new(&app.admin, &format!("zqp{number}")).await;
            let case = std::sync::Arc::new(case);
            let callers: Vec<_> = (0..4)
                .map(|caller| {
                    let case = std::sync::Arc::clone(&case);
                    tokio::spawn(async move {
                        let mut rng = StdRng::seed_from_u64(SEED + number * 10 + caller);
                        let mut steps = Vec::new();
                        for _ in 0..STEPS / 2 {
                            steps.push(case.step(&mut rng).await);
                        }
                        steps
                    })
                })
                .collect();
            let mut steps = Vec::new();
            for caller in callers {
                steps.extend(caller.await.unwrap());
            }
            let ends = case.ends(&what).await;
            assert_sums(sums(steps.iter()), &ends, &what);
            assert_told(&steps, &ends, &what);
            // Every remaining entity can still be committed.
            let mut left = 0;
            for (entity, end) in case.entities.iter().zip(&ends) {
                if matches!(end, End::Staged(_)) {
                    left += 1;
                    case.client.decide(entity, json!({"status": "accepted"})).await;
                }
            }
            let done = case.client.commit(&case.batch).await;
            assert_eq!(
                (&done["nodes_created"], &done["remaining"]),
                (&json!(left), &json!(0)),
                "{what}"
            );
            let batch = case.client.batch(&case.batch).await;
            assert_eq!(batch["batch"]["status"], "committed", "{what}");
        }
        let chain = app.admin.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(chain["valid"], true, "{chain}");
        app.stop().await;
    });
}

/// Asserts that the responses hold in the end: the final status was requested, and "committed" and "not found" stay
/// true.
fn assert_told(steps: &[Step], ends: &[End], what: &str) {
    for (at, end) in ends.iter().enumerate() {
        let mut asked = vec!["pending"];
        for step in steps {
            let Step::Decided {
                entity,
                wanted,
                status,
                ..
            } = step
            else {
                continue;
            };
            if *entity != at {
                continue;
            }
            match status {
                200 => asked.push(wanted),
                404 => assert_eq!(*end, End::Discarded, "{what}"),
                409 => assert!(matches!(end, End::Node | End::Merged), "{what}: {end:?}"),
                _ => {}
            }
        }
        let needed = match end {
            End::Staged(status) => status.as_str(),
            End::Node => "accepted",
            End::Merged => "merged",
            End::Discarded => "rejected",
        };
        assert!(asked.contains(&needed), "{what}: {end:?} was never asked for");
    }
}

/// A commit in flight when the process is killed, and whether it was acknowledged.
struct Sent {
    case: Case,
    acknowledged: bool,
}

#[test]
fn a_commit_that_is_killed_is_there_as_a_whole_or_not_at_all() {
    run(async {
        let dir = started_once();
        let (mut whole, mut absent) = (0, 0);
        for round in 0..extent(1, 4) {
            let service = Service::start(hosted(dir.path()));
            let client = service.admin().await;
            let mut cases = Vec::new();
            for number in 0..extent(3, 6) {
                let case = Case::new(&client, &format!("zqk{round}n{number}")).await;
                for entity in &case.entities {
                    client.decide(entity, json!({"status": "accepted"})).await;
                }
                cases.push(case);
            }
            let commits: Vec<_> = cases
                .into_iter()
                .map(|case| {
                    tokio::spawn(async move {
                        let path = format!("/api/ingest/batch/{}/commit", case.batch.as_str().unwrap());
                        let request = case.client.request(reqwest::Method::POST, &path);
                        let answer = request.json(&json!({})).send().await;
                        let acknowledged = answer.is_ok_and(|answer| answer.status() == 200);
                        Sent { case, acknowledged }
                    })
                })
                .collect();
            let moment = StdRng::seed_from_u64(SEED + round).random_range(0..120);
            // The service is killed at a moment that differs from round to round.
            tokio::time::sleep(Duration::from_millis(moment)).await;
            service.kill();
            let mut sent = Vec::new();
            for commit in commits {
                sent.push(commit.await.unwrap());
            }

            let service = Service::start(hosted(dir.path()));
            let client = service.admin().await;
            for Sent {
                mut case,
                acknowledged,
            } in sent
            {
                case.client = client.clone();
                let what = format!("round {round}, {moment} ms");
                let ends = case.ends(&what).await;
                let committed = ends.iter().filter(|end| **end == End::Node).count();
                match committed {
                    ENTITIES => whole += 1,
                    0 if !acknowledged => absent += 1,
                    n => panic!("{what}: {n} of {ENTITIES}, acknowledged: {acknowledged}: {ends:?}"),
                }
                let done = client.commit(&case.batch).await;
                assert_eq!(done["nodes_created"], ENTITIES - committed, "{what}");
                assert!(
                    case.ends(&what).await.iter().all(|end| *end == End::Node),
                    "{what}"
                );
            }
            let chain = client.get("/api/audit/verify").await.expect(200).await;
            assert_eq!(
                (&chain["valid"], &chain["unchained"]),
                (&json!(true), &json!(0)),
                "{chain}"
            );
            drop(service);
        }
        println!("{whole} commits were there as a whole, {absent} not at all");
    });
}
