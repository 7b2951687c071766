//! The schema of a new store, in one piece: what all migrations together make of an empty one.
//!
//! `schemas/initial.surql` is written by a test, which also compares it with the sum of the migrations:
//! `THREAT_MEMORY_WRITE_SCHEMA=1 cargo test initial_schema` after a new one.

use crate::store::connection::database::Database;
use crate::store::connection::error::StoreError;

const SCHEMA: &str = include_str!("../../../schemas/initial.surql");
/// The only row that migrations make in an empty store.
const ROWS: &str = "INSERT IGNORE INTO installation \
    { id: installation:this, id_secret: rand::uuid::v4(), public_ids: [] } RETURN NONE;";

/// Makes the schema of a new store, in which these migrations then count as applied.
pub(super) async fn make(admin: &Database, numbers: impl Iterator<Item = i64>) -> Result<(), StoreError> {
    let applied: String = numbers
        .map(|number| format!("CREATE schema_version:{number} SET applied_at = time::now();"))
        .collect();
    // One transaction, so that an interruption leaves no trace.
    let whole = format!("BEGIN; {SCHEMA} {ROWS} {applied} COMMIT;");
    admin.query(whole).await?.check()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use surrealdb::types::Value;

    use super::*;
    use crate::archive::ServiceKind;
    use crate::store::StorageMemory;
    use crate::store::archive::{Purpose, StoreTarget};
    use crate::store::migrations::migrate;

    /// Those that say what was applied, or are made before any migration.
    const OUTSIDE: [&str; 1] = ["schema_version"];

    async fn new_store(dir: &Path) -> Database {
        let target = StoreTarget {
            url: format!("surrealkv://{}", dir.join("store").display()),
            memory: StorageMemory::default(),
            server: None,
            service: ServiceKind::Hosted,
        };
        target.open(Purpose::Restore).await.unwrap().db
    }

    async fn info(db: &Database, of: &str) -> serde_json::Value {
        let mut answer = db.query(format!("INFO FOR {of}")).await.unwrap();
        let info: Option<Value> = answer.take(0).unwrap();
        info.unwrap().into_json_value()
    }

    /// The statements that make the schema of a store, and how many rows each table has.
    async fn described(db: &Database) -> (String, Vec<(String, i64)>) {
        let whole = info(db, "DB").await;
        let (mut text, mut rows) = (String::new(), Vec::new());
        for (name, table) in whole["tables"].as_object().unwrap() {
            if OUTSIDE.contains(&name.as_str()) {
                continue;
            }
            let inner = info(db, &format!("TABLE {name}")).await;
            let parts = ["fields", "indexes", "events"].into_iter();
            let parts = parts.flat_map(|kind| inner[kind].as_object().unwrap().values());
            for statement in std::iter::once(table).chain(parts) {
                // A list has its entries defined with it.
                let statement =
                    statement
                        .as_str()
                        .unwrap()
                        .replacen("DEFINE FIELD ", "DEFINE FIELD OVERWRITE ", 1);
                text += &format!("{statement};\n");
            }
            text.push('\n');
            let mut counted = db
                .query(format!("RETURN array::len((SELECT VALUE id FROM {name}))"))
                .await
                .unwrap();
            rows.push((name.clone(), counted.take::<Option<i64>>(0).unwrap().unwrap()));
        }
        (text, rows)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_initial_schema_is_the_sum_of_the_migrations() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (stepwise, at_once) = (new_store(dirs[0].path()).await, new_store(dirs[1].path()).await);
        migrate::apply_each(&stepwise, migrate::known_version())
            .await
            .unwrap();
        let sum = described(&stepwise).await;
        if std::env::var_os("THREAT_MEMORY_WRITE_SCHEMA").is_some() {
            std::fs::write(
                concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/initial.surql"),
                &sum.0,
            )
            .unwrap();
        }
        assert!(
            SCHEMA == sum.0,
            "schemas/initial.surql lacks what a migration does: write it again, as this module says, and build again"
        );
        migrate::apply(&at_once, migrate::known_version()).await.unwrap();
        let made = described(&at_once).await;
        assert_eq!(made, sum);
        let versions = "SELECT VALUE record::id(id) FROM schema_version ORDER BY id";
        let mut of_each = Vec::new();
        for db in [&stepwise, &at_once] {
            let found: Vec<i64> = db.query(versions).await.unwrap().take(0).unwrap();
            of_each.push(found);
        }
        assert_eq!(of_each[0], of_each[1]);
    }
}
