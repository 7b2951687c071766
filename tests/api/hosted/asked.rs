//! Questions whose answer stands in the relationships.

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{Client, TestApp, run};
use crate::stix::{object, relationship, text, with};

const MODES: [&str; 2] = ["blended", "structured"];

/// The names of the results, best first.
async fn ask(client: &Client, question: &str, mode: &str) -> Vec<String> {
    let found = client.search_with(question, &[("mode", mode)]).await;
    let results = found["results"].as_array().unwrap();
    results.iter().map(|node| text(node, "name").to_owned()).collect()
}

struct World {
    objects: Vec<Value>,
}

impl World {
    /// A small graph: two groups, a campaign, two malware, two techniques, a mitigation.
    fn new() -> (Self, [Value; 8]) {
        let seen = |from: &str, to: &str| json!({"first_seen": from, "last_seen": to});
        let nodes = [
            with(
                object("intrusion-set", "Zinc Heron"),
                json!({"aliases": ["Brass Stork"]}),
            ),
            with(
                object("intrusion-set", "Quiet Otter"),
                json!({"description": "A Laurasian group that has been attributed to the Bureau of Reeds (BOR)."}),
            ),
            with(
                object("campaign", "Operation Reedbed"),
                seen("2021-03-01T00:00:00Z", "2021-06-01T00:00:00Z"),
            ),
            object("malware", "Marshgate"),
            object("malware", "Fenlight"),
            object("attack-pattern", "OS Credential Dumping"),
            object("attack-pattern", "Rogue Sluice Commands"),
            object("course-of-action", "Sluice Monitoring"),
        ];
        let [
            heron,
            otter,
            reedbed,
            marshgate,
            fenlight,
            dumping,
            sluice,
            monitoring,
        ] = nodes.clone();
        let mut objects = nodes.to_vec();
        for (source, kind, target) in [
            (&heron, "uses", &marshgate),
            (&heron, "uses", &dumping),
            (&otter, "uses", &fenlight),
            (&reedbed, "attributed-to", &heron),
            (&reedbed, "uses", &fenlight),
            (&marshgate, "uses", &sluice),
            (&fenlight, "uses", &dumping),
            (&monitoring, "mitigates", &sluice),
        ] {
            objects.push(relationship(source, kind, target));
        }
        (World { objects }, nodes)
    }
}

#[test]
fn what_is_related_to_the_named_thing_comes_first_in_both_modes() {
    run(async {
        let app = TestApp::shared().await;
        let (world, _) = World::new();
        app.admin.ingest(json!(world.objects)).await;
        for (question, answers) in [
            ("Which groups use OS Credential Dumping?", vec!["Zinc Heron"]),
            ("who uses credential dumping", vec!["Zinc Heron"]),
            ("brass stork malware", vec!["Marshgate"]),
            (
                "How can rogue sluice commands be mitigated?",
                vec!["Sluice Monitoring"],
            ),
            (
                "Which campaigns are attributed to Zinc Heron?",
                vec!["Operation Reedbed"],
            ),
            ("who is behind Operation Reedbed", vec!["Zinc Heron"]),
            // Two steps.
            (
                "Which mitigations cover what Marshgate does?",
                vec!["Sluice Monitoring"],
            ),
            (
                "mitigations against Marshgate techniques",
                vec!["Sluice Monitoring"],
            ),
            ("malware of the group behind Operation Reedbed", vec!["Marshgate"]),
            ("malware used in campaigns of Zinc Heron", vec!["Fenlight"]),
            ("Brass Stork malware techniques", vec!["Rogue Sluice Commands"]),
            (
                "Who is behind Operation Reedbed, and what malware do they have?",
                vec!["Marshgate"],
            ),
            // Groups that are described.
            ("malware of groups attributed to the BOR", vec!["Fenlight"]),
            ("BOR-linked groups' malware", vec!["Fenlight"]),
            ("malware of Laurasia's groups", vec!["Fenlight"]),
            (
                "Which techniques do the tools of Laurasian hackers use?",
                vec!["OS Credential Dumping"],
            ),
            // Times.
            ("campaigns in 2021", vec!["Operation Reedbed"]),
            (
                "Which malware was used in campaigns before 2022?",
                vec!["Fenlight"],
            ),
        ] {
            for mode in MODES {
                let found = ask(&app.admin, question, mode).await;
                assert!(
                    found.starts_with(&answers.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()),
                    "{mode}: {question}: {found:?}"
                );
            }
        }
        // No campaign is that recent, so nothing is put first.
        let found = ask(&app.admin, "Zinc Heron campaigns since 2024", "structured").await;
        assert_ne!(
            found.first().map(String::as_str),
            Some("Operation Reedbed"),
            "{found:?}"
        );
        app.stop().await;
    });
}

