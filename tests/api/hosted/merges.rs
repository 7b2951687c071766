//! Two nodes that are one thing are merged: every read has one, what is hidden stays hidden, and taking it back restores both.

use serde_json::{Value, json};

use super::lookup::{enter, indicator, look_up};
use crate::helpers::{Client, TestApp, run};
use crate::stix::{names, object, relationship, text, with};

/// The id of the node of a STIX object.
pub async fn node_of(client: &Client, object: &Value) -> String {
    let path = format!("/api/nodes?stix_id={}", text(object, "id"));
    let found = client.get(&path).await.expect(200).await;
    let id = found["redirected_from"].as_str().or(found["node"]["id"].as_str());
    id.unwrap().to_owned()
}

pub async fn detail(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/nodes/{id}")).await.expect(200).await
}

pub async fn merge(client: &Client, node: &str, into: &str) -> Value {
    let body = json!({"into": into, "reason": "one group in two reports"});
    let path = format!("/api/nodes/{node}/merge");
    client.post(&path, &body).await.expect(200).await
}

pub async fn unmerge(client: &Client, node: &str) -> Value {
    let path = format!("/api/nodes/{node}/unmerge");
    client.post(&path, &json!({})).await.expect(200).await
}

fn others(detail: &Value) -> Vec<String> {
    let all = detail["relationships"].as_array().unwrap().iter();
    let mut names: Vec<String> = all.map(|one| text(&one["node"], "name").to_owned()).collect();
    names.sort_unstable();
    names
}

pub fn aliases(node: &Value) -> Vec<String> {
    let all = node["properties"]["aliases"].as_array();
    let mut all: Vec<String> = all
        .into_iter()
        .flatten()
        .map(|alias| alias.as_str().unwrap().to_owned())
        .collect();
    all.sort_unstable();
    all
}

/// What the pages and reports of two groups say, which turn out to be one.
struct Groups {
    objects: Vec<Value>,
    /// The group that stands, and the one that is merged into it.
    ids: [String; 2],
}

async fn two_groups(client: &Client) -> Groups {
    let standing = with(
        object("intrusion-set", "Amber Falcon"),
        json!({"aliases": ["Falcon Team"]}),
    );
    let merged = with(
        object("intrusion-set", "Quiet Heron"),
        json!({"aliases": ["Heron Crew"], "description": "Steals drawings of turbines."}),
    );
    let (first, second) = (object("malware", "BlueDoor"), object("malware", "RedLatch"));
    let value = indicator("Heron host", "[domain-name:value = 'heron-c2.com']");
    let links = [
        relationship(&standing, "uses", &first),
        relationship(&merged, "uses", &second),
        relationship(&value, "indicates", &merged),
    ];
    let mut objects = vec![standing, merged, first, second, value];
    objects.extend(links);
    client.ingest(json!(objects)).await;
    let ids = [
        node_of(client, &objects[0]).await,
        node_of(client, &objects[1]).await,
    ];
    Groups { objects, ids }
}

/// Every read of the two groups, without what differs from call to call.
async fn reads(client: &Client, groups: &Groups) -> Value {
    let [standing, merged] = &groups.ids;
    let mut read = Vec::new();
    for id in [standing, merged] {
        read.push(detail(client, id).await);
    }
    for question in [
        "Quiet Heron",
        "Falcon Team",
        "malware used by Quiet Heron",
        "drawings of turbines",
    ] {
        let found = client.search(question).await;
        read.push(found["results"].clone());
        let exported = client.export(text(&found, "recall_id")).await;
        let mut objects = exported["objects"].as_array().unwrap().clone();
        for object in &mut objects {
            object.as_object_mut().unwrap().remove("modified");
        }
        read.push(json!(objects));
    }
    let found = look_up(client, &["heron-c2.com"]).await;
    read.push(found["results"].clone());
    read.push(client.get("/api/graph").await.expect(200).await);
    Value::from(read)
}

