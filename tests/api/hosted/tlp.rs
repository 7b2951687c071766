//! Traffic Light Protocol: nothing above a caller's clearance is disclosed by any endpoint.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use regex::Regex;
use serde_json::{Value, json};
use test_support::extent;

use super::taxii;
use crate::helpers::{Client, TestApp, encode, run};
use crate::stix;

const LEVELS: [&str; 5] = ["TLP:WHITE", "TLP:GREEN", "TLP:AMBER", "TLP:AMBER+PK", "TLP:RED"];
const RED: usize = 4;
/// Sets another number of cases than 3 in the quick round and 200 in the full one.
const CASES_SETTING: &str = "PROPTEST_CASES";
/// What the texts of relationships say; no node shares a word with it.
const SENTENCE: &str = "operators slowly rewrote turbine ladder logic";

fn level(name: &Value) -> usize {
    LEVELS.iter().position(|known| name == known).unwrap()
}

/// The TLP policy of a workspace.
#[derive(Debug, Clone, Copy)]
struct Policy {
    ceiling: usize,
    elevated: bool,
    grant: bool,
}

impl Policy {
    fn permits(self, level: usize) -> bool {
        level <= self.ceiling && (level <= 2 || self.elevated)
    }

    async fn apply(self, admin: &Client) {
        let change = json!({"tlp_ceiling": LEVELS[self.ceiling], "elevated_clearance": self.elevated,
            "red_export_grant": self.grant});
        admin.settings(change).await;
    }
}

/// One random case: markings of the ingested objects, settings, caller, and later settings.
#[derive(Debug, Clone)]
struct Case {
    /// Level of each node and whether it is revoked.
    nodes: Vec<(usize, bool)>,
    identity: usize,
    edge: usize,
    /// Level of the text about each pair of neighbouring nodes.
    passages: Vec<usize>,
    /// Level of each excerpt of a report about one more node.
    excerpts: Vec<usize>,
    policies: [Policy; 2],
    caller: usize,
    mode: usize,
    include_rejected: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let policy = (0..5usize, any::<bool>(), any::<bool>());
    let policy = policy.prop_map(|(ceiling, elevated, grant)| Policy {
        ceiling,
        elevated,
        grant,
    });
    let nodes = prop::collection::vec((0..5usize, prop::bool::weighted(0.3)), 2..6);
    let levels = |count| prop::collection::vec(0..5usize, count);
    let marks = (nodes, 0..5usize, 0..5usize, levels(5), levels(3));
    (
        marks,
        [policy.clone(), policy],
        0..5usize,
        0..2usize,
        any::<bool>(),
    )
        .prop_map(
            |((nodes, identity, edge, passages, excerpts), policies, caller, mode, include_rejected)| Case {
                nodes,
                identity,
                edge,
                passages,
                excerpts,
                policies,
                caller,
                mode,
                include_rejected,
            },
        )
}

/// Everything ingested so far, by a word that occurs only in that object.
#[derive(Debug, Default)]
struct World(HashMap<String, (usize, bool)>);

impl World {
    /// Fails if `text` contains the word of an object that must stay hidden.
    #[track_caller]
    fn check(&self, text: &str, policy: Policy, rejected: bool, what: &str) {
        for word in words_in(text) {
            let (level, revoked) = self.0[word];
            assert!(
                policy.permits(level) && (rejected || !revoked),
                "{what}: {word} ({}, revoked {revoked}) leaks under {policy:?}: {text}",
                LEVELS[level]
            );
        }
    }
}

/// The words of objects that stand in `text`, wherever they stand. One pass, because ten thousand cases have a hundred
/// thousand words.
fn words_in(text: &str) -> impl Iterator<Item = &str> {
    static WORD: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?:desk|node\d|edge|passage\d+|excerpt\d)x\d+x").unwrap());
    WORD.find_iter(text).map(|found| found.as_str())
}

