//! STIX objects beside those that an ingest counts as nodes: kept, related, found and given back.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, encode, run};
use crate::stix::{id, object, relationship, text, version, with};

/// A report of an intrusion, with everything that it names.
fn incident_bundle() -> Vec<Value> {
    let actor = object("intrusion-set", "Umber Heron");
    let malware = object("malware", "Reedlock");
    let sector = with(
        object("identity", "Telecommunications Sector"),
        json!({"identity_class": "class", "sectors": ["telecommunications"]}),
    );
    let place = with(
        object("location", "Freedonia"),
        json!({"country": "FD", "region": "africa"}),
    );
    let server = with(
        object("infrastructure", "Heron relay"),
        json!({"infrastructure_types": ["command-and-control"]}),
    );
    let address = json!({"type": "ipv4-addr", "spec_version": "2.1",
        "id": "ipv4-addr--28bb3599-77cd-5a82-a950-b5bc3caf07c4", "value": "198.51.100.3"});
    let domain = json!({"type": "domain-name", "spec_version": "2.1",
        "id": "domain-name--bedb4899-d24b-5401-bc86-8f6b4cc18ec7", "value": "example.com",
        "resolves_to_refs": [address["id"]]});
    let incident = object("incident", "Outage of the Freedonian exchange");
    let sighting = json!({"type": "sighting", "spec_version": "2.1", "id": id("sighting"),
        "created": "2026-01-02T00:00:00.000Z", "modified": "2026-01-02T00:00:00.000Z",
        "sighting_of_ref": malware["id"], "where_sighted_refs": [sector["id"]], "count": 3,
        "first_seen": "2026-01-02T00:00:00.000Z"});
    let report = with(
        object("report", "Herons over Freedonia"),
        json!({"published": "2026-01-03T00:00:00Z", "report_types": ["campaign"],
            "description": "How the exchange of Freedonia was silenced by a wiper that hides in reed beds.",
            "object_refs": [actor["id"], malware["id"], incident["id"], sighting["id"]]}),
    );
    let own = json!({"type": "x-acme-ticket", "spec_version": "2.1", "id": id("x-acme-ticket"),
        "created": "2026-01-02T00:00:00.000Z", "modified": "2026-01-02T00:00:00.000Z", "queue": "night shift"});
    vec![
        relationship(&actor, "targets", &sector),
        relationship(&actor, "located-at", &place),
        relationship(&malware, "communicates-with", &address),
        relationship(&server, "consists-of", &domain),
        report,
        actor,
        malware,
        sector,
        place,
        server,
        address,
        domain,
        incident,
        sighting,
        own,
    ]
}

async fn found(client: &Client, question: &str, more: &[(&str, &str)]) -> Vec<Value> {
    let answer = client.search_with(question, more).await;
    answer["results"].as_array().unwrap().clone()
}

fn names(results: &[Value]) -> Vec<&str> {
    results.iter().map(|node| text(node, "name")).collect()
}

async fn exported(client: &Client, question: &str, more: &[(&str, &str)]) -> HashMap<String, Value> {
    let answer = client.search_with(question, more).await;
    let bundle = client.export(text(&answer, "recall_id")).await;
    let objects = bundle["objects"].as_array().unwrap().clone();
    objects
        .into_iter()
        .map(|object| (text(&object, "id").to_owned(), object))
        .collect()
}

