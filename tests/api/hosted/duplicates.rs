//! Likely duplicates are listed with reasons, and "not the same" is remembered; disputed names are nobody's by any way in; each
//! alias says who stated it.

use serde_json::{Value, json};

use super::merges::{aliases, detail, merge, node_of};
use crate::helpers::{Client, TestApp, encode, run};
use crate::stix::{object, text, with};

async fn pairs(client: &Client, more: &[(&str, &str)]) -> Value {
    let path = format!("/api/nodes/duplicates?{}", encode(more));
    client.get(&path).await.expect(200).await
}

/// The names in each pair, and what they share.
fn told(answer: &Value) -> Vec<[String; 3]> {
    let all = answer["duplicates"].as_array().unwrap().iter();
    let mut told: Vec<[String; 3]> = all
        .map(|pair| {
            let mut names = ["first", "second"].map(|end| text(&pair[end], "name").to_owned());
            names.sort_unstable();
            let reasons = pair["reasons"].as_array().unwrap().iter();
            let reasons = reasons.map(|one| format!("{} {}", text(one, "by"), text(one, "text")));
            let [one, other] = names;
            // Which of the nodes is the first, and so writes it, is by chance.
            let reasons = reasons.collect::<Vec<_>>().join(", ").to_lowercase();
            let reasons = reasons.replace("weir-team", "weir team");
            [one, other, reasons]
        })
        .collect();
    told.sort_unstable();
    told
}

fn group(name: &str, aliases: &[&str], tlp: &str) -> Value {
    with(
        object("intrusion-set", name),
        json!({"aliases": aliases, "x_mitre_tlp": tlp}),
    )
}

#[test]
fn likely_duplicates_are_those_that_share_something_the_caller_sees() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let clear =
            |ceiling: &str, elevated: bool| json!({"tlp_ceiling": ceiling, "elevated_clearance": elevated});
        admin.settings(clear("TLP:RED", true)).await;
        let wader = group("Grey Wader", &["Wader Group", "Weir Team"], "TLP:GREEN");
        let other = group("Pale-Wader", &["wader group", "Weir-Team"], "TLP:GREEN");
        let red = group("Red Wader", &["Grey Wader"], "TLP:RED");
        let tool = with(object("tool", "Wader Group"), json!({"x_mitre_tlp": "TLP:GREEN"}));
        let value = |name: &str| {
            let pattern =
                json!({"pattern": "[domain-name:value = 'weir-c2.com']", "x_mitre_tlp": "TLP:GREEN"});
            with(object("indicator", name), pattern)
        };
        let values = [value("Alert one"), value("Alert two")];
        admin
            .ingest(json!([wader, other, red, tool, values[0], values[1]]))
            .await;
        let all = pairs(admin, &[]).await;
        let of_values = ["Alert one", "Alert two", "value weir-c2.com"].map(str::to_owned);
        let of_groups = ["Grey Wader", "Pale-Wader", "alias wader group, alias weir team"].map(str::to_owned);
        let of_red = ["Grey Wader", "Red Wader", "alias grey wader"].map(str::to_owned);
        assert_eq!(told(&all), [of_values.clone(), of_groups.clone(), of_red]);
        assert!(all["next_cursor"].is_null());
        let actors = pairs(admin, &[("node_type", "actor")]).await;
        assert_eq!(told(&actors).len(), 2);

        // Page by page it is the same.
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let mut query = vec![("limit", "1")];
            if !cursor.is_empty() {
                query.push(("cursor", &cursor));
            }
            let page = pairs(admin, &query).await;
            paged.extend(told(&page));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        paged.sort_unstable();
        assert_eq!(paged, told(&all));

        admin.settings(clear("TLP:AMBER", false)).await;
        let seen = pairs(admin, &[]).await;
        assert_eq!(told(&seen), [of_values.clone(), of_groups.clone()]);
        assert!(!seen.to_string().contains("Red Wader"));

        let [one, two] = [node_of(admin, &wader).await, node_of(admin, &other).await];
        let path = format!("/api/nodes/{one}/distinct");
        let body = json!({"from": two});
        admin.post(&path, &body).await.expect(200).await;
        admin.post(&path, &body).await.expect(200).await;
        assert_eq!(told(&pairs(admin, &[]).await), std::slice::from_ref(&of_values));
        let refused = admin
            .post(&format!("/api/nodes/{two}/merge"), &json!({"into": one}))
            .await;
        let error = refused.refused(409).await;
        assert!(error.contains("not the same"), "{error}");
        admin.delete(&format!("{path}/{two}")).await.expect(200).await;
        assert_eq!(told(&pairs(admin, &[]).await), [of_values, of_groups]);
        assert_eq!(admin.audited("node.distinct").await.len(), 1);
        assert_eq!(admin.audited("node.not_distinct").await.len(), 1);
        merge(admin, &two, &one).await;
        let [first, second] = [node_of(admin, &values[0]).await, node_of(admin, &values[1]).await];
        merge(admin, &first, &second).await;
        assert_eq!(pairs(admin, &[]).await["duplicates"], json!([]));

        for (body, status, starts) in [
            (json!({"from": one}), 400, "from: must be another node"),
            (json!({}), 400, "from: "),
            (
                json!({"from": "00000000-0000-4000-8000-000000000000"}),
                404,
                "from: node not found",
            ),
        ] {
            let error = admin.post(&path, &body).await.refused(status).await;
            assert!(error.starts_with(starts), "{error}");
        }
        for query in ["cursor=x", "limit=0", "limit=501", "node_type=x"] {
            let path = format!("/api/nodes/duplicates?{query}");
            let error = admin.get(&path).await.refused(400).await;
            assert!(error.starts_with(query.split('=').next().unwrap()), "{error}");
        }
        app.stop().await;
    });
}

