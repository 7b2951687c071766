//! Workspaces: who may create them, their initial state, and changes to their settings.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::helpers::{PASSWORD, TestApp, keys_of, run};

#[test]
fn parallel_changes_of_one_workspace_all_succeed() {
    run(async {
        let app = TestApp::shared().await;
        let changes: Vec<Value> = (0..12)
            .map(|n| match n % 3 {
                0 => json!({"tlp_ceiling": "TLP:RED"}),
                1 => json!({"elevated_clearance": true}),
                _ => json!({"red_export_grant": true}),
            })
            .collect();
        let patches = changes.iter().map(|c| app.admin.patch("/api/admin/workspace", c));
        for answer in join_all(patches).await {
            answer.expect(200).await;
        }
        let read = app.admin.get("/api/admin/workspace").await.expect(200).await;
        assert_eq!(read["workspace"]["tlp_ceiling"], "TLP:RED");
        assert_eq!(read["workspace"]["elevated_clearance"], true);
        assert_eq!(read["workspace"]["red_export_grant"], true);
        assert_eq!(app.admin.audited("admin.workspace_change").await.len(), 12);
        app.stop().await;
    });
}

#[test]
fn only_the_operators_administrators_make_workspaces_and_new_ones_start_closed() {
    run(async {
        let app = TestApp::spawn().await;
        let new = || {
            let email = format!("{}@example.com", uuid::Uuid::new_v4());
            json!({"name": "Tenant", "admin_email": email, "admin_password": PASSWORD})
        };
        let made = app
            .admin
            .post("/api/admin/workspaces", &new())
            .await
            .expect(201)
            .await;
        let fields = [
            "elevated_clearance",
            "features",
            "id",
            "name",
            "red_export_grant",
            "tier",
            "tlp_ceiling",
        ];
        let shown = keys_of(&made["workspace"]);
        assert!(fields.iter().all(|field| shown.contains(field)), "{shown:?}");
        let part = |key: &str| made["workspace"][key].clone();
        assert_eq!(
            [
                part("tlp_ceiling"),
                part("elevated_clearance"),
                part("red_export_grant")
            ],
            [json!("TLP:AMBER"), json!(false), json!(false)]
        );
        assert_eq!(
            (part("tier"), part("features")),
            // The tier of the operator's own workspace.
            (json!("enterprise"), json!(["knowledge_graph"]))
        );
        let email = made["admin"]["email"].as_str().unwrap();
        let tenant = app.anonymous().sign_in(email, PASSWORD).await;
        for client in [&tenant, &app.user("analyst").await] {
            client
                .post("/api/admin/workspaces", &new())
                .await
                .refused(403)
                .await;
        }
        app.stop().await;
    });
}

#[test]
fn settings_change_one_by_one_and_only_in_the_own_workspace() {
    run(async {
        let app = TestApp::shared().await;
        let tenant = app.workspace("tenant").await;
        let mut want = tenant.get("/api/admin/workspace").await.expect(200).await["workspace"].clone();
        for (key, value, stored) in [
            ("tlp_ceiling", json!("amber+strict"), json!("TLP:AMBER+PK")),
            ("elevated_clearance", json!(true), json!(true)),
            ("red_export_grant", json!(true), json!(true)),
            ("features", json!([]), json!([])),
        ] {
            want[key] = stored;
            let change = Value::Object([(key.to_owned(), value)].into_iter().collect());
            assert_eq!(tenant.settings(change).await, want);
        }
        for ignored in [
            json!({}),
            json!({"name": "x", "id": "y", "is_operator": true, "suspended": true, "tier": null}),
        ] {
            assert_eq!(tenant.settings(ignored).await, want);
        }
        let own = app.admin.get("/api/admin/workspace").await.expect(200).await;
        assert_eq!(own["workspace"]["tlp_ceiling"], "TLP:AMBER");
        app.stop().await;
    });
}