#[test]
fn every_object_is_kept_counted_found_and_related() {
    run(async {
        let app = TestApp::shared().await;
        let objects = incident_bundle();
        let results = app.admin.ingest(json!(objects)).await;
        assert_eq!(
            (
                &results["nodes_created"],
                &results["edges_created"],
                &results["skipped"]
            ),
            (&json!(2), &json!(0), &json!(13)),
            "{results}"
        );
        assert_eq!(
            results["kept"],
            json!({"objects_created": 9, "objects_updated": 0, "relationships_created": 4})
        );
        let lost = results["skipped_by_type"].as_object().unwrap().values();
        assert!(
            lost.into_iter().all(|kind| kind["count"] == kind["kept"]),
            "{results}"
        );

        for (question, first, stix_type) in [
            ("Herons over Freedonia", "Herons over Freedonia", "report"),
            (
                "Telecommunications Sector",
                "Telecommunications Sector",
                "identity",
            ),
            ("Freedonia", "Freedonia", "location"),
            ("198.51.100.3", "198.51.100.3", "ipv4-addr"),
            ("example.com", "example.com", "domain-name"),
            ("Heron relay", "Heron relay", "infrastructure"),
        ] {
            let results = found(&app.admin, question, &[]).await;
            assert_eq!(
                text(&results[0], "name"),
                first,
                "{question}: {:?}",
                names(&results)
            );
            assert_eq!(results[0]["properties"]["stix_type"], stix_type);
        }
        let texts = found(&app.admin, "wiper that hides in reed beds", &[]).await;
        assert!(
            names(&texts).contains(&"Herons over Freedonia"),
            "{:?}",
            names(&texts)
        );

        // Only what is asked for.
        for (stix_type, want) in [
            ("sighting", vec!["sighting of malware, 3 times, 2026-01-02"]),
            ("x-acme-ticket", vec![text(&objects[14], "id")]),
            ("malware", vec!["Reedlock"]),
        ] {
            let more = [("stix_type", stix_type)];
            let results = found(&app.admin, "Freedonia wiper night shift", &more).await;
            assert_eq!(names(&results), want, "{stix_type}");
        }
        let types = [("node_type", "ioc")];
        let mut values = found(&app.admin, "address", &types).await;
        values.sort_by_key(|node| text(node, "name").to_owned());
        assert_eq!(names(&values), ["198.51.100.3", "example.com"]);
        app.stop().await;
    });
}

#[test]
fn a_node_shows_what_names_it() {
    run(async {
        let app = TestApp::shared().await;
        let objects = incident_bundle();
        app.admin.ingest(json!(objects)).await;
        let malware = format!("/api/nodes?stix_id={}", text(&objects[6], "id"));
        let detail = app.admin.get(&malware).await.expect(200).await;
        let mut related: Vec<(String, String)> = detail["relationships"]
            .as_array()
            .unwrap()
            .iter()
            .map(|edge| {
                (
                    text(edge, "relationship_type").to_owned(),
                    text(&edge["node"], "name").to_owned(),
                )
            })
            .collect();
        related.sort();
        let want = [
            ("communicates-with", "198.51.100.3"),
            ("refers-to", "Herons over Freedonia"),
            ("sighting-of", "sighting of malware, 3 times, 2026-01-02"),
        ];
        let want = want.map(|(name, node)| (name.to_owned(), node.to_owned()));
        assert_eq!(related, want, "{detail}");

        // A newer version of the report that no longer names the malware.
        let report = version(&objects[4], 2027, json!({"object_refs": [objects[5]["id"]]}));
        let results = app.admin.ingest(json!([report])).await;
        assert_eq!(results["kept"]["objects_updated"], 1, "{results}");
        let detail = app.admin.get(&malware).await.expect(200).await;
        assert!(
            !detail["relationships"].to_string().contains("Herons over"),
            "{detail}"
        );
        app.stop().await;
    });
}

#[test]
fn what_is_sent_again_is_not_new_in_any_order_of_the_parts() {
    run(async {
        let app = TestApp::shared().await;
        let objects = incident_bundle();
        let mut whole = 0;
        for object in objects.iter().rev() {
            let results = app.admin.ingest(json!([object])).await;
            whole += results["kept"]["objects_created"].as_u64().unwrap_or(0);
        }
        assert_eq!(whole, 9);
        let again = app.admin.ingest(json!(objects)).await;
        let none = json!({"objects_created": 0, "objects_updated": 0, "relationships_created": 0});
        assert_eq!(again["kept"], none, "{again}");
        assert_eq!(
            (
                &again["nodes_created"],
                &again["nodes_updated"],
                &again["waiting"]
            ),
            (&json!(0), &json!(0), &json!(0)),
            "{again}"
        );
        let back = exported(&app.admin, "Freedonia Heron example.com and its relay", &[]).await;
        for object in &objects {
            let own = back.get(text(object, "id"));
            assert!(own.is_some(), "{} is missing", object["id"]);
            for (key, value) in object.as_object().unwrap() {
                assert_eq!(
                    own.and_then(|own| own.get(key)),
                    Some(value),
                    "{} {key}",
                    object["id"]
                );
            }
        }
        app.stop().await;
    });
}

