//! Users, API keys and workspaces: what administrators may do, and the audit entry that every change leaves.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::helpers::{ADMIN, Client, PASSWORD, TestApp, keys_of, run};

fn user_path(id: &str) -> String {
    format!("/api/admin/users/{id}")
}

async fn user(admin: &Client, id: &str) -> Value {
    let users = admin.get("/api/admin/users").await.expect(200).await;
    let users = users["users"].as_array().unwrap();
    users.iter().find(|user| user["id"] == id).unwrap().clone()
}

#[test]
fn users_are_made_listed_and_never_shown_with_their_password() {
    run(async {
        let app = TestApp::shared().await;
        let body =
            json!({"email": " Some.One@Example.COM", "password": PASSWORD, "role": "audit", "id": "mine"});
        let made = app.admin.post("/api/admin/users", &body).await.expect(201).await;
        assert_eq!(
            keys_of(&made["user"]),
            ["created_at", "disabled", "email", "id", "role"]
        );
        assert_eq!(made["user"]["email"], "some.one@example.com");
        let list = app.admin.get("/api/admin/users").await.expect(200).await;
        assert_eq!(
            (&list["count"], &list["users"][0]["email"]),
            (&json!(2), &json!(ADMIN))
        );
        assert_eq!(list["users"][1], made["user"]);
        app.stop().await;
    });
}

