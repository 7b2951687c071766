//! Questions about the objects that give context: victims, places, reports, sightings, infrastructure, observables, and what
//! ATT&CK says of detection, tactics and assets.

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, run};
use crate::stix::{id, object, relationship, text, with};

const MODES: [&str; 2] = ["blended", "structured"];
const RED: &str = "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed";

/// The names of the first results, best first.
async fn ask(client: &Client, question: &str, mode: &str, most: usize) -> Vec<String> {
    let found = client.search_with(question, &[("mode", mode)]).await;
    let results = found["results"].as_array().unwrap().iter().take(most);
    results.map(|node| text(node, "name").to_owned()).collect()
}

/// Asks questions, each with all its answers; what merely fits the words comes behind them.
async fn check(client: &Client, questions: &[(&str, &[&str])]) {
    for mode in MODES {
        for (question, answers) in questions {
            let mut found = ask(client, question, mode, answers.len()).await;
            let mut wanted: Vec<&str> = answers.to_vec();
            found.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{mode}: {question}");
        }
    }
}

fn observable(kind: &str, suffix: &str, value: &str) -> Value {
    json!({"type": kind, "spec_version": "2.1", "id": format!("{kind}--28bb3599-77cd-5a82-a950-{suffix}"), "value": value})
}

fn seen(of: &Value, places: &[&Value], day: &str) -> Value {
    let places: Vec<&Value> = places.iter().map(|place| &place["id"]).collect();
    json!({"type": "sighting", "spec_version": "2.1", "id": id("sighting"), "created": day, "modified": day,
        "sighting_of_ref": of["id"], "where_sighted_refs": places, "count": 3, "first_seen": day, "last_seen": day})
}

fn report(name: &str, published: &str, about: &[&Value]) -> Value {
    let refs: Vec<&Value> = about.iter().map(|object| &object["id"]).collect();
    with(
        object("report", name),
        json!({"published": published, "report_types": ["campaign"], "object_refs": refs}),
    )
}

/// Two groups with their malware, victims, homes, infrastructure, and what was reported and seen of them.
fn world() -> Vec<Value> {
    let class = |name: &str, sectors: Value| {
        with(
            object("identity", name),
            json!({"identity_class": "class", "sectors": sectors}),
        )
    };
    let heron = object("intrusion-set", "Umber Heron");
    let otter = object("intrusion-set", "Slate Otter");
    let reedlock = object("malware", "Reedlock");
    let sluice = object("malware", "Sluicegate");
    let telecoms = class("Telecommunications Sector", json!(["telecommunications"]));
    let banks = class("Financial Services", json!(["financial-services"]));
    let exchange = with(
        object("identity", "Northern Exchange"),
        json!({"identity_class": "organization"}),
    );
    let freedonia = with(object("location", "Freedonia"), json!({"country": "FD"}));
    let sylvania = with(object("location", "Sylvania"), json!({"country": "SY"}));
    let server = object("infrastructure", "Heron relay");
    let address = observable("ipv4-addr", "b5bc3caf07c4", "203.0.113.7");
    let mut domain = observable("domain-name", "8f6b4cc18ec7", "cdn.reeds.example");
    domain["resolves_to_refs"] = json!([address["id"]]);
    let indicator = with(
        object("indicator", "Reed beacon"),
        json!({"pattern": "[domain-name:value = 'cdn.reeds.example']", "pattern_type": "stix",
            "valid_from": "2024-01-01T00:00:00Z"}),
    );
    let links = vec![
        relationship(&heron, "uses", &reedlock),
        relationship(&otter, "uses", &sluice),
        relationship(&heron, "targets", &telecoms),
        relationship(&otter, "targets", &banks),
        relationship(&otter, "targets", &telecoms),
        relationship(&heron, "targets", &sylvania),
        relationship(&heron, "located-at", &freedonia),
        relationship(&otter, "originates-from", &sylvania),
        relationship(&exchange, "located-at", &sylvania),
        relationship(&server, "hosts", &reedlock),
        relationship(&server, "consists-of", &address),
        relationship(&heron, "uses", &server),
        relationship(&sluice, "communicates-with", &domain),
        relationship(&indicator, "based-on", &domain),
        relationship(&indicator, "indicates", &sluice),
    ];
    let told = vec![
        seen(&reedlock, &[&exchange, &sylvania], "2024-03-01T00:00:00Z"),
        report(
            "Herons over Freedonia",
            "2024-06-03T00:00:00Z",
            &[&heron, &reedlock],
        ),
        report("Reeds in winter", "2023-01-03T00:00:00Z", &[&heron, &telecoms]),
    ];
    let things = vec![
        heron, otter, reedlock, sluice, telecoms, banks, exchange, freedonia, sylvania, server, address,
        domain, indicator,
    ];
    [things, links, told].concat()
}

