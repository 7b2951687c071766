//! `explain=true`: each result says why it was found.

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, encode, run};
use crate::stix::{names, object, relationship, text, with};

const MODES: [&str; 2] = ["blended", "structured"];
const EXAMPLE: &str = "Zinc Heron rewrote the ladder logic of the turbine controllers.";
/// Shares words with the example alone.
const SENTENCE: &str = "Intruders silently rewrote ladder logic so that the turbine spun faster";

async fn explained(client: &Client, question: &str, mode: &str) -> Value {
    client
        .search_with(question, &[("mode", mode), ("explain", "true")])
        .await
}

fn result<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let results = answer["results"].as_array().unwrap();
    let found = results.iter().find(|node| node["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is no result: {answer}"))
}

/// The path to a result: names, with an arrow for each relationship.
fn path(answer: &Value, name: &str) -> String {
    let steps = result(answer, name)["why"]["path"].as_array();
    let step = |step: &Value| match (step["relationship"].as_str(), step["outgoing"].as_bool()) {
        (Some(kind), Some(true)) => format!("-{kind}-> {}", text(step, "name")),
        (Some(kind), Some(false)) => format!("<-{kind}- {}", text(step, "name")),
        _ => text(step, "name").to_owned(),
    };
    let steps = steps.into_iter().flatten().map(step);
    steps.collect::<Vec<_>>().join(" ")
}

fn share(answer: &Value, name: &str, of: &str) -> f64 {
    result(answer, name)["why"]["shares"][of].as_f64().unwrap()
}

/// A group with an alias, its malware, a technique with a part, a mitigation, and an example of the technique.
fn objects() -> Vec<Value> {
    let heron = with(
        object("intrusion-set", "Zinc Heron"),
        json!({"aliases": ["Brass Stork"]}),
    );
    let bear = object("intrusion-set", "APT28");
    let marshgate = object("malware", "Marshgate");
    let sluice = object("attack-pattern", "Rogue Sluice Commands");
    let part = object("attack-pattern", "Sluice Override");
    let monitoring = object("course-of-action", "Sluice Monitoring");
    let uses = relationship(&heron, "uses", &sluice);
    let mut objects = vec![
        relationship(&heron, "uses", &marshgate),
        with(uses, json!({"description": EXAMPLE})),
        relationship(&part, "subtechnique-of", &sluice),
        relationship(&bear, "uses", &part),
        relationship(&monitoring, "mitigates", &sluice),
    ];
    objects.extend([heron, bear, marshgate, sluice, part, monitoring]);
    objects.extend((0..20).map(|n| object("attack-pattern", &format!("Method {n}"))));
    objects
}

#[test]
fn a_result_tells_the_name_in_the_question_and_the_parts_of_its_score() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.ingest(json!(objects())).await;
        for (question, name, kind) in [
            ("Brass Stork", "Zinc Heron", "alias"),
            ("Zinc Heron", "Zinc Heron", "name"),
            // Known to the gazetteer, and not to the node.
            ("Fancy Bear", "APT28", "alias"),
        ] {
            for mode in MODES {
                let answer = explained(&app.admin, question, mode).await;
                let why = &result(&answer, name)["why"];
                assert_eq!(
                    why["matched"],
                    json!({"kind": kind, "text": question}),
                    "{mode}: {answer}"
                );
                assert!(share(&answer, name, "words") >= 0.5, "{mode}: {answer}");
                assert!(answer.get("question").is_none(), "{answer}");
            }
        }
        let answer = explained(&app.admin, "what is brass stork up to", "blended").await;
        assert_eq!(
            result(&answer, "Zinc Heron")["why"]["matched"],
            json!({"kind": "alias", "text": "brass stork"})
        );
        for node in answer["results"].as_array().unwrap() {
            let shares = node["why"]["shares"].as_object().unwrap();
            let sum: f64 = shares.values().map(|share| share.as_f64().unwrap()).sum();
            assert!((sum - 1.0).abs() < 1e-4 || sum == 0.0, "{node}");
        }
        app.stop().await;
    });
}

#[test]
fn an_answer_of_the_graph_tells_its_path_and_how_the_question_was_understood() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.ingest(json!(objects())).await;
        for mode in MODES {
            for (question, name, expected) in [
                (
                    "What malware does Zinc Heron use?",
                    "Marshgate",
                    "Zinc Heron -uses-> Marshgate",
                ),
                (
                    "Which mitigations cover what Zinc Heron uses?",
                    "Sluice Monitoring",
                    "Zinc Heron -uses-> Rogue Sluice Commands <-mitigates- Sluice Monitoring",
                ),
                (
                    "Which groups use Rogue Sluice Commands?",
                    "APT28",
                    "Rogue Sluice Commands <-subtechnique-of- Sluice Override <-uses- APT28",
                ),
            ] {
                let answer = explained(&app.admin, question, mode).await;
                assert_eq!(path(&answer, name), expected, "{mode}: {answer}");
                assert_eq!(share(&answer, name, "graph"), 1.0, "{mode}: {answer}");
            }
            let answer = explained(&app.admin, "malware of Brass Stork since 2020", mode).await;
            let heron = app.admin.search("Zinc Heron").await["results"][0]["id"].clone();
            assert_eq!(
                answer["question"],
                json!({
                    "names": [{"text": "Brass Stork", "nodes": [heron]}],
                    "wanted": ["software"],
                    "through": [],
                    "period": {"since": "2020-01-01T00:00:00Z"},
                })
            );
        }
        app.stop().await;
    });
}