/// The answers are those of a graph that never had the hidden rows: a node, an edge, and a node on the way.
#[test]
fn hidden_rows_lead_nowhere() {
    run(async {
        let app = TestApp::shared().await;
        let (world, nodes) = World::new();
        let [heron, _, _, marshgate, _, dumping, sluice, _] = &nodes;
        let red = |object: Value| with(object, json!({"labels": ["TLP:RED"]}));
        let revoked = |object: Value| with(object, json!({"revoked": true}));
        let mut more = Vec::new();
        for (number, hide) in [&red as &dyn Fn(Value) -> Value, &revoked]
            .into_iter()
            .enumerate()
        {
            let malware = hide(object("malware", &format!("Bogwood {number}")));
            let technique = hide(object("attack-pattern", &format!("Peat Extraction {number}")));
            let mitigation = hide(object("course-of-action", &format!("Dyke Watch {number}")));
            let group = hide(object("intrusion-set", &format!("Grebe {number}")));
            let campaign = hide(object("campaign", &format!("Operation Sedge {number}")));
            for (source, kind, target) in [
                (heron, "uses", &malware),
                (heron, "uses", &technique),
                (&group, "uses", dumping),
                (&malware, "uses", sluice),
                (&mitigation, "mitigates", sluice),
                (&campaign, "attributed-to", heron),
                (marshgate, "uses", &technique),
            ] {
                more.push(relationship(source, kind, target));
            }
            more.extend([malware, technique, mitigation, group, campaign]);
            // A hidden relationship between visible nodes.
            more.push(hide(relationship(&nodes[1], "uses", dumping)));
            more.push(hide(relationship(&nodes[1], "uses", marshgate)));
        }
        let plain = app.workspace("plain").await;
        let hiding = app.workspace("hiding").await;
        hiding
            .settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true}))
            .await;
        plain.ingest(json!(world.objects)).await;
        hiding.ingest(json!([world.objects, more].concat())).await;
        hiding
            .settings(json!({"tlp_ceiling": "GREEN", "elevated_clearance": false}))
            .await;
        for question in [
            "Which groups use OS Credential Dumping?",
            "What malware does Zinc Heron use?",
            "Which mitigations cover what Zinc Heron's malware does?",
            "mitigations for rogue sluice commands",
            "techniques of the malware of Zinc Heron",
            "groups that use malware that uses Rogue Sluice Commands",
            "Zinc Heron campaigns",
            "Who uses Marshgate?",
        ] {
            for mode in MODES {
                let related = |found: Vec<String>| found.into_iter().take(2).collect::<Vec<_>>();
                let expected = related(ask(&plain, question, mode).await);
                let found = ask(&hiding, question, mode).await;
                let hidden = ["Bogwood", "Peat", "Dyke", "Grebe", "Sedge"];
                assert!(
                    !found
                        .iter()
                        .any(|name| hidden.iter().any(|hidden| name.contains(hidden))),
                    "{found:?}"
                );
                assert_eq!(related(found), expected, "{mode}: {question}");
            }
        }
        app.stop().await;
    });
}

#[test]
fn a_sentence_of_a_report_is_no_question() {
    run(async {
        let app = TestApp::shared().await;
        let (world, _) = World::new();
        app.admin.ingest(json!(world.objects)).await;
        let sentence = "Fenlight malware read credentials from the memory of the operating system and dumped them to a file";
        for mode in MODES {
            let found = ask(&app.admin, sentence, mode).await;
            let first = found.first().map_or("", String::as_str);
            assert!(
                ["Fenlight", "OS Credential Dumping"].contains(&first),
                "{mode}: {found:?}"
            );
        }
        app.stop().await;
    });
}

/// Neighbours of a hub: all of it has more than a step compares.
fn neighbours() -> usize {
    extent(400, 6_020)
}

/// Neighbours of a hub that differ from the others: as many as a page of results has.
const FEW: usize = 20;