#[test]
fn a_report_leaves_with_what_it_names_and_not_without() {
    run(async {
        let app = TestApp::shared().await;
        let secret = with(
            object("malware", "Nightreed"),
            json!({"object_marking_refs": ["marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed"]}),
        );
        let open = object("malware", "Dayreed");
        let report = |name: &str, refs: Vec<&Value>| {
            let refs: Vec<&Value> = refs.iter().map(|object| &object["id"]).collect();
            with(
                object("report", name),
                json!({"published": "2026-01-03T00:00:00Z", "object_refs": refs}),
            )
        };
        let (one, two) = (
            report("On reeds by day", vec![&open, &secret]),
            report("On reeds by night", vec![&secret]),
        );
        app.admin.ingest(json!([secret, open, one, two])).await;
        let more = [("stix_type", "report")];
        let answer = app.admin.search_with("reeds", &more).await;
        assert_eq!(answer["count"], 2, "{answer}");
        let path = format!("/api/recall/sessions/{}/export.stix", text(&answer, "recall_id"));
        let answer = app.admin.get(&path).await;
        assert_eq!(
            answer.header("x-held-back"),
            Some("1"),
            "the report on nothing that may leave"
        );
        let bundle = answer.expect(200).await.to_string();
        assert!(
            bundle.contains("On reeds by day") && bundle.contains("Dayreed"),
            "{bundle}"
        );
        assert!(
            !bundle.contains("by night") && !bundle.contains(text(&secret, "id")),
            "{bundle}"
        );
        app.stop().await;
    });
}

#[test]
fn a_report_leaves_with_the_relationships_that_it_names_whichever_row_they_stand_in() {
    for is_hidden_first in [false, true] {
        run(async move {
            let app = TestApp::shared().await;
            let (actor, malware) = (
                object("intrusion-set", "Reed Heron"),
                object("malware", "Duskreed"),
            );
            let uses = relationship(&actor, "uses", &malware);
            let report = with(
                object("report", "On the heron of reeds"),
                json!({"published": "2026-01-03T00:00:00Z",
                    "object_refs": [actor["id"], malware["id"], uses["id"]]}),
            );
            app.admin.ingest(json!([actor, malware])).await;
            if is_hidden_first {
                let rights =
                    |ceiling: &str, sees: bool| json!({"tlp_ceiling": ceiling, "elevated_clearance": sees});
                app.admin.settings(rights("TLP:RED", true)).await;
                let red = json!({"x_mitre_tlp": "TLP:RED"});
                app.admin.ingest(json!([with(uses.clone(), red)])).await;
                app.admin.settings(rights("TLP:AMBER", false)).await;
            }
            app.admin
                .ingest(json!([version(&uses, 2024, json!({})), report]))
                .await;
            let back = exported(&app.admin, "On the heron of reeds", &[("stix_type", "report")]).await;
            assert!(
                back.contains_key(text(&uses, "id")),
                "hidden first: {is_hidden_first}: {back:?}"
            );
            assert_eq!(back[text(&report, "id")]["object_refs"], report["object_refs"]);
            app.stop().await;
        });
    }
}

#[test]
fn a_report_of_a_relationship_alone_leaves_with_both_its_ends() {
    run(async {
        let app = TestApp::shared().await;
        let (actor, tool) = (object("intrusion-set", "Plover"), object("tool", "Plover of tin"));
        let uses = relationship(&actor, "uses", &tool);
        let refs = json!({"published": "2024-05-02T00:00:00Z", "object_refs": [uses["id"]]});
        let report = with(object("report", "What was used"), refs);
        app.admin.ingest(json!([actor, tool, uses, report])).await;
        let back = exported(&app.admin, text(&report, "id"), &[]).await;
        for one in [&actor, &tool, &uses, &report] {
            assert!(back.contains_key(text(one, "id")), "{one}: {back:?}");
        }
        app.stop().await;
    });
}

#[test]
fn a_relationship_of_something_hidden_counts_nowhere_in_the_export_of_a_report() {
    run(async {
        let mut told = Vec::new();
        for is_there in [true, false] {
            let app = TestApp::shared().await;
            let rights =
                |ceiling: &str, sees: bool| json!({"tlp_ceiling": ceiling, "elevated_clearance": sees});
            let (seen, tool) = (
                object("malware", "Plover of tin"),
                object("tool", "Plover of lead"),
            );
            let hidden = with(tool, json!({"x_mitre_tlp": "TLP:RED"}));
            let uses = relationship(&seen, "uses", &hidden);
            let refs = json!({"published": "2024-05-02T00:00:00Z", "object_refs": [seen["id"], uses["id"]]});
            let report = with(object("report", "What plovers use"), refs);
            if is_there {
                app.admin.settings(rights("TLP:RED", true)).await;
                app.admin.ingest(json!([seen, hidden, uses])).await;
                app.admin.settings(rights("TLP:AMBER", false)).await;
            }
            app.admin.ingest(json!([seen, report])).await;
            let found = app.admin.search(text(&report, "id")).await;
            let path = format!("/api/recall/sessions/{}/export.stix", text(&found, "recall_id"));
            let answer = app.admin.get(&path).await;
            let held_back = answer.header("x-held-back").map(str::to_owned);
            let bundle = answer.expect(200).await;
            let mut kinds: Vec<&str> = bundle["objects"]
                .as_array()
                .unwrap()
                .iter()
                .map(|o| text(o, "type"))
                .collect();
            kinds.sort_unstable();
            told.push((held_back, json!(kinds)));
            app.stop().await;
        }
        assert_eq!(told[0], told[1]);
    });
}