#[test]
fn passages_that_voted_are_told_and_nothing_changes_by_asking() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.ingest(json!(objects())).await;
        let answer = explained(&app.admin, SENTENCE, "blended").await;
        let why = &result(&answer, "Rogue Sluice Commands")["why"];
        assert_eq!(why["passages"][0]["text"], EXAMPLE, "{answer}");
        let evidence = share(&answer, "Rogue Sluice Commands", "evidence");
        let told = why["passages"][0]["share"].as_f64().unwrap();
        assert!(evidence > 0.0 && (evidence - told).abs() < 1e-4, "{why}");

        for question in [SENTENCE, "Fancy Bear", "malware of Zinc Heron"] {
            for mode in MODES {
                let plain = app.admin.search_with(question, &[("mode", mode)]).await;
                let mut asked = explained(&app.admin, question, mode).await;
                asked.as_object_mut().unwrap().remove("question");
                for node in asked["results"].as_array_mut().unwrap() {
                    node.as_object_mut().unwrap().remove("why").unwrap();
                }
                asked["recall_id"] = plain["recall_id"].clone();
                assert_eq!(asked, plain, "{mode}: {question}");
            }
        }
        let query = encode(&[("q", SENTENCE), ("explain", "true")]);
        let semantic = app.admin.get(&format!("/api/recall/semantic?{query}")).await;
        let semantic = semantic.expect(200).await;
        for node in semantic["results"].as_array().unwrap() {
            assert_eq!(
                node["why"],
                json!({"shares": {"words": 0.0, "meaning": 1.0, "graph": 0.0, "evidence": 0.0}})
            );
        }
        for path in ["search", "semantic"] {
            let url = format!("/api/recall/{path}?q=x&explain=maybe");
            let error = app.admin.get(&url).await.refused(400).await;
            assert!(error.contains("explain"), "{error}");
        }
        app.stop().await;
    });
}

/// What a caller is told equals what is told where the hidden objects never were.
#[test]
fn nothing_hidden_is_told() {
    run(async {
        let app = TestApp::shared().await;
        let open = objects();
        let find = |name: &str| open.iter().find(|object| object["name"] == name).unwrap();
        let red = |object: Value| with(object, json!({"labels": ["TLP:RED"]}));
        let (heron, marshgate) = (find("Zinc Heron"), find("Marshgate"));
        let sluice = find("Rogue Sluice Commands");
        let malware = red(object("malware", "Bogwood"));
        let group = with(
            red(object("intrusion-set", "Grebe")),
            json!({"aliases": ["Marshgate"]}),
        );
        let hidden = [
            red(relationship(marshgate, "uses", sluice)),
            with(
                red(relationship(marshgate, "uses", find("Method 3"))),
                json!({"description": EXAMPLE}),
            ),
            with(
                relationship(&malware, "uses", sluice),
                json!({"description": EXAMPLE}),
            ),
            relationship(heron, "uses", &malware),
            malware,
            group,
        ];
        let (plain, hiding) = (app.workspace("plain").await, app.workspace("hiding").await);
        let all = json!({"tlp_ceiling": "RED", "elevated_clearance": true});
        hiding.settings(all).await;
        plain.ingest(json!(open)).await;
        hiding
            .ingest(json!([open.clone(), hidden.to_vec()].concat()))
            .await;
        let question = "Which mitigations cover what Marshgate does?";
        let answer = explained(&hiding, question, "blended").await;
        assert!(path(&answer, "Sluice Monitoring").starts_with("Marshgate -uses->"));
        let green = json!({"tlp_ceiling": "GREEN", "elevated_clearance": false});
        hiding.settings(green).await;
        for question in [
            question,
            SENTENCE,
            "What malware does Zinc Heron use?",
            "malware that uses Rogue Sluice Commands",
            "Marshgate",
        ] {
            for mode in MODES {
                let answer = explained(&hiding, question, mode).await;
                let told = answer.to_string();
                assert!(!told.contains("Bogwood") && !told.contains("Grebe"), "{told}");
                let expected = explained(&plain, question, mode).await;
                assert_eq!(names(&answer), names(&expected), "{mode}: {question}");
                for name in names(&expected) {
                    let [with, without] = [&answer, &expected].map(|answer| {
                        let why = &result(answer, name)["why"];
                        (why["matched"].clone(), texts(why), path(answer, name))
                    });
                    assert_eq!(with, without, "{mode}: {question}: {name}");
                }
            }
        }
        app.stop().await;
    });
}

/// The texts of the passages of a result.
fn texts(why: &Value) -> Vec<String> {
    let passages = why["passages"].as_array().into_iter().flatten();
    passages.map(|passage| text(passage, "text").to_owned()).collect()
}