/// The objects of a case; each contains its own word.
fn objects(case: &Case, number: usize, world: &mut World) -> Value {
    let mut word = |what: String, level: usize, revoked: bool| {
        let word = format!("{what}x{number}x");
        assert!(words_in(&word).eq([word.as_str()]), "{word} is not recognised");
        world.0.insert(word.clone(), (level, revoked));
        word
    };
    let identity = word("desk".into(), case.identity, false);
    let identity = json!({"type": "identity", "id": stix::id("identity"), "spec_version": "2.1", "name": identity,
        "created": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z",
        "labels": [LEVELS[case.identity]]});
    let mut objects = vec![identity.clone()];
    for (at, (level, revoked)) in case.nodes.iter().enumerate() {
        let name = format!("Harbour {}", word(format!("node{at}"), *level, *revoked));
        let changes =
            json!({"labels": [LEVELS[*level]], "revoked": revoked, "created_by_ref": identity["id"]});
        objects.push(stix::with(stix::object("intrusion-set", &name), changes));
    }
    let ends = case.nodes.get(..2).unwrap();
    let highest = ends.iter().map(|(level, _)| *level).max().max(Some(case.edge));
    let revoked = ends.iter().any(|(_, revoked)| *revoked);
    let edge = word("edge".into(), highest.unwrap(), revoked);
    let changes = json!({"labels": [LEVELS[case.edge]], "description": edge});
    let relationship = stix::relationship(&objects[1], "related-to", &objects[2]);
    objects.push(stix::with(relationship, changes));
    let nodes = objects.clone();
    let pairs = nodes.get(1..=case.nodes.len()).unwrap().windows(2);
    for ((pair, ends), level) in pairs.zip(case.nodes.windows(2)).zip(&case.passages) {
        // A text is as hidden as what it is about.
        let highest = ends.iter().map(|(level, _)| *level).max().max(Some(*level));
        let revoked = ends.iter().any(|(_, revoked)| *revoked);
        let word = word(format!("passage{}", objects.len()), highest.unwrap(), revoked);
        let changes = json!({"labels": [LEVELS[*level]], "description": format!("{SENTENCE} {word}")});
        objects.push(stix::with(
            stix::relationship(&pair[0], "attributed-to", &pair[1]),
            changes,
        ));
    }
    Value::from(objects)
}

/// A report with several excerpts about one node, each with a word of its own.
fn report(case: &Case, number: usize, world: &mut World) -> Value {
    let block = |(at, level): (usize, &usize)| {
        let word = format!("excerpt{at}x{number}x");
        world.0.insert(word.clone(), (*level, false));
        json!({"entity_name": format!("Quay {number}"), "node_type": "actor", "tlp": LEVELS[*level],
            "excerpt": format!("{SENTENCE} {word}")})
    };
    let blocks: Vec<Value> = case.excerpts.iter().enumerate().map(block).collect();
    json!({"title": format!("Report {number}"), "content_blocks": blocks})
}

