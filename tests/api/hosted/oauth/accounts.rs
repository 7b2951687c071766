//! Whose account a verified address opens.

use super::*;
use crate::helpers::run;

const NO_ACCOUNT: &str = "no account may be used with the e-mail address of this sign-in";

#[test]
fn unknown_and_disabled_users_are_refused_alike() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn(oauth([("corp", oidc(&provider))])).await;
        let sign_in = async || Browser::new(&app).sign_in(&provider, "corp").await;
        assert_eq!(sign_in().await.refused(401).await, NO_ACCOUNT);
        let unknown = last_audited(&app).await;
        assert_eq!(unknown["user_email"], "analyst@example.com");
        assert_eq!(
            unknown["metadata"],
            json!({"provider": "corp", "reason": "no account"})
        );
        let id = add_user(&app.admin, EMAIL).await;
        sign_in().await.expect(200).await;
        let path = format!("/api/admin/users/{id}");
        app.admin
            .patch(&path, &json!({"disabled": true}))
            .await
            .expect(200)
            .await;
        assert_eq!(sign_in().await.refused(401).await, NO_ACCOUNT);
        let disabled = last_audited(&app).await;
        for part in ["outcome", "user_email", "metadata", "user_id", "tenant_id"] {
            assert_eq!(disabled[part], unknown[part], "{part}");
        }
        app.admin
            .patch(&path, &json!({"disabled": false}))
            .await
            .expect(200)
            .await;
        sign_in().await.expect(200).await;
        app.stop().await;
    });
}

#[test]
fn a_failure_with_an_account_elsewhere_is_in_that_workspace_s_log() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn(oauth([("corp", oidc(&provider))])).await;
        let alpha = app.workspace("Alpha").await;
        let id = add_user(&alpha, EMAIL).await;
        let path = format!("/api/admin/users/{id}");
        alpha
            .patch(&path, &json!({"disabled": true}))
            .await
            .expect(200)
            .await;
        let answer = Browser::new(&app).sign_in(&provider, "corp").await;
        assert_eq!(answer.refused(401).await, NO_ACCOUNT);
        let entry = &alpha.audited("auth.login").await[0];
        assert_eq!(
            (&entry["outcome"], &entry["metadata"]["provider"]),
            (&json!("failure"), &json!("corp"))
        );
        let logs = app.admin.audited("auth.login").await;
        assert!(
            logs.iter().all(|entry| entry["metadata"]["provider"].is_null()),
            "{logs:?}"
        );
        app.stop().await;
    });
}

#[test]
fn a_user_of_several_workspaces_names_one_at_the_beginning() {
    run(async {
        let provider = Provider::start(Key::elliptic());
        let app = spawn(oauth([("corp", oidc(&provider))])).await;
        let (alpha, beta) = (app.workspace("Alpha Team").await, app.workspace("Beta").await);
        add_user(&alpha, EMAIL).await;
        let beta_user = add_user(&beta, EMAIL).await;
        let beta_id = beta.get("/api/auth/me").await.expect(200).await["workspace"]["id"].clone();
        let sign_in = async |path: &str| Browser::new(&app).sign_in(&provider, path).await;
        let error = sign_in("corp").await.refused(400).await;
        let want = "workspace: is required, as name or id: begin again with it; the address has accounts in ";
        assert!(error.starts_with(want), "{error}");
        assert!(
            error.contains("Alpha Team (") && error.contains("Beta ("),
            "{error}"
        );
        let entry = &alpha.audited("auth.login").await[0];
        assert_eq!(
            entry["metadata"],
            json!({"provider": "corp", "reason": "workspace required"})
        );
        for (path, name) in [
            ("corp?workspace=Alpha%20Team".to_owned(), "Alpha Team"),
            (format!("corp?workspace={}", beta_id.as_str().unwrap()), "Beta"),
        ] {
            let body = sign_in(&path).await.expect(200).await;
            assert_eq!(body["workspace"]["name"], name);
        }
        assert_eq!(
            sign_in("corp?workspace=Operator").await.refused(401).await,
            NO_ACCOUNT
        );
        // An administrator who disables an account does not send its user to an account that somebody else made.
        let path = format!("/api/admin/users/{beta_user}");
        beta.patch(&path, &json!({"disabled": true}))
            .await
            .expect(200)
            .await;
        let error = sign_in("corp").await.refused(400).await;
        assert!(
            error.contains("Alpha Team (") && !error.contains("Beta ("),
            "{error}"
        );
        let body = sign_in("corp?workspace=Alpha%20Team").await.expect(200).await;
        assert_eq!(body["workspace"]["name"], "Alpha Team");
        app.stop().await;
    });
}
