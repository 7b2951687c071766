//! One e-mail address with accounts in several workspaces: which one a sign-in selects, and that the responses do not
//! reveal the others.

use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::{Answer, Client, PASSWORD, TestApp, run};

const EMAIL: &str = "one@example.com";
const OTHER_PASSWORD: &str = "another long password";
const WRONG: &str = "wrong e-mail address or password";

/// Creates an account for [`EMAIL`] in the client's workspace.
async fn account(client: &Client, password: &str) {
    let body = json!({"email": EMAIL, "password": password, "role": "viewer"});
    client.post("/api/admin/users", &body).await.expect(201).await;
}

async fn login(app: &TestApp, password: &str, workspace: Option<&str>) -> Answer {
    let body = json!({"email": EMAIL, "password": password, "workspace": workspace});
    app.anonymous().post("/api/auth/login", &body).await
}

/// The workspace that a sign-in selects.
async fn reached(app: &TestApp, password: &str, workspace: Option<&str>) -> Value {
    login(app, password, workspace).await.expect(200).await["workspace"]["name"].clone()
}

async fn id_of(client: &Client) -> String {
    let me = client.get("/api/auth/me").await.expect(200).await;
    me["workspace"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_address_is_taken_in_its_own_workspace_only_whatever_its_case() {
    run(async {
        let app = TestApp::spawn().await;
        let other = app.workspace("other").await;
        account(&app.admin, PASSWORD).await;
        account(&other, OTHER_PASSWORD).await;
        let again = json!({"email": EMAIL.to_uppercase(), "password": PASSWORD, "role": "viewer"});
        for client in [&app.admin, &other] {
            let error = client.post("/api/admin/users", &again).await.refused(409).await;
            assert_eq!(error, "email: is already in use");
        }
        let third = json!({"name": "third", "admin_email": EMAIL, "admin_password": "a third long password"});
        app.admin
            .post("/api/admin/workspaces", &third)
            .await
            .expect(201)
            .await;
        assert_eq!(reached(&app, PASSWORD, None).await, "Operator");
        assert_eq!(reached(&app, OTHER_PASSWORD, None).await, "other");
        assert_eq!(reached(&app, "a third long password", None).await, "third");
        app.stop().await;
    });
}

#[test]
fn the_workspace_is_asked_for_only_when_address_and_password_fit_several() {
    run(async {
        let app = TestApp::spawn().await;
        let (alpha, beta) = (app.workspace("Alpha").await, app.workspace("Beta").await);
        for client in [&alpha, &beta] {
            account(client, PASSWORD).await;
        }
        let (alpha_id, beta_id) = (id_of(&alpha).await, id_of(&beta).await);
        let error = login(&app, PASSWORD, None).await.refused(400).await;
        let want = "workspace: is required, as name or id: address and password fit ";
        assert!(error.starts_with(want), "{error}");
        for part in ["Alpha", "Beta", &alpha_id, &beta_id] {
            assert!(error.contains(part), "{error}");
        }
        for none in ["", "  "] {
            login(&app, PASSWORD, Some(none)).await.refused(400).await;
        }
        for (workspace, name) in [
            ("Alpha", "Alpha"),
            (" Beta ", "Beta"),
            (alpha_id.as_str(), "Alpha"),
            (&beta_id.to_uppercase(), "Beta"),
        ] {
            assert_eq!(
                reached(&app, PASSWORD, Some(workspace)).await,
                name,
                "{workspace}"
            );
        }
        // Without the password, a caller learns nothing.
        assert_eq!(login(&app, "wrong", None).await.refused(401).await, WRONG);
        for elsewhere in ["Operator", "nowhere", &uuid::Uuid::new_v4().to_string()] {
            let error = login(&app, PASSWORD, Some(elsewhere)).await.refused(401).await;
            assert_eq!(error, WRONG, "{elsewhere}");
        }
        let wrong_type = json!({"email": EMAIL, "password": PASSWORD, "workspace": 5});
        let error = app
            .anonymous()
            .post("/api/auth/login", &wrong_type)
            .await
            .refused(400)
            .await;
        assert!(error.starts_with("workspace: "), "{error}");
        app.stop().await;
    });
}

#[test]
fn two_workspaces_of_one_name_are_told_apart_by_id() {
    run(async {
        let app = TestApp::spawn().await;
        let twins = [app.workspace("Twin").await, app.workspace("Twin").await];
        for client in &twins {
            account(client, PASSWORD).await;
        }
        let error = login(&app, PASSWORD, Some("Twin")).await.refused(400).await;
        assert!(error.starts_with("workspace: is required"), "{error}");
        for client in &twins {
            let id = id_of(client).await;
            let answer = login(&app, PASSWORD, Some(&id)).await.expect(200).await;
            assert_eq!(answer["workspace"]["id"], id.as_str());
        }
        app.stop().await;
    });
}

#[test]
fn an_account_beyond_the_first_ones_is_reached_by_its_workspace() {
    run(async {
        let app = TestApp::spawn().await;
        for n in 0..6 {
            let client = app.workspace(&format!("W{n}")).await;
            account(&client, &format!("{PASSWORD} {n}")).await;
        }
        assert_eq!(reached(&app, &format!("{PASSWORD} 3"), None).await, "W3");
        assert_eq!(reached(&app, &format!("{PASSWORD} 5"), Some("W5")).await, "W5");
        app.stop().await;
    });
}

#[test]
fn a_disabled_account_takes_no_part() {
    run(async {
        let app = TestApp::spawn().await;
        let (alpha, beta) = (app.workspace("Alpha").await, app.workspace("Beta").await);
        for client in [&alpha, &beta] {
            account(client, PASSWORD).await;
        }
        let users = alpha.get("/api/admin/users").await.expect(200).await;
        let users = users["users"].as_array().unwrap();
        let user = users.iter().find(|user| user["email"] == EMAIL).unwrap();
        let path = format!("/api/admin/users/{}", user["id"].as_str().unwrap());
        alpha
            .patch(&path, &json!({"disabled": true}))
            .await
            .expect(200)
            .await;
        assert_eq!(reached(&app, PASSWORD, None).await, "Beta");
        assert_eq!(
            login(&app, PASSWORD, Some("Alpha")).await.refused(401).await,
            WRONG
        );
        app.stop().await;
    });
}

#[test]
fn failures_are_in_the_log_of_each_workspace_and_successes_in_their_own_only() {
    run(async {
        let app = TestApp::spawn().await;
        let (alpha, beta) = (app.workspace("Alpha").await, app.workspace("Beta").await);
        account(&alpha, PASSWORD).await;
        account(&beta, OTHER_PASSWORD).await;
        login(&app, "wrong", None).await.refused(401).await;
        login(&app, PASSWORD, None).await.expect(200).await;
        login(&app, "wrong", Some("Beta")).await.refused(401).await;
        let of = |logs: Vec<Value>| -> Vec<Value> {
            let own = logs.into_iter().filter(|entry| entry["user_email"] == EMAIL);
            own.map(|entry| entry["outcome"].clone()).collect()
        };
        assert_eq!(of(alpha.audited("auth.login").await), ["success", "failure"]);
        assert_eq!(of(beta.audited("auth.login").await), ["failure", "failure"]);
        assert!(of(app.admin.audited("auth.login").await).is_empty());
        app.stop().await;
    });
}

#[test]
fn a_success_in_one_workspace_makes_no_room_for_guesses_at_another() {
    run(async {
        let app = TestApp::spawn().await;
        let (victim, attacker) = (app.workspace("Victim").await, app.workspace("Attacker").await);
        account(&victim, PASSWORD).await;
        account(&attacker, OTHER_PASSWORD).await;
        for _ in 0..2 {
            for _ in 0..3 {
                assert_eq!(login(&app, "a guess", None).await.refused(401).await, WRONG);
            }
            assert_eq!(reached(&app, OTHER_PASSWORD, None).await, "Attacker");
        }
        // After six guesses the account is locked, which looks like a wrong password.
        assert_eq!(login(&app, PASSWORD, None).await.refused(401).await, WRONG);
        // The owner can still sign in by naming the workspace.
        assert_eq!(reached(&app, PASSWORD, Some("Victim")).await, "Victim");
        app.stop().await;
    });
}

#[test]
fn an_account_of_ones_own_tells_nothing_of_another_one_with_its_address() {
    run(async {
        let app = TestApp::spawn().await;
        let mut seen = Vec::new();
        for taken in [false, true] {
            let (home, elsewhere) = (app.workspace("Home").await, app.workspace("Elsewhere").await);
            let email = format!("{taken}@example.com");
            let body = |password: &str| json!({"email": email, "password": password, "role": "viewer"});
            if taken {
                let made = elsewhere
                    .post("/api/admin/users", &body("whoever knows this"))
                    .await;
                made.expect(201).await;
            }
            let made = home.post("/api/admin/users", &body(PASSWORD)).await;
            let mut answers = vec![made.status()];
            let id = made.expect(201).await["user"]["id"].as_str().unwrap().to_owned();
            let change = format!("/api/admin/users/{id}");
            for n in 0..extent(4, 14) {
                let password = if n % 4 == 3 { PASSWORD } else { "a guess" };
                let answer = app.anonymous().login(&email, password).await;
                let left = answer.header("ratelimit-remaining").unwrap().parse().unwrap();
                answers.extend([answer.status(), left]);
                // Uses the password of the caller's own account as a guess for the other one.
                let own = json!({"password": format!("{PASSWORD}, guess {n}")});
                home.patch(&change, &own).await.expect(200).await;
                let answer = app
                    .anonymous()
                    .login(&email, own["password"].as_str().unwrap())
                    .await;
                answers.push(answer.status());
                home.patch(&change, &json!({"password": PASSWORD}))
                    .await
                    .expect(200)
                    .await;
            }
            let again = home.post("/api/admin/users", &body(PASSWORD)).await;
            answers.push(again.status());
            seen.push(answers);
        }
        assert_eq!(seen[0], seen[1]);
        app.stop().await;
    });
}