#[test]
fn nothing_above_the_callers_clearance_leaves_by_any_way() {
    run(async {
        let app = TestApp::shared().await;
        let admin = app.admin.clone();
        // Only the first two of the five callers may see rejected nodes.
        let callers = [
            admin.clone(),
            app.user("analyst").await,
            app.user("audit").await,
            app.user("viewer").await,
            app.api_key(&["read", "ingest"]).await,
        ];
        let mut world = World::default();
        let mut runner = TestRunner::deterministic();
        let set = std::env::var(CASES_SETTING).ok();
        let count = set.map_or(extent(3, 200), |count| count.parse().unwrap());
        for number in 0..count {
            let case = cases().new_tree(&mut runner).unwrap().current();
            let policy = case.policies[0];
            policy.apply(&admin).await;
            admin.ingest(objects(&case, number, &mut world)).await;
            admin.send_in("report", &report(&case, number, &mut world)).await;
            let caller = &callers[case.caller];
            let rejected = case.include_rejected && case.caller < 2;
            let question = format!("Harbour node0x{number}x");
            let query = [
                ("q", question.as_str()),
                ("limit", "100"),
                ("mode", ["blended", "structured"][case.mode]),
                (
                    "include_rejected",
                    if case.include_rejected { "true" } else { "false" },
                ),
                ("explain", "true"),
            ];
            let found = caller
                .get(&format!("/api/recall/search?{}", encode(&query)))
                .await;
            let found = found.expect(200).await;
            let results = found["results"].as_array().unwrap();
            // The query itself is echoed; the rest of the response is checked.
            let mut said = found.clone();
            said["query"] = Value::Null;
            world.check(&said.to_string(), policy, rejected, "search");
            assert_eq!(found["include_rejected"], json!(rejected));
            assert_eq!(found["count"], json!(results.len()));
            let highest = results.iter().map(|node| level(&node["tlp"])).max().unwrap_or(0);
            assert_eq!(level(&found["max_tlp"]), highest);
            // A visible node that contains the exact word is found.
            let (first, revoked) = case.nodes[0];
            if policy.permits(first) && (rejected || !revoked) {
                assert!(
                    said.to_string().contains(&format!("node0x{number}x")),
                    "{case:?}: {found}"
                );
            }
            check_votes(caller, (policy, rejected), &query, &world).await;
            let related = format!("Which groups are attributed to {question}?");
            check_related(caller, (policy, rejected), (&query, &related), &world).await;
            let by_meaning: Vec<(&str, &str)> =
                query.into_iter().filter(|(name, _)| *name != "mode").collect();
            let semantic = caller
                .get(&format!("/api/recall/semantic?{}", encode(&by_meaning)))
                .await;
            let semantic = semantic.expect(200).await;
            world.check(&semantic.to_string(), policy, rejected, "semantic");

            // Checked under the settings at the time of the search, and under later ones.
            let recall = stix::text(&found, "recall_id");
            for policy in case.policies {
                policy.apply(&admin).await;
                check_session(caller, recall, policy, rejected, results, &world).await;
                check_collections(caller, (policy, case.caller < 2), &world).await;
            }
        }
        app.stop().await;
    });
}

/// A question that only texts of relationships answer brings nothing that the caller may not see, and the marking of the
/// answer is that of its nodes.
async fn check_votes(
    caller: &Client,
    (policy, rejected): (Policy, bool),
    query: &[(&str, &str)],
    world: &World,
) {
    let mut query = query.to_vec();
    query[0].1 = SENTENCE;
    let answer = caller
        .get(&format!("/api/recall/search?{}", encode(&query)))
        .await;
    let mut answer = answer.expect(200).await;
    world.check(&answer.to_string(), policy, rejected, "votes");
    for node in answer["results"].as_array_mut().unwrap() {
        node.as_object_mut().unwrap().remove("why");
        node["properties"].as_object_mut().unwrap().remove("excerpt");
    }
    let results = answer["results"].as_array().unwrap();
    let levels: Vec<usize> = results.iter().map(|node| level(&node["tlp"])).collect();
    assert!(
        levels.iter().all(|level| policy.permits(*level)),
        "{policy:?}: {answer}"
    );
    assert_eq!(
        level(&answer["max_tlp"]),
        levels.iter().copied().max().unwrap_or(0)
    );
    assert!(
        !answer["results"].to_string().contains("rewrote"),
        "a text is no result: {answer}"
    );
}

/// An answer of the graph names nothing hidden on its paths, and saying why changes neither results nor order.
async fn check_related(
    caller: &Client,
    (policy, rejected): (Policy, bool),
    (query, question): (&[(&str, &str)], &str),
    world: &World,
) {
    let mut query = query.to_vec();
    query[0].1 = question;
    let search = async |query: &[(&str, &str)]| {
        let answer = caller.get(&format!("/api/recall/search?{}", encode(query))).await;
        answer.expect(200).await
    };
    let mut answer = search(&query).await;
    query.retain(|(name, _)| *name != "explain");
    let plain = search(&query).await;
    // What the caller wrote is echoed.
    answer["query"] = Value::Null;
    for name in answer["question"]["names"].as_array_mut().into_iter().flatten() {
        name["text"] = Value::Null;
    }
    world.check(&answer.to_string(), policy, rejected, "related");
    for node in answer["results"].as_array_mut().unwrap() {
        node.as_object_mut().unwrap().remove("why").unwrap();
    }
    assert_eq!(answer["results"], plain["results"]);
}