#[test]
fn a_merged_node_is_read_as_the_one_that_stands_for_it_and_back() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let groups = two_groups(admin).await;
        let [standing, merged] = &groups.ids;
        let before = reads(admin, &groups).await;

        let answer = merge(admin, merged, standing).await;
        assert_eq!(
            answer,
            json!({"id": merged, "status": "merged", "merged_into": standing, "standing": standing})
        );
        // Again is nothing new.
        assert_eq!(merge(admin, merged, standing).await, answer);

        for id in [standing, merged] {
            let found = detail(admin, id).await;
            assert_eq!(found["node"]["id"], json!(standing));
            assert_eq!(
                aliases(&found["node"]),
                ["Falcon Team", "Heron Crew", "Quiet Heron"]
            );
            assert_eq!(others(&found), ["BlueDoor", "Heron host", "RedLatch"]);
            assert_eq!(found["evidence"].as_array().unwrap().len(), 2);
            let told = &found["merged"][0];
            assert_eq!(
                (
                    &told["id"],
                    &told["status"],
                    &told["merged_into"],
                    &told["reason"]
                ),
                (
                    &json!(merged),
                    &json!("merged"),
                    &json!(standing),
                    &json!("one group in two reports")
                )
            );
            let redirected = if id == merged { json!(merged) } else { Value::Null };
            assert_eq!(found["redirected_from"], redirected);
        }
        for question in ["Quiet Heron", "Heron Crew", "drawings of turbines"] {
            let found = admin.search(question).await;
            assert_eq!(found["results"][0]["id"], json!(standing), "{question}");
            assert!(!names(&found).contains(&"Quiet Heron"), "{question}");
        }
        for question in ["malware used by Quiet Heron", "malware used by Amber Falcon"] {
            let found = admin.search(question).await;
            let mut both = names(&found)[..2].to_vec();
            both.sort_unstable();
            assert_eq!(both, ["BlueDoor", "RedLatch"], "{question}");
        }
        let found = admin.search("Who uses RedLatch?").await;
        assert_eq!(found["results"][0]["id"], json!(standing));
        let found = look_up(admin, &["heron-c2.com"]).await;
        let indicated = &found["results"][0]["hits"][0]["indicates"];
        assert_eq!(indicated[0]["id"], json!(standing), "{indicated}");
        let other_end = detail(admin, &node_of(admin, &groups.objects[3]).await).await;
        assert_eq!(others(&other_end), ["Amber Falcon"]);

        // It leaves as one object, and what refers to the other refers to it.
        let found = admin.search("Quiet Heron").await;
        let bundle = admin.export(text(&found, "recall_id")).await;
        let objects = bundle["objects"].as_array().unwrap();
        let [own, other] = [0, 1].map(|at| &groups.objects[at]["id"]);
        assert!(objects.iter().all(|object| &object["id"] != other), "{bundle}");
        let group = objects.iter().find(|object| &object["id"] == own).unwrap();
        assert_eq!(
            group["aliases"],
            json!(["Falcon Team", "Quiet Heron", "Heron Crew"])
        );
        let text_of_all = bundle.to_string();
        assert!(!text_of_all.contains(other.as_str().unwrap()), "{bundle}");

        let answer = unmerge(admin, merged).await;
        assert_eq!(
            answer,
            json!({"id": merged, "status": "active", "standing": merged})
        );
        let after = reads(admin, &groups).await;
        assert_eq!(before, after);
        let actions: Vec<Value> = admin.audited("node.merge").await;
        assert_eq!(actions.len(), 1);
        assert_eq!(actions[0]["metadata"]["into"], json!(standing));
        assert_eq!(admin.audited("node.unmerge").await.len(), 1);
        app.stop().await;
    });
}

#[test]
fn what_is_written_later_stays_with_the_node_it_named() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let groups = two_groups(admin).await;
        let [standing, merged] = &groups.ids;
        merge(admin, merged, standing).await;
        let item = json!({"nodes": [
            {"name": "Quiet Heron", "node_type": "actor", "properties": {"aliases": ["Pale Heron"]}},
            {"name": "Amber Falcon", "node_type": "actor", "properties": {"aliases": ["Dark Falcon"]}},
        ]});
        admin.post("/api/ingest/analyst", &item).await.expect(201).await;
        let both = aliases(&detail(admin, standing).await["node"]);
        assert_eq!(
            both,
            [
                "Dark Falcon",
                "Falcon Team",
                "Heron Crew",
                "Pale Heron",
                "Quiet Heron"
            ]
        );
        unmerge(admin, merged).await;
        assert_eq!(
            aliases(&detail(admin, standing).await["node"]),
            ["Dark Falcon", "Falcon Team"]
        );
        assert_eq!(
            aliases(&detail(admin, merged).await["node"]),
            ["Heron Crew", "Pale Heron"]
        );
        app.stop().await;
    });
}

