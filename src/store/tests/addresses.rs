//! Accounts of one e-mail address: unique per workspace, also in a store created before that rule.

use super::feeds::WITHOUT_FEEDS;
use super::*;
use crate::domain::error::ErrorKind;
use crate::domain::permission::{Role, Tier};
use crate::domain::principal::Workspace;
use crate::store::UserRecord;

/// Reverts a new store to the schema in which an address was unique across all workspaces.
const BEFORE: &str = "REMOVE INDEX user_ws_email ON user; REMOVE INDEX user_address ON user; \
    DEFINE INDEX user_email ON user FIELDS email UNIQUE; REMOVE TABLE stix_held; \
    REMOVE FIELD IF EXISTS held_by ON node; REMOVE FIELD IF EXISTS held_by ON edge; REMOVE FIELD held_by ON stix_support; \
    REMOVE TABLE node_write; DEFINE INDEX node_ws_rev ON node FIELDS ws, rev; \
    DELETE schema_version WHERE record::id(id) >= 6;";

fn user(ws: Uuid, email: &str) -> UserRecord {
    let now = clock::now();
    UserRecord {
        id: Uuid::new_v4(),
        ws,
        email: email.into(),
        password_hash: Some("hash".into()),
        role: Role::Viewer,
        disabled: false,
        tokens_after: now,
        created_at: now,
    }
}

/// Adds a user; returns the error if it was refused.
async fn add(store: &Store, user: &UserRecord) -> Option<String> {
    let mut entry = entry(user.ws, "admin.user_create");
    entry.user_id = store.users(user.ws).await.unwrap().first().map(|admin| admin.id);
    let made = store.create_user(user, &entry).await;
    made.err().map(|error| {
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
        error.to_string()
    })
}

async fn workspace(store: &Store, name: &str) -> Uuid {
    let workspace = Workspace {
        id: Uuid::new_v4(),
        name: name.into(),
        tier: Tier::Pilot,
        tlp_ceiling: Tlp::Amber,
        elevated_clearance: false,
        red_export_grant: false,
        features: Vec::new(),
        created_at: clock::now(),
        is_operator: false,
        suspended: false,
    };
    let admin = UserRecord {
        role: Role::Admin,
        ..user(workspace.id, &format!("{}@example.com", workspace.id))
    };
    let made = store.create_workspace(&workspace, false, Some(&admin), None, clock::now());
    made.await.unwrap();
    workspace.id
}

async fn ids(store: &Store, email: &str, workspace: Option<&str>, most: usize) -> Vec<Uuid> {
    let found = store.accounts_of(email, workspace, most).await.unwrap();
    found.iter().map(|user| user.id).collect()
}

#[test]
fn accounts_of_an_address_are_found_by_workspace_and_those_that_can_sign_in_come_first() {
    run_on_each(|url| async move {
        let store = open(&url).await;
        let (a, b, c) = (
            workspace(&store, "Alpha").await,
            workspace(&store, "Beta").await,
            workspace(&store, "Beta").await,
        );
        let mut accounts = [a, b, c].map(|ws| user(ws, "one@example.com"));
        accounts[0].disabled = true;
        for (at, account) in accounts.iter_mut().enumerate() {
            account.created_at += chrono::Duration::seconds(at as i64);
            assert_eq!(add(&store, account).await, None);
        }
        let of = accounts.map(|account| account.id);
        assert_eq!(
            ids(&store, "One@Example.com", None, 4).await,
            [of[1], of[2], of[0]]
        );
        assert_eq!(ids(&store, "one@example.com", None, 2).await, [of[1], of[2]]);
        assert_eq!(ids(&store, "one@example.com", Some("Alpha"), 4).await, [of[0]]);
        assert_eq!(
            ids(&store, "one@example.com", Some("Beta"), 4).await,
            [of[1], of[2]]
        );
        assert_eq!(
            ids(&store, "one@example.com", Some(&c.to_string()), 4).await,
            [of[2]]
        );
        for nothing in ["beta", "", "Gamma", "0", &Uuid::new_v4().to_string()] {
            let found = ids(&store, "one@example.com", Some(nothing), 4).await;
            assert!(found.is_empty(), "{nothing}");
        }
        assert!(ids(&store, "two@example.com", None, 4).await.is_empty());
    });
}

#[test]
fn users_of_an_older_store_stay_and_their_addresses_become_free_elsewhere() {
    let (_dir, url) = new_dir();
    run(async move {
        let store = open(&url).await;
        let (a, b) = (workspace(&store, "Alpha").await, workspace(&store, "Beta").await);
        let (old, other) = (user(a, "one@example.com"), user(a, "two@example.com"));
        assert_eq!(add(&store, &old).await, None);
        assert_eq!(add(&store, &other).await, None);
        drop(store);
        let db = owner(&url).await;
        db.query(format!("{WITHOUT_FEEDS} {BEFORE}"))
            .await
            .unwrap()
            .check()
            .unwrap();
        drop(db);

        let store = open(&url).await;
        assert_eq!(ids(&store, "one@example.com", None, 4).await, [old.id]);
        let elsewhere = user(b, "one@example.com");
        assert_eq!(add(&store, &elsewhere).await, None);
        let taken = Some("email: is already in use".to_owned());
        assert_eq!(add(&store, &user(a, "one@example.com")).await, taken);
        assert_eq!(add(&store, &user(b, "one@example.com")).await, taken);
        assert_eq!(
            ids(&store, "one@example.com", None, 4).await,
            [old.id, elsewhere.id]
        );
    });
}