/// Names that the MISP galaxies give to two clusters each.
const DISPUTES: [(&str, [&str; 2]); 2] = [
    ("Berserk Bear", ["ENERGETIC BEAR", "DYMALLOY"]),
    ("Mint Sandstorm", ["APT42", "Magic Hound"]),
];

#[test]
fn a_name_in_dispute_is_nobodys_by_any_way_in() {
    run(async {
        let app = TestApp::shared().await;
        for (name, carriers) in DISPUTES {
            for way in ["stix", "misp", "osint", "report", "analyst"] {
                let client = app.workspace("disputes").await;
                client.open().await;
                let groups = carriers.map(|carrier| group(carrier, &[name], "TLP:GREEN"));
                client.ingest(json!(groups)).await;
                let body = match way {
                    "stix" => json!({"bundle": [group(name, &[], "TLP:GREEN")]}),
                    "misp" => json!({"default_tlp": "TLP:GREEN", "event": {"Event": {
                        "uuid": "11111111-aaaa-4aaa-8aaa-000000000002", "info": "bears", "distribution": "3",
                        "timestamp": "1700000000", "Orgc": {"name": "Testers"}, "Attribute": [{
                            "uuid": "22222222-aaaa-4aaa-8aaa-000000000003", "type": "threat-actor",
                            "category": "Attribution", "value": name, "to_ids": false, "distribution": "5",
                            "timestamp": "1700000000", "comment": ""}]}}}),
                    "osint" => {
                        json!({"collector": "rss", "items": [{"title": name, "type": "actor", "tlp": "green"}]})
                    }
                    "report" => json!({"title": "Bears", "content_blocks": [
                        {"entity_name": name, "node_type": "actor", "tlp": "TLP:GREEN"}]}),
                    _ => json!({"nodes": [{"name": name, "node_type": "actor", "tlp": "TLP:GREEN"}]}),
                };
                let answer = client.post(&format!("/api/ingest/{way}"), &body).await;
                let answer = answer.expect(201).await;
                let warnings = answer["results"]["warnings"].to_string();
                let names_both = carriers.iter().all(|carrier| warnings.contains(carrier));
                assert!(
                    names_both && warnings.contains("carried by several nodes"),
                    "{way}: {answer}"
                );
                let own = client.one(name).await;
                assert_eq!(own["node_type"], "actor", "{way}");
                for sent in &groups {
                    let found = detail(&client, &node_of(&client, sent).await).await;
                    assert_eq!(found["evidence"].as_array().unwrap().len(), 1, "{way}");
                }
                let text = format!("The group {name} was seen at the dam again.");
                let found = client
                    .post(
                        "/api/ingest/preview",
                        &json!({"text": text, "default_tlp": "TLP:GREEN"}),
                    )
                    .await
                    .expect(200)
                    .await;
                assert!(found["entities"].to_string().contains(name), "{way}: {found}");
            }
            let client = app.workspace("disputes").await;
            client.open().await;
            let groups = carriers.map(|carrier| group(carrier, &[name], "TLP:GREEN"));
            client.ingest(json!(groups)).await;
            let text = format!("The group {name} was seen at the dam again.");
            let body = json!({"text": text, "default_tlp": "TLP:GREEN", "ingest_mode": "auto"});
            let found = client.post("/api/ingest/preview", &body).await.expect(200).await;
            let entities = found["entities"].as_array().unwrap();
            let entity = entities.iter().find(|entity| entity["name"] == name).unwrap();
            assert_eq!(entity["status"], "pending", "{entity}");
            let candidates = entity["duplicate_candidates"].to_string();
            assert!(
                carriers.iter().all(|carrier| candidates.contains(carrier)),
                "{entity}"
            );
        }
        app.stop().await;
    });
}