#[test]
fn bad_merges_are_refused_by_field_and_hidden_nodes_are_unknown() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        let clear =
            |ceiling: &str, elevated: bool| json!({"tlp_ceiling": ceiling, "elevated_clearance": elevated});
        admin.settings(clear("TLP:RED", true)).await;
        let groups = two_groups(admin).await;
        let [standing, merged] = &groups.ids;
        let red = with(
            object("intrusion-set", "Red Wren"),
            json!({"x_mitre_tlp": "TLP:RED"}),
        );
        admin.ingest(json!([red])).await;
        let red = node_of(admin, &red).await;
        let malware = node_of(admin, &groups.objects[2]).await;
        let unknown = "00000000-0000-4000-8000-000000000000";
        let ask = async |node: &str, into: Value| {
            let path = format!("/api/nodes/{node}/merge");
            admin.post(&path, &json!({"into": into})).await
        };
        for (node, into, status, starts) in [
            (
                standing.as_str(),
                json!(standing),
                400,
                "into: must be another node",
            ),
            (standing, json!(malware), 400, "into: must be of the same type"),
            (
                standing,
                json!(red),
                400,
                "into: must not be marked more strictly",
            ),
            (standing, json!("x"), 400, "into: "),
            (standing, Value::Null, 400, "into: "),
            (standing, json!(unknown), 404, "into: node not found"),
            (unknown, json!(standing), 404, "node not found"),
            ("x", json!(standing), 404, "node not found"),
        ] {
            let error = ask(node, into).await.refused(status).await;
            assert!(error.starts_with(starts), "{error}");
        }
        let path = format!("/api/nodes/{standing}/unmerge");
        admin.post(&path, &json!({})).await.refused(409).await;
        merge(admin, merged, standing).await;
        let error = ask(standing, json!(merged)).await.refused(400).await;
        assert!(error.starts_with("into: must be another node"), "{error}");
        merge(admin, &red, standing).await;
        let error = ask(merged, json!(red)).await.refused(409).await;
        assert!(error.contains("merged into"), "{error}");

        // Below RED there is one name less, and no trace of the other.
        let all = detail(admin, standing).await;
        assert_eq!(all["node"]["tlp"], "TLP:RED");
        assert!(aliases(&all["node"]).contains(&"Red Wren".to_owned()));
        admin.settings(clear("TLP:AMBER", false)).await;
        let some = detail(admin, standing).await;
        assert_eq!(some["merged"].as_array().unwrap().len(), 1);
        assert!(!some.to_string().contains("Red Wren"), "{some}");
        let found = admin.search("Red Wren").await;
        assert!(!found.to_string().contains("\"name\":\"Red Wren"), "{found}");
        admin.get(&format!("/api/nodes/{red}")).await.refused(404).await;
        for (what, body) in [("merge", json!({"into": standing})), ("unmerge", json!({}))] {
            let path = format!("/api/nodes/{red}/{what}");
            let error = admin.post(&path, &body).await.refused(404).await;
            assert_eq!(error, "node not found");
        }
        let error = ask(standing, json!(red)).await.refused(404).await;
        assert_eq!(error, "into: node not found");
        let viewer = app.user("viewer").await;
        let path = format!("/api/nodes/{merged}/unmerge");
        viewer.post(&path, &json!({})).await.refused(403).await;
        let elsewhere = app.workspace("elsewhere").await;
        elsewhere.post(&path, &json!({})).await.refused(404).await;
        app.stop().await;
    });
}

#[test]
fn merges_and_their_ends_give_the_same_in_any_order() {
    run(async {
        let app = TestApp::shared().await;
        let admin = &app.admin;
        enter(
            admin,
            &["one.chain.example", "two.chain.example", "three.chain.example"],
            "TLP:GREEN",
        )
        .await;
        let mut ids = Vec::new();
        for name in ["one.chain.example", "two.chain.example", "three.chain.example"] {
            let found = look_up(admin, &[name]).await;
            ids.push(text(&found["results"][0]["hits"][0], "id").to_owned());
        }
        let pairs = [(0, 1), (1, 2)];
        let read = async || {
            let mut all = Vec::new();
            for id in &ids {
                let mut found = detail(admin, id).await;
                let merged = found["merged"].as_array_mut().unwrap().iter_mut();
                merged.for_each(|one| {
                    one.as_object_mut().unwrap().remove("merged_at");
                });
                all.push(found);
            }
            let names = ["one.chain.example", "two.chain.example", "three.chain.example"];
            all.push(look_up(admin, &names).await["results"].clone());
            Value::from(all)
        };
        let before = read().await;
        let mut merged = Vec::new();
        for (order, ends) in [([0, 1], [0, 1]), ([1, 0], [0, 1]), ([0, 1], [1, 0])] {
            for at in order {
                let (node, into) = pairs[at];
                merge(admin, &ids[node], &ids[into]).await;
            }
            let chain = detail(admin, &ids[0]).await;
            assert_eq!(chain["node"]["id"], json!(ids[2]));
            assert_eq!(chain["merged"].as_array().unwrap().len(), 2);
            merged.push(read().await);
            for at in ends {
                unmerge(admin, &ids[pairs[at].0]).await;
            }
            assert_eq!(read().await, before);
        }
        assert!(merged.windows(2).all(|two| two[0] == two[1]));
        app.stop().await;
    });
}