/// Pulls the collections of the TAXII server, and checks them against the current settings. Nobody is told of what was
/// rejected before anybody could see it.
async fn check_collections(caller: &Client, (policy, rejected): (Policy, bool), world: &World) {
    let root = taxii::root_of(caller).await;
    let collections = taxii::ask(caller, &format!("{root}collections/")).await;
    let collections = collections.expect(200).await;
    for collection in collections["collections"].as_array().unwrap() {
        if collection["can_read"] != true {
            continue;
        }
        let path = format!("{root}collections/{}/", stix::text(collection, "id"));
        let mut given = Vec::new();
        for page in taxii::pull_pages(caller, &format!("{path}objects/?limit=40")).await {
            given.extend(page.objects);
        }
        let text = Value::from(given.clone()).to_string();
        world.check(&text, policy, rejected, "collection");
        let red = |word: &str| world.0.get(word).is_some_and(|(level, _)| *level == RED);
        if !policy.grant {
            assert!(!words_in(&text).any(red), "RED left without a grant: {text}");
        }
        let manifest = taxii::pull(caller, &format!("{path}manifest/?limit=1000")).await;
        // What may leave by now is added again meanwhile.
        let ids = |objects: &[Value]| -> BTreeSet<String> {
            objects
                .iter()
                .map(|object| stix::text(object, "id").to_owned())
                .collect()
        };
        assert_eq!(ids(&given), ids(&manifest));
    }
}

/// Reads and exports a session, and checks both against the current settings.
async fn check_session(
    caller: &Client,
    recall: &str,
    policy: Policy,
    rejected: bool,
    results: &[Value],
    world: &World,
) {
    let path = format!("/api/recall/sessions/{recall}");
    let session = caller.get(&path).await.expect(200).await;
    let visible: Vec<&Value> = results
        .iter()
        .filter(|node| policy.permits(level(&node["tlp"])))
        .collect();
    let ids: Vec<&Value> = visible.iter().map(|node| &node["id"]).collect();
    let highest = visible.iter().map(|node| level(&node["tlp"])).max().unwrap_or(0);
    assert_eq!(
        session["node_ids"].as_array().unwrap().iter().collect::<Vec<_>>(),
        ids
    );
    assert_eq!(session["result_count"], json!(ids.len()));
    assert_eq!(level(&session["max_tlp"]), highest);
    assert_eq!(session["has_red_node"], json!(highest == RED));

    let export = caller.get(&format!("{path}/export.stix")).await;
    let (status, text) = export.whole().await;
    world.check(&text, policy, rejected, "export");
    let want = match (highest == RED && !policy.grant, ids.is_empty()) {
        (true, _) => 403,
        (false, true) => 422,
        (false, false) => 200,
    };
    assert_eq!(status, want, "{policy:?}: {text}");
    if status == 200 {
        let bundle: Value = serde_json::from_str(&text).unwrap();
        crate::helpers::keep_export(&bundle);
        let red = |word: &str| world.0.get(word).is_some_and(|(level, _)| *level == RED);
        if !policy.grant {
            let leaked: Vec<&str> = words_in(&text).filter(|word| red(word)).collect();
            assert!(leaked.is_empty(), "{leaked:?} left without a grant: {text}");
        }
    }
}

async fn open(admin: &Client, grant: bool) {
    let open = json!({"tlp_ceiling": "RED", "elevated_clearance": true, "red_export_grant": grant});
    admin.settings(open).await;
}