#[test]
fn victims_places_reports_sightings_and_infrastructure_answer_in_both_modes() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.ingest(json!(world())).await;
        check(
            &app.admin,
            &[
                (
                    "Which groups target telecommunications?",
                    &["Umber Heron", "Slate Otter"],
                ),
                ("Who attacks financial services?", &["Slate Otter"]),
                (
                    "Which sectors does Umber Heron target?",
                    &["Telecommunications Sector"],
                ),
                ("Which countries are targeted by Umber Heron?", &["Sylvania"]),
                ("who operates from Freedonia", &["Umber Heron"]),
                ("groups located in Sylvania", &["Slate Otter"]),
                ("Where was Reedlock sighted?", &["Northern Exchange", "Sylvania"]),
                (
                    "reports about Umber Heron since May 2024",
                    &["Herons over Freedonia"],
                ),
                (
                    "Which reports mention Umber Heron?",
                    &["Herons over Freedonia", "Reeds in winter"],
                ),
                ("reports published in 2023", &["Reeds in winter"]),
                ("which infrastructure hosts Reedlock", &["Heron relay"]),
                ("Which infrastructure does Umber Heron use?", &["Heron relay"]),
                (
                    "Which organizations are located in Sylvania?",
                    &["Northern Exchange"],
                ),
                (
                    "Which groups target both telecommunications and financial services?",
                    &["Slate Otter"],
                ),
                (
                    "Which groups target telecommunications but not financial services?",
                    &["Umber Heron"],
                ),
            ],
        )
        .await;
    });
}

#[test]
fn observables_answer_by_what_they_resolve_to_and_what_communicates_with_them() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.ingest(json!(world())).await;
        let questions: &[(&str, &[&str])] = &[
            ("what does 203.0.113.7 resolve to", &["cdn.reeds.example"]),
            ("which domains resolve to 203.0.113.7", &["cdn.reeds.example"]),
            ("what does cdn.reeds.example resolve to", &["203.0.113.7"]),
            ("what communicates with cdn.reeds.example", &["Sluicegate"]),
            (
                "what is the indicator Reed beacon based on",
                &["cdn.reeds.example"],
            ),
        ];
        check(&app.admin, questions).await;
        // A domain of which another source tells, too, is counted as a node, and still a domain.
        let item = json!({"title": "cdn.reeds.example", "type": "ioc", "description": "Seen at night."});
        app.admin
            .send_in("osint", &json!({"collector": "rss", "items": [item]}))
            .await;
        check(&app.admin, questions).await;
    });
}

/// Techniques with the tactics that they serve, what detects them in the models of ATT&CK before and since its version 18,
/// and the devices that they target.
fn attack() -> Vec<Value> {
    let phase = |name: &str| json!({"kill_chain_phases": [{"kill_chain_name": "mitre-ics-attack", "phase_name": name}]});
    let sluice = with(
        object("attack-pattern", "Rogue Sluice Commands"),
        phase("flooding"),
    );
    let alarm = with(object("attack-pattern", "Alarm Muffling"), phase("silence"));
    let heron = object("malware", "Marshgate");
    let tactic = |name: &str, short: &str| {
        with(
            object("x-mitre-tactic", name),
            json!({"x_mitre_shortname": short}),
        )
    };
    let source = object("x-mitre-data-source", "Gauge");
    let gauge = with(
        object("x-mitre-data-component", "Gauge Readings"),
        json!({"x_mitre_data_source_ref": source["id"]}),
    );
    let level = object("x-mitre-data-component", "Water Level Log");
    let analytic = with(
        object("x-mitre-analytic", "Analytic 0042"),
        json!({"x_mitre_log_source_references": [
            {"x_mitre_data_component_ref": level["id"], "name": "level", "channel": "none"},
            {"x_mitre_data_component_ref": level["id"], "name": "level", "channel": "other"}]}),
    );
    let strategy = with(
        object("x-mitre-detection-strategy", "Watching the sluices"),
        json!({"x_mitre_analytic_refs": [analytic["id"]]}),
    );
    let gate = object("x-mitre-asset", "Programmable Gate Controller (PGC)");
    vec![
        relationship(&strategy, "detects", &sluice),
        relationship(&gauge, "detects", &alarm),
        relationship(&sluice, "targets", &gate),
        relationship(&heron, "uses", &sluice),
        tactic("Great Flooding", "flooding"),
        tactic("Silence of Alarms", "silence"),
        sluice,
        alarm,
        heron,
        source,
        gauge,
        level,
        analytic,
        strategy,
        gate,
    ]
}

#[test]
fn detection_tactics_and_assets_of_attack_answer_in_both_of_its_models() {
    run(async {
        let app = TestApp::shared().await;
        app.admin.ingest(json!(attack())).await;
        check(
            &app.admin,
            &[
                (
                    "How can I detect Rogue Sluice Commands?",
                    &["Watching the sluices"],
                ),
                (
                    "Which analytics detect Rogue Sluice Commands?",
                    &["Analytic 0042"],
                ),
                (
                    "Which data components detect Rogue Sluice Commands?",
                    &["Water Level Log"],
                ),
                ("How can I detect Alarm Muffling?", &["Gauge Readings", "Gauge"]),
                ("Which data sources help to detect Alarm Muffling?", &["Gauge"]),
                ("How is Marshgate detected?", &["Watching the sluices"]),
                (
                    "techniques of the tactic Great Flooding",
                    &["Rogue Sluice Commands"],
                ),
                ("Which tactics does Alarm Muffling serve?", &["Silence of Alarms"]),
                ("Which tactics does Marshgate use?", &["Great Flooding"]),
                ("Which techniques target PGCs?", &["Rogue Sluice Commands"]),
                (
                    "Which assets does Marshgate target?",
                    &["Programmable Gate Controller (PGC)"],
                ),
            ],
        )
        .await;
    });
}