#[test]
fn what_is_revoked_leaves_with_a_report_of_it_if_it_is_asked_for() {
    run(async {
        let app = TestApp::shared().await;
        let gone = with(object("malware", "Heron of clay"), json!({"revoked": true}));
        let stays = object("malware", "Heron of glass");
        let refs = json!({"published": "2024-05-02T00:00:00Z", "object_refs": [gone["id"], stays["id"]]});
        let report = with(object("report", "Two herons in one report"), refs);
        app.admin.ingest(json!([gone, stays, report])).await;
        let question = text(&report, "id");
        let back = exported(&app.admin, question, &[]).await;
        assert_eq!(back[question]["object_refs"], json!([stays["id"]]));
        let back = exported(&app.admin, question, &[("include_rejected", "true")]).await;
        assert_eq!(back[question]["object_refs"], report["object_refs"]);
        assert_eq!(back[text(&gone, "id")]["revoked"], true);
        app.stop().await;
    });
}

#[test]
fn notes_on_notes_leave_however_long_their_chain_is() {
    run(async {
        let app = TestApp::shared().await;
        let mut chain = vec![object("malware", "Crane of slate")];
        for number in 0..60 {
            let about = chain.last().unwrap()["id"].clone();
            let content = json!({"content": format!("Remark {number}."), "object_refs": [about]});
            chain.push(with(object("note", "Remark"), content));
        }
        app.admin.ingest(json!(chain)).await;
        let last = text(chain.last().unwrap(), "id");
        let back = exported(&app.admin, last, &[]).await;
        let lost: Vec<&Value> = chain
            .iter()
            .filter(|one| !back.contains_key(text(one, "id")))
            .collect();
        assert!(lost.is_empty(), "{lost:?}");
        app.stop().await;
    });
}

#[test]
fn an_observable_is_the_node_of_its_value() {
    run(async {
        let app = TestApp::shared().await;
        let nodes = json!({"nodes": [{"name": "198.51.100.3", "node_type": "ioc"}]});
        app.admin.send_in("analyst", &nodes).await;
        let address = json!({"type": "ipv4-addr", "spec_version": "2.1",
            "id": "ipv4-addr--28bb3599-77cd-5a82-a950-b5bc3caf07c4", "value": "198.51.100.3"});
        let results = app.admin.ingest(json!([address])).await;
        assert_eq!(results["kept"]["objects_created"], 1, "{results}");
        let results = found(&app.admin, "198.51.100.3", &[]).await;
        assert_eq!(results.len(), 1, "{results:?}");
        assert_eq!(results[0]["properties"]["stix_id"], address["id"]);
        // The other way round.
        let other = json!({"type": "domain-name", "spec_version": "2.1",
            "id": "domain-name--bedb4899-d24b-5401-bc86-8f6b4cc18ec7", "value": "example.com"});
        app.admin.ingest(json!([other])).await;
        let nodes = json!({"nodes": [{"name": "example.com", "node_type": "ioc"}]});
        app.admin.send_in("analyst", &nodes).await;
        let results = found(&app.admin, "example.com", &[]).await;
        assert_eq!(results.len(), 1, "{results:?}");
        app.stop().await;
    });
}

#[test]
fn an_unknown_stix_type_in_a_filter_is_named() {
    run(async {
        let app = TestApp::shared().await;
        for stix_type in ["", "Report", "report,", "re port"] {
            let query = encode(&[("q", "x"), ("stix_type", stix_type)]);
            let answer = app.admin.get(&format!("/api/recall/search?{query}")).await;
            let error = answer.expect(400).await;
            assert!(text(&error, "error").contains("stix_type"), "{error}");
        }
        app.stop().await;
    });
}
