//! Schema migrations: numbered files under `schemas/`, each applied once, in order, by the owner session.

use std::cmp::Ordering;

use argon2::password_hash::{PasswordHasher, SaltString};
use argon2::{Argon2, Params};
use surrealdb::opt::auth::Database as DatabaseUser;
use uuid::Uuid;

use super::{audit, initial};
use crate::domain::error::DomainError;
use crate::store::archive::refuse_half_restored;
use crate::store::connection::database::Database;
use crate::store::connection::error::StoreError;
use crate::store::connection::retry::with_race_retry;

/// All migrations, oldest first; a store's version is the number of the last one applied.
const MIGRATIONS: &[(i64, &str)] = &[
    (1, include_str!("../../../schemas/0001_core.surql")),
    (2, include_str!("../../../schemas/0002_notes.surql")),
    (3, include_str!("../../../schemas/0003_retention.surql")),
    (4, include_str!("../../../schemas/0004_staging_sessions.surql")),
    (5, include_str!("../../../schemas/0005_local.surql")),
    (6, include_str!("../../../schemas/0006_addresses.surql")),
    (7, include_str!("../../../schemas/0007_held_back.surql")),
    (8, include_str!("../../../schemas/0008_node_writes.surql")),
    (9, include_str!("../../../schemas/0009_feeds.surql")),
    (10, include_str!("../../../schemas/0010_demo.surql")),
    (11, include_str!("../../../schemas/0011_pilot.surql")),
    (12, include_str!("../../../schemas/0012_hot_tables.surql")),
    (13, include_str!("../../../schemas/0013_passages.surql")),
    (14, include_str!("../../../schemas/0014_relationships.surql")),
    (15, include_str!("../../../schemas/0015_passages.surql")),
    (16, include_str!("../../../schemas/0016_note_writes.surql")),
    (17, include_str!("../../../schemas/0017_audit_order.surql")),
    (
        AUDIT_MOVED,
        include_str!("../../../schemas/0018_audit_moved.surql"),
    ),
    (20, include_str!("../../../schemas/0020_stix_changes.surql")),
    (22, include_str!("../../../schemas/0022_feed_markings.surql")),
    (23, include_str!("../../../schemas/0023_identity.surql")),
    (24, include_str!("../../../schemas/0024_staging_levels.surql")),
    (25, include_str!("../../../schemas/0025_carried_markings.surql")),
    (26, include_str!("../../../schemas/0026_write_numbers.surql")),
    (
        27,
        include_str!("../../../schemas/0027_waiting_relationships.surql"),
    ),
    (28, include_str!("../../../schemas/0028_lists.surql")),
    (
        29,
        include_str!("../../../schemas/0029_observable_versions.surql"),
    ),
    (30, include_str!("../../../schemas/0030_note_history.surql")),
    (31, include_str!("../../../schemas/0031_changes.surql")),
    (32, include_str!("../../../schemas/0032_merges.surql")),
    (33, include_str!("../../../schemas/0033_distinct.surql")),
    (34, include_str!("../../../schemas/0034_erasures.surql")),
    (35, include_str!("../../../schemas/0035_erased_texts.surql")),
    (36, include_str!("../../../schemas/0036_taxii.surql")),
    (37, include_str!("../../../schemas/0037_collections.surql")),
    (38, include_str!("../../../schemas/0038_added_again.surql")),
];

const FIRST: i64 = 1;
/// Before this migration the audit log is moved.
const AUDIT_MOVED: i64 = 18;

/// How the password of the service user is stored.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) enum Hashing {
    /// As the engine stores passwords: argon2id with its recommended parameters, about 50 ms per sign-in.
    Slow,
    /// Argon2id with the minimum parameters (RFC 9106, section 3.1): a random password can't be brute-forced even with a
    /// fast hash.
    Quick,
}

impl Hashing {
    /// The clause of `DEFINE USER`. The password is hexadecimal, so it needs no escaping in DDL, which takes no
    /// parameters.
    fn clause(self, password: &str) -> Result<String, StoreError> {
        let hash = match self {
            Self::Slow => return Ok(format!("PASSWORD '{password}'")),
            Self::Quick => quick_hash(password).map_err(|error| {
                DomainError::internal("hashing the password of the service user failed", error)
            })?,
        };
        Ok(format!("PASSHASH '{hash}'"))
    }
}

fn quick_hash(password: &str) -> argon2::password_hash::Result<String> {
    let params = Params::new(Params::MIN_M_COST, Params::MIN_T_COST, Params::MIN_P_COST, None)?;
    let salt = SaltString::encode_b64(Uuid::new_v4().as_bytes())?;
    let hash = Argon2::from(params).hash_password(password.as_bytes(), &salt)?;
    Ok(hash.to_string())
}

/// Selects the database, applies missing migrations and defines the service user.
///
/// Retried on conflict: processes that share a server may start at the same moment.
pub(in crate::store) async fn run(
    admin: &Database,
    user: &DatabaseUser,
    hashing: Hashing,
) -> Result<(), StoreError> {
    with_race_retry(|| migrate(admin, user, hashing)).await
}