/// The answers, with their scores and the ways to them, are those of a graph that never had the hidden rows.
#[test]
fn hidden_context_leads_nowhere() {
    run(async {
        let app = TestApp::shared().await;
        let open = [world(), attack()].concat();
        let named = |name: &str| {
            let is_it = |object: &&Value| object["name"] == name || object["value"] == name;
            open.iter().find(is_it).unwrap()
        };
        let red = |object: Value| with(object, json!({"object_marking_refs": [RED]}));
        let (heron, otter, reedlock) = (named("Umber Heron"), named("Slate Otter"), named("Reedlock"));
        let (telecoms, sylvania) = (named("Telecommunications Sector"), named("Sylvania"));
        let alarm = named("Alarm Muffling");
        let class = json!({"identity_class": "class", "sectors": ["telecommunications"]});
        let things = [
            with(object("identity", "Veiled Sector"), class),
            object("location", "Veiled Country"),
            object("infrastructure", "Veiled relay"),
            object("x-mitre-detection-strategy", "Veiled strategy"),
            with(object("x-mitre-tactic", "Veiled tactic"), json!({"x_mitre_shortname": "silence"})),
            with(
                object("attack-pattern", "Veiled technique"),
                json!({"kill_chain_phases": [{"kill_chain_name": "mitre-ics-attack", "phase_name": "silence"}]}),
            ),
            object("intrusion-set", "Veiled group"),
            report("Veiled report", "2024-06-04T00:00:00Z", &[heron]),
            seen(reedlock, &[telecoms], "2024-03-02T00:00:00Z"),
        ]
        .map(red);
        let [sector, country, relay, strategy, _, _, group, _, _] = &things;
        let links = [
            relationship(heron, "targets", sector),
            relationship(heron, "targets", country),
            relationship(group, "targets", telecoms),
            relationship(group, "located-at", sylvania),
            relationship(relay, "hosts", reedlock),
            relationship(strategy, "detects", alarm),
        ];
        // Hidden relationships between visible nodes.
        let hidden_links = [
            relationship(otter, "located-at", named("Freedonia")),
            relationship(otter, "uses", named("Heron relay")),
            relationship(reedlock, "communicates-with", named("cdn.reeds.example")),
            relationship(heron, "targets", named("Financial Services")),
        ]
        .map(red);
        let plain = app.workspace("plain").await;
        let hiding = app.workspace("hiding").await;
        plain.ingest(json!(open)).await;
        hiding
            .settings(json!({"tlp_ceiling": "RED", "elevated_clearance": true}))
            .await;
        hiding
            .ingest(json!([open.as_slice(), &things, &links, &hidden_links].concat()))
            .await;
        hiding
            .settings(json!({"tlp_ceiling": "GREEN", "elevated_clearance": false}))
            .await;
        for question in [
            "Which groups target telecommunications?",
            "Which sectors does Umber Heron target?",
            "Which countries are targeted by Umber Heron?",
            "who operates from Freedonia",
            "groups located in Sylvania",
            "Where was Reedlock sighted?",
            "reports about Umber Heron since May 2024",
            "reports published in 2024",
            "which infrastructure hosts Reedlock",
            "Which groups use the infrastructure Heron relay?",
            "what communicates with cdn.reeds.example",
            "How can I detect Alarm Muffling?",
            "Which tactics does Alarm Muffling serve?",
            "techniques of the tactic Silence of Alarms",
            "Which groups target Veiled Country?",
        ] {
            for mode in MODES {
                let told = async |client: &Client| {
                    let more = [("mode", mode), ("explain", "true")];
                    let found = client.search_with(question, &more).await;
                    let row = |node: &Value| {
                        let path = node["why"]["path"].as_array();
                        let steps: Vec<&str> = path
                            .into_iter()
                            .flatten()
                            .map(|step| text(step, "name"))
                            .collect();
                        (
                            text(node, "name").to_owned(),
                            node["score"].to_string(),
                            steps.join(" > "),
                        )
                    };
                    found["results"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(row)
                        .collect::<Vec<_>>()
                };
                let (expected, found) = (told(&plain).await, told(&hiding).await);
                let is_related = |rows: &[(String, String, String)]| {
                    let related = rows.iter().filter(|(_, _, path)| !path.is_empty());
                    let mut related: Vec<_> = related.cloned().collect();
                    related.sort();
                    related
                };
                assert_eq!(is_related(&found), is_related(&expected), "{mode}: {question}");
                assert!(
                    !format!("{found:?}").contains("Veiled"),
                    "{mode}: {question}: {found:?}"
                );
            }
        }
        app.stop().await;
    });
}