#[test]
fn a_patch_changes_what_it_names_and_null_names_nothing() {
    run(async {
        let app = TestApp::shared().await;
        let (id, email) = app.admin.add_user("viewer").await;
        let before = user(&app.admin, &id).await;
        for nothing in [
            json!({}),
            json!({"role": null, "disabled": null, "password": null, "x": 1}),
        ] {
            let after = app.admin.patch(&user_path(&id), &nothing).await.expect(200).await;
            assert_eq!(after["user"], before);
        }
        let changed = app
            .admin
            .patch(&user_path(&id), &json!({"role": "analyst"}))
            .await;
        let changed = changed.expect(200).await;
        let mut want = before.clone();
        want["role"] = json!("analyst");
        assert_eq!(changed["user"], want);
        app.anonymous().login(&email, PASSWORD).await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn a_user_who_was_disabled_signs_in_anew_after_being_enabled() {
    run(async {
        let app = TestApp::shared().await;
        let (id, email) = app.admin.add_user("viewer").await;
        let old = app.anonymous().sign_in(&email, PASSWORD).await;
        for disabled in [true, false] {
            let change = json!({"disabled": disabled});
            app.admin.patch(&user_path(&id), &change).await.expect(200).await;
            old.get("/api/auth/me").await.refused(401).await;
        }
        app.anonymous().login(&email, PASSWORD).await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn parallel_patches_of_one_user_do_not_undo_each_other() {
    run(async {
        let app = TestApp::shared().await;
        let (id, email) = app.admin.add_user("viewer").await;
        let path = user_path(&id);
        // Hashing the password is slow, so the other changes are written while it runs.
        let changes = [
            json!({"password": "another long password"}),
            json!({"disabled": true}),
            json!({"role": "analyst"}),
        ];
        let answers = join_all(changes.iter().map(|change| app.admin.patch(&path, change))).await;
        for answer in answers {
            answer.expect(200).await;
        }
        let now = user(&app.admin, &id).await;
        assert_eq!(
            (now["disabled"].clone(), now["role"].clone()),
            (json!(true), json!("analyst"))
        );
        app.admin
            .patch(&path, &json!({"disabled": false}))
            .await
            .expect(200)
            .await;
        app.anonymous().login(&email, PASSWORD).await.refused(401).await;
        app.anonymous().sign_in(&email, "another long password").await;
        app.stop().await;
    });
}

#[test]
fn of_parallel_requests_for_one_address_one_wins_and_the_others_are_409() {
    run(async {
        let app = TestApp::shared().await;
        let body = json!({"email": "one@example.com", "password": PASSWORD, "role": "viewer"});
        let answers = join_all((0..8).map(|_| app.admin.post("/api/admin/users", &body))).await;
        let mut statuses: Vec<u16> = answers.iter().map(|a| a.status()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
        assert_eq!(app.admin.audited("admin.user_create").await.len(), 1);
        app.stop().await;
    });
}

#[test]
fn administrators_can_not_lock_themselves_out() {
    run(async {
        let app = TestApp::shared().await;
        let me = app.admin.get("/api/auth/me").await.expect(200).await;
        let path = user_path(me["user"]["id"].as_str().unwrap());
        for change in [json!({"role": "viewer"}), json!({"disabled": true})] {
            let error = app.admin.patch(&path, &change).await.refused(409).await;
            assert!(error.contains("themselves"), "{error}");
        }
        let same = json!({"role": "admin", "disabled": false});
        app.admin.patch(&path, &same).await.expect(200).await;
        assert_eq!(app.admin.audited("admin.user_change").await.len(), 1);
        app.stop().await;
    });
}

#[test]
fn a_key_is_shown_once_and_its_revocation_stays_visible() {
    run(async {
        let app = TestApp::shared().await;
        let body = json!({"name": "  feed  ", "scopes": ["read", "ingest", "read"], "expires_at": "2999-01-01T00:00:00Z"});
        let made = app
            .admin
            .post("/api/admin/api-keys", &body)
            .await
            .expect(201)
            .await;
        let view = [
            "created_at",
            "expires_at",
            "id",
            "name",
            "owner",
            "revoked_at",
            "scopes",
        ];
        let mut with_key = view.to_vec();
        with_key.insert(3, "key");
        assert_eq!(keys_of(&made), with_key);
        let key = made["key"].as_str().unwrap();
        assert!(key.starts_with("tm_") && key.len() == 46, "{key}");
        assert_eq!(
            (made["name"].clone(), made["scopes"].clone()),
            (json!("feed"), json!(["ingest", "read"]))
        );
        let list = app.admin.get("/api/admin/api-keys").await.expect(200).await;
        assert_eq!(keys_of(&list["api_keys"][0]), view);
        let path = format!("/api/admin/api-keys/{}", made["id"].as_str().unwrap());
        app.admin.delete(&path).await.expect(204).await;
        let list = app.admin.get("/api/admin/api-keys").await.expect(200).await;
        let revoked = list["api_keys"][0]["revoked_at"].clone();
        assert!(revoked.is_string());
        // A second revocation must not change the revocation time.
        app.admin.delete(&path).await.expect(204).await;
        let list = app.admin.get("/api/admin/api-keys").await.expect(200).await;
        assert_eq!(list["api_keys"][0]["revoked_at"], revoked);
        app.stop().await;
    });
}

#[test]
fn bad_values_are_400_and_name_their_field() {
    run(async {
        let app = TestApp::spawn().await;
        let users = "/api/admin/users";
        let keys = "/api/admin/api-keys";
        let spaces = "/api/admin/workspaces";
        let long = "x".repeat(201);
        for (path, body, want) in [
            (
                users,
                json!({"password": PASSWORD, "role": "viewer"}),
                "email: is required",
            ),
            (
                users,
                json!({"email": "a@b", "role": "viewer"}),
                "password: is required",
            ),
            (
                users,
                json!({"email": "a@b", "password": PASSWORD}),
                "role: is required",
            ),
            (
                users,
                json!({"email": "no address", "password": PASSWORD, "role": "viewer"}),
                "email: must be",
            ),
            (
                users,
                json!({"email": "a@b", "password": "short", "role": "viewer"}),
                "password: must have at least 12",
            ),
            (
                users,
                json!({"email": "a@b", "password": PASSWORD, "role": "root"}),
                "role: must be one of",
            ),
            (users, json!([]), "body: must be an object"),
            (keys, json!({"scopes": ["read"]}), "name: is required"),
            (
                keys,
                json!({"name": " ", "scopes": ["read"]}),
                "name: must have 1 to 200",
            ),
            (
                keys,
                json!({"name": long, "scopes": ["read"]}),
                "name: must have 1 to 200",
            ),
            (keys, json!({"name": "k"}), "scopes: is required"),
            (
                keys,
                json!({"name": "k", "scopes": []}),
                "scopes: must hold at least one",
            ),
            (
                keys,
                json!({"name": "k", "scopes": ["admin"]}),
                "scopes[0]: must be one of",
            ),
            (
                keys,
                json!({"name": "k", "scopes": ["read"], "expires_at": "soon"}),
                "expires_at: ",
            ),
            (
                keys,
                json!({"name": "k", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"}),
                "expires_at: must be in the future",
            ),
            (
                spaces,
                json!({"admin_email": "a@b", "admin_password": PASSWORD}),
                "name: is required",
            ),
            (
                spaces,
                json!({"name": "", "admin_email": "a@b", "admin_password": PASSWORD}),
                "name: must have",
            ),
            (
                spaces,
                json!({"name": "w", "admin_email": "ab", "admin_password": PASSWORD}),
                "admin_email: must be",
            ),
            (
                spaces,
                json!({"name": "w", "admin_email": "a@b", "admin_password": "x"}),
                "admin_password: must have",
            ),
        ] {
            let error = app.admin.post(path, &body).await.refused(400).await;
            assert!(error.starts_with(want), "{body} gave {error}");
        }
        for (body, want) in [
            (
                json!({"tlp_ceiling": "TLP:PINK"}),
                "tlp_ceiling: must be one of TLP:WHITE",
            ),
            (
                json!({"elevated_clearance": "yes"}),
                "elevated_clearance: must be",
            ),
            (json!({"red_export_grant": 1}), "red_export_grant: must be"),
            (json!({"tier": "gold"}), "tier: must be one of"),
            (json!({"features": "all"}), "features: must be"),
            (json!({"features": [""]}), "features: must hold"),
        ] {
            let error = app
                .admin
                .patch("/api/admin/workspace", &body)
                .await
                .refused(400)
                .await;
            assert!(error.starts_with(want), "{body} gave {error}");
        }
        let (id, _) = app.admin.add_user("viewer").await;
        let error = app
            .admin
            .patch(&user_path(&id), &json!({"password": "short"}))
            .await;
        assert!(error.refused(400).await.starts_with("password: must have"));
        let made: Vec<Value> = app.admin.audit_logs().await;
        let actions: Vec<_> = made
            .iter()
            .map(|entry| entry["action"].as_str().unwrap())
            .collect();
        assert_eq!(actions, ["admin.user_create", "auth.login", "admin.bootstrap"]);
        app.stop().await;
    });
}

#[test]
fn times_at_the_edge_of_what_can_be_written_are_kept_or_refused() {
    run(async {
        let app = TestApp::shared().await;
        for at in ["9999-12-31T23:59:59Z", "+262000-01-01T00:00:00Z"] {
            let body = json!({"name": "k", "scopes": ["read"], "expires_at": at});
            let status = app.admin.post("/api/admin/api-keys", &body).await.status();
            assert!([201, 400].contains(&status), "{at}: {status}");
        }
        app.admin.get("/api/admin/api-keys").await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn foreign_ids_answer_as_made_up_ones_and_stay_untouched() {
    run(async {
        let app = TestApp::shared().await;
        let stranger = app.workspace("stranger").await;
        let (user_id, email) = app.admin.add_user("viewer").await;
        let (key_id, key) = app.admin.add_key(&["read"]).await;
        let made_up = uuid::Uuid::new_v4().to_string();
        let change = json!({"disabled": true, "role": "admin"});
        let mut bodies = Vec::new();
        for id in [user_id.as_str(), made_up.as_str(), "no-id", "%00"] {
            bodies.push(stranger.patch(&user_path(id), &change).await.refused(404).await);
        }
        assert!(bodies.iter().all(|body| body == "user not found"), "{bodies:?}");
        bodies.clear();
        for id in [key_id.as_str(), made_up.as_str(), "no-id"] {
            let path = format!("/api/admin/api-keys/{id}");
            bodies.push(stranger.delete(&path).await.refused(404).await);
        }
        assert!(
            bodies.iter().all(|body| body == "API key not found"),
            "{bodies:?}"
        );
        app.anonymous().login(&email, PASSWORD).await.expect(200).await;
        let key = app.anonymous().with_header("x-api-key", &key);
        key.get("/api/auth/me").await.expect(200).await;
        let list = stranger.get("/api/admin/users").await.expect(200).await;
        assert_eq!(list["count"], 1);
        let list = stranger.get("/api/admin/api-keys").await.expect(200).await;
        assert_eq!(list["count"], 0);
        app.stop().await;
    });
}

#[test]
fn every_change_is_audited_with_who_and_what_and_without_secrets() {
    run(async {
        let app = TestApp::spawn().await;
        let (user_id, _) = app.admin.add_user("viewer").await;
        let change = json!({"role": "audit", "disabled": true, "password": "another long password"});
        app.admin
            .patch(&user_path(&user_id), &change)
            .await
            .expect(200)
            .await;
        let (key_id, key) = app.admin.add_key(&["read"]).await;
        let path = format!("/api/admin/api-keys/{key_id}");
        app.admin.delete(&path).await.expect(204).await;
        app.admin
            .settings(json!({"tlp_ceiling": "RED", "red_export_grant": true}))
            .await;
        app.workspace("tenant").await;
        let logs = app.admin.audit_logs().await;
        let newest: Vec<_> = logs
            .iter()
            .take(6)
            .map(|e| e["action"].as_str().unwrap())
            .collect();
        assert_eq!(
            newest,
            [
                "admin.workspace_create",
                "admin.workspace_change",
                "admin.api_key_revoke",
                "admin.api_key_create",
                "admin.user_change",
                "admin.user_create"
            ]
        );
        for entry in &logs[..6] {
            assert_eq!(entry["user_email"], ADMIN);
            assert_eq!(entry["outcome"], "success");
        }
        assert_eq!(
            logs[1]["metadata"],
            json!({"tlp_ceiling": "TLP:RED", "red_export_grant": true})
        );
        assert_eq!(
            [&logs[2]["resource_id"], &logs[3]["resource_id"]],
            [&json!(key_id); 2]
        );
        assert_eq!(
            logs[4]["metadata"],
            json!({"role": "audit", "disabled": true, "password": "changed"})
        );
        assert_eq!(logs[4]["resource_id"], json!(user_id));
        let text = Value::from(logs).to_string();
        for secret in [PASSWORD, "another long password", key.as_str(), "argon2"] {
            assert!(!text.contains(secret), "{secret}");
        }
        app.stop().await;
    });
}