#[test]
fn export_of_a_red_session_without_grant_is_403_and_audited() {
    run(async {
        let app = TestApp::shared().await;
        open(&app.admin, false).await;
        let secret = stix::with(stix::object("tool", "Heron"), json!({"labels": ["tlp:red"]}));
        app.admin.ingest(json!([secret])).await;
        let found = app.admin.search("Heron").await;
        let recall = stix::text(&found, "recall_id");
        let path = format!("/api/recall/sessions/{recall}/export.stix");
        let viewer = app.user("viewer").await;
        let error = viewer.get(&path).await.refused(403).await;
        assert!(error.contains("red_export_grant"), "{error}");
        let denied = app.admin.audited("recall.export_denied").await;
        assert_eq!(denied.len(), 1);
        assert_eq!(
            (&denied[0]["outcome"], &denied[0]["resource_id"]),
            (&json!("denied"), &json!(recall))
        );
        assert!(denied[0]["user_email"].as_str().unwrap().starts_with("viewer-"));
        assert!(app.admin.audited("recall.export").await.is_empty());
        // The grant, and its withdrawal, apply at export rather than at search.
        app.admin.settings(json!({"red_export_grant": true})).await;
        viewer.export(recall).await;
        app.admin.settings(json!({"red_export_grant": false})).await;
        viewer.get(&path).await.refused(403).await;
        assert_eq!(app.admin.audited("recall.export_denied").await.len(), 2);
        assert_eq!(app.admin.audited("recall.export").await.len(), 1);
        app.stop().await;
    });
}

#[test]
fn a_row_that_became_red_after_the_search_is_red_at_the_export() {
    run(async {
        let app = TestApp::shared().await;
        open(&app.admin, false).await;
        let tool = stix::with(stix::object("tool", "Heron"), json!({"labels": ["tlp:green"]}));
        app.admin.ingest(json!([tool])).await;
        let found = app.admin.search("Heron").await;
        assert_eq!(found["max_tlp"], "TLP:GREEN");
        let newer = json!({"modified": "2021-01-01T00:00:00.000Z", "labels": ["tlp:red"]});
        app.admin.ingest(json!([stix::with(tool, newer)])).await;
        let path = format!("/api/recall/sessions/{}", stix::text(&found, "recall_id"));
        let session = app.admin.get(&path).await.expect(200).await;
        assert_eq!(
            (&session["max_tlp"], &session["has_red_node"]),
            (&json!("TLP:RED"), &json!(true))
        );
        let export = format!("{path}/export.stix");
        app.admin.get(&export).await.refused(403).await;
        app.admin.settings(json!({"tlp_ceiling": "AMBER"})).await;
        app.admin.get(&export).await.refused(422).await;
        let session = app.admin.get(&path).await.expect(200).await;
        assert_eq!(
            (&session["max_tlp"], &session["node_ids"]),
            (&json!("TLP:WHITE"), &json!([]))
        );
        app.stop().await;
    });
}

#[test]
fn a_red_relationship_or_author_does_not_leave_without_a_grant() {
    run(async {
        let app = TestApp::shared().await;
        open(&app.admin, false).await;
        let author = json!({"type": "identity", "id": stix::id("identity"), "spec_version": "2.1",
            "created": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z",
            "name": "Secret Desk", "labels": ["tlp:red"]});
        let green = json!({"labels": ["tlp:green"], "created_by_ref": author["id"]});
        let actor = stix::with(stix::object("intrusion-set", "Harbour Heron"), green.clone());
        let tool = stix::with(stix::object("tool", "Harbour Hook"), green);
        let uses = stix::with(
            stix::relationship(&actor, "uses", &tool),
            json!({"labels": ["tlp:red"], "description": "secret link"}),
        );
        app.admin.ingest(json!([author, actor, tool, uses])).await;
        let found = app.admin.search("Harbour").await;
        assert_eq!(found["count"], 2);
        let recall = stix::text(&found, "recall_id");
        let bundle = app.admin.export(recall).await.to_string();
        assert!(
            !bundle.contains("secret link") && !bundle.contains("Secret Desk"),
            "{bundle}"
        );
        open(&app.admin, true).await;
        let bundle = app.admin.export(recall).await.to_string();
        assert!(
            bundle.contains("secret link") && bundle.contains("Secret Desk"),
            "{bundle}"
        );
        app.stop().await;
    });
}