async fn migrate(admin: &Database, user: &DatabaseUser, hashing: Hashing) -> Result<(), StoreError> {
    let DatabaseUser {
        namespace,
        database,
        username: user,
        password,
    } = user;
    make_database(admin, namespace, database).await?;
    refuse_half_restored(admin).await?;
    apply(admin, known_version()).await?;
    let password = hashing.clause(password)?;
    admin
        .query(format!(
            "DEFINE USER OVERWRITE {user} ON DATABASE {password} ROLES VIEWER \
             DURATION FOR TOKEN 12h, FOR SESSION NONE"
        ))
        .await?
        .check()?;
    Ok(())
}

/// Selects a database, which is made if it is missing.
pub(in crate::store) async fn make_database(
    admin: &Database,
    namespace: &str,
    database: &str,
) -> Result<(), StoreError> {
    admin
        .query(format!("DEFINE NAMESPACE IF NOT EXISTS {namespace}"))
        .await?
        .check()?;
    admin
        .query(format!(
            "USE NS {namespace}; DEFINE DATABASE IF NOT EXISTS {database}"
        ))
        .await?
        .check()?;
    Ok(admin.use_database(namespace, database).await?)
}

/// The version of the schema that this program makes.
pub(in crate::store) fn known_version() -> i64 {
    MIGRATIONS.last().map_or(0, |(number, _)| *number)
}

/// Checks that the schema is the one that this program makes.
///
/// # Errors
/// [`StoreError::TooNew`] or [`StoreError::TooOld`].
pub(in crate::store) async fn require_known_version(db: &Database) -> Result<(), StoreError> {
    let (found, known) = (version_of(db).await?, known_version());
    match found.cmp(&known) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(StoreError::TooNew { found, known }),
        Ordering::Less => Err(StoreError::TooOld { found, known }),
    }
}

/// Applies the migrations that are missing up to this one; a new store gets all of them at once.
///
/// # Errors
/// [`StoreError::TooNew`] for a schema that this program does not know.
pub(in crate::store) async fn apply(admin: &Database, up_to: i64) -> Result<(), StoreError> {
    begin(admin).await?;
    if up_to == known_version() && version_of(admin).await? == 0 {
        return initial::make(admin, MIGRATIONS.iter().map(|(number, _)| *number)).await;
    }
    apply_each(admin, up_to).await
}

/// Prepares a database for notes of what was applied.
async fn begin(admin: &Database) -> Result<(), StoreError> {
    admin
        .query(
            "DEFINE TABLE IF NOT EXISTS schema_version TYPE NORMAL SCHEMAFULL PERMISSIONS NONE;
                DEFINE FIELD IF NOT EXISTS applied_at ON schema_version TYPE datetime",
        )
        .await?
        .check()?;
    Ok(())
}

/// Applies the migrations that are missing up to this one, one by one.
pub(super) async fn apply_each(admin: &Database, up_to: i64) -> Result<(), StoreError> {
    begin(admin).await?;
    let version = version_of(admin).await?;
    let known = known_version();
    if version > known {
        return Err(StoreError::TooNew {
            found: version,
            known,
        });
    }
    if version == FIRST {
        complete_first(admin).await?;
    }
    let missing = |number: i64| number > version && number <= up_to;
    for (number, script) in MIGRATIONS.iter().filter(|(number, _)| missing(*number)) {
        if *number == AUDIT_MOVED {
            let moved = audit::run(admin).await;
            // Another process may have been faster, and removed the tables.
            if version_of(admin).await? >= *number {
                continue;
            }
            moved?;
        }
        // One transaction, so that an interrupted migration leaves no trace.
        let whole =
            format!("BEGIN; {script} CREATE schema_version:{number} SET applied_at = time::now(); COMMIT;");
        admin.query(whole).await?.check()?;
    }
    Ok(())
}

/// Brings a store of the very first versions to the form that the first migration has had since: they applied it before it
/// had nodes with the markings of their evidence, and staging batches.
async fn complete_first(admin: &Database) -> Result<(), StoreError> {
    let Some((_, script)) = MIGRATIONS.iter().find(|(number, _)| *number == FIRST) else {
        return Ok(());
    };
    let again = ["TABLE", "FIELD", "INDEX", "EVENT"]
        .iter()
        .fold((*script).to_owned(), |script, kind| {
            script.replace(&format!("DEFINE {kind} "), &format!("DEFINE {kind} OVERWRITE "))
        });
    let fill = "UPDATE node SET evidence_tlp = evidence.map(|$id| type::record('evidence', $id).tlp_rank) \
                WHERE evidence_tlp = NONE RETURN NONE";
    admin
        .query(format!("BEGIN; {again} {fill}; COMMIT;"))
        .await?
        .check()?;
    Ok(())
}

/// The number of the last migration applied; 0 before any was.
async fn version_of(admin: &Database) -> Result<i64, StoreError> {
    let query = "SELECT VALUE record::id(id) FROM schema_version";
    let applied: Vec<i64> = admin.query(query).await?.check()?.take(0)?;
    Ok(applied.into_iter().max().unwrap_or(0))
}