/// More relationships lead to hidden nodes than a step passes on.
#[test]
fn hidden_neighbours_of_a_hub_displace_no_visible_one() {
    run(async {
        let app = TestApp::spawn().await;
        let admin = &app.admin;
        let group = object("intrusion-set", "Zinc Heron");
        let mut objects = vec![group.clone()];
        for n in 0..neighbours() {
            let mut tool = object("tool", &format!("Heronkit {n}"));
            if n % (neighbours() / FEW) != 0 {
                tool["labels"] = json!(["TLP:RED"]);
            }
            objects.push(relationship(&group, "uses", &tool));
            objects.push(tool);
        }
        let everything = json!({"tlp_ceiling": "RED", "elevated_clearance": true});
        admin.settings(everything).await;
        admin.ingest(json!(objects)).await;
        let green = json!({"tlp_ceiling": "GREEN", "elevated_clearance": false});
        admin.settings(green).await;
        for mode in MODES {
            let found = ask(admin, "Which tools does Zinc Heron use?", mode).await;
            // The other results follow, such as the group itself.
            let tools = found.iter().take_while(|name| name.starts_with("Heronkit "));
            assert_eq!(tools.count(), found.len().min(FEW), "{mode}: {found:?}");
        }
        app.stop().await;
    });
}

/// Of more relationships than a step passes on, the most confident ones count.
#[test]
fn the_best_of_a_hub_is_found_among_all_its_neighbours() {
    run(async {
        let app = TestApp::spawn().await;
        let group = object("intrusion-set", "Zinc Heron");
        let mut objects = vec![group.clone()];
        let mut best = Vec::new();
        for n in 0..neighbours() {
            let tool = object("tool", &format!("Heronkit {n}"));
            let mut used = relationship(&group, "uses", &tool);
            let is_best = n % (neighbours() / FEW) == 0;
            used["confidence"] = json!(if is_best { 90 } else { 30 });
            if is_best {
                best.push(text(&tool, "name").to_owned());
            }
            objects.extend([used, tool]);
        }
        app.admin.ingest(json!(objects)).await;
        best.sort_unstable();
        for mode in MODES {
            let mut found = ask(&app.admin, "Which tools does Zinc Heron use?", mode).await;
            found.truncate(best.len());
            found.sort_unstable();
            assert_eq!(found, best, "{mode}");
        }
        app.stop().await;
    });
}

#[test]
fn what_is_denied_excepted_or_joined_is_no_answer_of_its_opposite() {
    run(async {
        let app = TestApp::shared().await;
        let client = app.workspace("denied").await;
        let groups =
            ["Alder Fox", "Birch Fox", "Cedar Fox", "Dogwood Fox"].map(|name| object("intrusion-set", name));
        let tools = ["Peckware", "Quillware", "Rookware"].map(|name| object("malware", name));
        let mut objects: Vec<Value> = groups.iter().chain(&tools).cloned().collect();
        for (group, tool) in [(0, 0), (1, 0), (1, 1), (2, 1), (3, 2)] {
            objects.push(relationship(&groups[group], "uses", &tools[tool]));
        }
        client.ingest(json!(objects)).await;
        // The answers in any order, and the word that is not understood.
        let cases: [(&str, &[&str], Option<&str>); 10] = [
            ("Which groups use Peckware?", &["Alder Fox", "Birch Fox"], None),
            (
                "Which groups do not use Peckware?",
                &["Cedar Fox", "Dogwood Fox"],
                None,
            ),
            (
                "Groups that never used Peckware",
                &["Cedar Fox", "Dogwood Fox"],
                None,
            ),
            ("malware not used by Birch Fox", &["Rookware"], None),
            (
                "Which groups use both Peckware and Quillware?",
                &["Birch Fox"],
                None,
            ),
            (
                "Which groups use Peckware or Quillware?",
                &["Alder Fox", "Birch Fox", "Cedar Fox"],
                None,
            ),
            (
                "malware used by Birch Fox but not by Cedar Fox",
                &["Peckware"],
                None,
            ),
            (
                "Which groups other than Alder Fox use Peckware?",
                &["Birch Fox"],
                None,
            ),
            ("Which groups use malware except Rookware?", &[], Some("except")),
            ("Which groups no longer use Peckware?", &[], Some("no")),
        ];
        for (question, answers, word) in cases {
            for mode in MODES {
                let found = client
                    .search_with(question, &[("mode", mode), ("explain", "true")])
                    .await;
                let results = found["results"].as_array().unwrap();
                let first = results.iter().take(answers.len()).map(|node| text(node, "name"));
                let mut first: Vec<&str> = first.collect();
                first.sort_unstable();
                assert_eq!(first, answers, "{mode}: {question}");
                let told = found["question"]["not_understood"].as_str();
                assert_eq!(told, word, "{mode}: {question}");
                let by_graph = results.iter().filter(|node| node["why"]["path"].is_array());
                let by_graph: Vec<&str> = by_graph.map(|node| text(node, "name")).collect();
                assert!(
                    by_graph.iter().all(|name| answers.contains(name)),
                    "{mode}: {question}"
                );
            }
        }
        app.stop().await;
    });
}
