//! `threat-memory export` and `import`: one workspace, from one service to another.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{ADMIN, PASSWORD, run};
use crate::process::{Service, hosted, printed, program, refused, started_once};
use crate::stix::{object, relationship, with};

fn command(task: &str, file: &Path, base: &str) -> Command {
    let mut command = program();
    command
        .args([task, file.to_str().unwrap(), "--url", base])
        .env("THREAT_MEMORY_ADMIN_EMAIL", ADMIN)
        .env("THREAT_MEMORY_ADMIN_PASSWORD", PASSWORD);
    command
}

/// The objects of a bundle, by id.
fn objects(file: &Path) -> BTreeMap<String, Value> {
    let bundle: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let objects = bundle["objects"].as_array().unwrap();
    let by_id: BTreeMap<_, _> = objects
        .iter()
        .map(|object| (object["id"].as_str().unwrap().to_owned(), object.clone()))
        .collect();
    assert_eq!(by_id.len(), objects.len(), "each object is there once");
    by_id
}

#[test]
fn a_workspace_moves_to_another_service_and_only_what_may_leave_it() {
    run(async {
        let files = tempfile::tempdir().unwrap();
        let file = |name: &str| files.path().join(name);
        let [here, there] = [started_once(), started_once()];
        let service = Service::start(hosted(here.path()));
        let admin = service.admin().await;
        let wide = json!({"tlp_ceiling": "RED", "elevated_clearance": true});
        admin.patch("/api/admin/workspace", &wide).await.expect(200).await;
        let count = extent(1200, 20_000);
        let mut tools: Vec<Value> = (0..count)
            .map(|at| object("tool", &format!("Moved tool {at}")))
            .collect();
        tools[0]["x_of_the_sender"] = json!({"kept": [1, 2.5, "é"]});
        let secret = "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed";
        tools[1]["object_marking_refs"] = json!([secret]);
        let edges = tools
            .windows(2)
            .map(|pair| relationship(&pair[0], "uses", &pair[1]));
        admin.ingest(tools.iter().cloned().chain(edges).collect()).await;

        // What changes is added to the collections again, and is in the bundle once.
        let newer = json!({"modified": "2024-01-01T00:00:00.000Z", "description": "Said later."});
        admin.ingest(json!([with(tools[5].clone(), newer)])).await;

        let bundle = file("workspace.json");
        let said = printed(&mut command("export", &bundle, service.base()));
        // That two relationships lead to it is not told.
        assert!(said.contains("1 more may not leave the workspace"), "{said}");
        let sent = objects(&bundle);
        assert!(!sent.contains_key(tools[1]["id"].as_str().unwrap()));
        assert_eq!(
            sent[tools[0]["id"].as_str().unwrap()]["x_of_the_sender"],
            tools[0]["x_of_the_sender"]
        );
        let again = refused(&mut command("export", &bundle, service.base()));
        assert!(again.contains("exists already"), "{again}");
        let key = admin.add_key(&["read"]).await.1;
        let by_key = file("by-key.json");
        let mut export = program();
        export
            .args(["export", by_key.to_str().unwrap(), "--url", service.base()])
            .env("THREAT_MEMORY_API_KEY", &key);
        printed(&mut export);
        assert!(objects(&by_key) == sent, "the key sees the same");
        let mut import = program();
        import
            .args(["import", bundle.to_str().unwrap(), "--url", service.base()])
            .env("THREAT_MEMORY_API_KEY", key);
        let said = refused(&mut import);
        assert!(said.contains("answered 403"), "{said}");
        service.stop();

        let service = Service::start(hosted(there.path()));
        for round in ["first", "second"] {
            let said = printed(&mut command("import", &bundle, service.base()));
            assert!(
                said.starts_with(&format!("{} objects", sent.len())),
                "{round}: {said}"
            );
        }
        let arrived = file("arrived.json");
        printed(&mut command("export", &arrived, service.base()));
        // Which levels a workspace may see is its own matter.
        let is_content = |(id, _): &(&String, &Value)| !id.starts_with("marking-definition--");
        let arrived = objects(&arrived);
        assert!(
            arrived
                .iter()
                .filter(is_content)
                .eq(sent.iter().filter(is_content)),
            "what arrived is not what was sent"
        );

        for (text, why) in [
            ("", "is no STIX bundle"),
            ("{\"type\": \"report\"}", "its type is not \"bundle\""),
            ("{\"objects\": []}", "missing field `type`"),
            ("[1]", "is no STIX bundle"),
        ] {
            let wrong = file("wrong.json");
            std::fs::write(&wrong, text).unwrap();
            let said = refused(&mut command("import", &wrong, service.base()));
            assert!(said.contains(why), "{text}: {said}");
        }
        let mut stranger = program();
        let said = refused(stranger.args(["export", "-", "--url", service.base()]));
        assert!(
            said.contains("answered 401") && said.contains("THREAT_MEMORY_API_KEY"),
            "{said}"
        );
        service.stop();
    });
}