#[test]
fn each_alias_says_who_stated_it() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let entry = |aliases: &[&str], source: &str, tlp: &str| {
            json!({"source": source, "nodes": [
                {"name": "Grey Heron", "node_type": "actor", "tlp": tlp, "source": source,
                 "properties": {"aliases": aliases, "aliases_from": {"Forged": ["nobody"]}}}]})
        };
        let send = async |aliases: &[&str], source: &str, tlp: &str| {
            let body = entry(aliases, source, tlp);
            admin.post("/api/ingest/analyst", &body).await.expect(201).await;
        };
        send(&["Weirwader"], "Vendor A", "TLP:GREEN").await;
        let node = admin.one("Grey Heron").await;
        let own = text(&node, "source").to_owned();
        assert!(node["properties"]["aliases_from"].is_null(), "{node}");
        let sent = with(
            object("intrusion-set", "Grey Heron"),
            json!({"aliases": ["Weirwader", "Rushbird"], "x_mitre_tlp": "TLP:GREEN"}),
        );
        admin.ingest(json!([sent])).await;
        let node = admin.one("Grey Heron").await;
        let stix = text(&node, "source").to_owned();
        assert_ne!(own, stix);
        assert_eq!(
            node["properties"]["aliases_from"],
            json!({"Weirwader": [stix, own]}),
            "{node}"
        );
        let other = json!({"title": "Herons", "source_name": "Weir Lab", "content_blocks": [
            {"entity_name": "Grey Heron", "node_type": "actor", "tlp": "TLP:GREEN"}]});
        admin.post("/api/ingest/report", &other).await.expect(201).await;
        send(&["Mudfoot"], "Vendor A", "TLP:GREEN").await;
        let node = admin.one("Grey Heron").await;
        assert_eq!(node["properties"]["aliases_from"]["Mudfoot"], json!([own]));
        // What is said at a stricter marking is in no alias, and so is who says it.
        send(&["Hidden Heron"], "Vendor A", "TLP:AMBER").await;
        let node = admin.one("Grey Heron").await;
        assert!(!node["properties"].to_string().contains("Hidden Heron"));
        assert_eq!(aliases(&node), ["Mudfoot", "Rushbird", "Weirwader"]);
        app.stop().await;
    });
}
