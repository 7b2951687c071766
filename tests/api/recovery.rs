//! Accounts that are recovered on the machine, while the service rests.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::helpers::{ADMIN, PASSWORD, run};
use crate::process::{Service, hosted, printed, program, refused, started_once};

fn admin(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = program();
    command.arg("admin").args(arguments).arg("--storage");
    command.arg(format!("surrealkv://{}", dir.display()));
    command
}

#[test]
fn no_account_is_looked_for_where_there_is_no_store() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    let said = refused(&mut admin(&empty, &["create-admin", "new@example.com"]));
    assert!(said.contains("there is no store"), "{said}");
    assert!(!empty.exists(), "a store was made");
    let mut temporary = program();
    temporary.args(["admin", "reset-password", ADMIN, "--storage", "mem://"]);
    let said = refused(&mut temporary);
    assert!(said.contains("there is no store"), "{said}");
}

#[test]
fn root_makes_no_files_in_the_store_of_another_user() {
    let dir = started_once();
    let marker = dir.path().join("store.marker");
    // Only root can give a file away, and only root is refused.
    if std::os::unix::fs::chown(&marker, Some(65534), None).is_err() {
        return;
    }
    let storage = format!("surrealkv://{}", dir.path().display());
    let names = || {
        let entries = std::fs::read_dir(dir.path()).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for arguments in [
        vec!["admin", "reset-password", ADMIN],
        vec!["check"],
        vec!["backup", "-"],
        vec!["hosted"],
    ] {
        let mut command = program();
        command.args(&arguments).args(["--storage", &storage]);
        let said = refused(&mut command);
        assert!(
            said.contains("65534") && said.contains("sudo -u"),
            "{arguments:?}: {said}"
        );
    }
    assert_eq!(names(), before);
}

#[test]
fn who_has_lost_the_password_gets_another_one_on_the_machine() {
    run(async {
        let dir = started_once();
        let service = Service::start(hosted(dir.path()));
        let before = service.admin().await;
        let said = refused(&mut admin(dir.path(), &["reset-password", ADMIN]));
        assert!(said.contains("in use"), "{said}");
        service.stop();

        let told = printed(&mut admin(dir.path(), &["reset-password", ADMIN]));
        let made = told.split("only now: ").nth(1).unwrap().trim().to_owned();
        let service = Service::start(hosted(dir.path()));
        let anonymous = service.anonymous();
        anonymous.login(ADMIN, PASSWORD).await.refused(401).await;
        let signed_in = anonymous.sign_in(ADMIN, &made).await;
        assert_eq!(signed_in.audited("admin.reset_password").await.len(), 1);
        let mut old = before.clone();
        old.base.clone_from(&anonymous.base);
        old.get("/api/auth/me").await.refused(401).await;
        let chain = signed_in.get("/api/audit/verify").await.expect(200).await;
        assert_eq!(chain["valid"], true, "{chain}");
        service.stop();

        let mut chosen = admin(dir.path(), &["reset-password", ADMIN]);
        let said = refused(chosen.env("THREAT_MEMORY_NEW_PASSWORD", "short"));
        assert!(said.contains("THREAT_MEMORY_NEW_PASSWORD"), "{said}");
        printed(chosen.env("THREAT_MEMORY_NEW_PASSWORD", PASSWORD));
        let said = refused(&mut admin(dir.path(), &["reset-password", "nobody@example.com"]));
        assert!(said.contains("not found"), "{said}");
        let mut second = admin(dir.path(), &["create-admin", "second@example.com"]);
        printed(second.env("THREAT_MEMORY_NEW_PASSWORD", PASSWORD));
        let said = refused(&mut second);
        assert!(said.contains("already in use"), "{said}");
        let service = Service::start(hosted(dir.path()));
        service.admin().await;
        let second = service.anonymous().sign_in("second@example.com", PASSWORD).await;
        let me = second.get("/api/auth/me").await.expect(200).await;
        assert_eq!(me["user"]["role"], json!("admin"), "{me}");
        service.stop();
    });
}
