//! What the ids of rows are made with. It never changes, so it is read once, when the store is opened.

use std::sync::Arc;

use surrealdb::types::SurrealValue;
use uuid::Uuid;

use crate::domain::cursor_seal::CursorSeal;
use crate::domain::ids::{IdSecret, WorkspaceIds};
use crate::store::Store;
use crate::store::connection::database::Database;
use crate::store::connection::error::StoreError;
use crate::store::rows::corrupt;

#[derive(Debug, SurrealValue)]
struct IdSecretRow {
    id_secret: Uuid,
    public_ids: Vec<Uuid>,
}

/// Reads it from a database whose schema is up to date.
pub(in crate::store) async fn read(db: &Database) -> Result<Arc<IdSecret>, StoreError> {
    let query = "SELECT id_secret, public_ids FROM installation:this";
    let row: Option<IdSecretRow> = db.query(query).await?.take(0)?;
    let row = row.ok_or_else(|| corrupt("the secret of the installation is missing"))?;
    Ok(Arc::new(IdSecret::new(row.id_secret, row.public_ids)))
}

impl Store {
    /// What the ids of rows are made with.
    pub fn id_secret(&self) -> Arc<IdSecret> {
        Arc::clone(&self.id_secret)
    }

    /// What seals the positions in a list of a workspace.
    pub fn cursor_seal(&self, ws: Uuid, list: &str) -> CursorSeal {
        self.id_secret.seal(list, ws)
    }

    /// The ids of the rows of a workspace.
    pub fn ids_of(&self, ws: Uuid) -> WorkspaceIds {
        self.id_secret.ids_of(ws)
    }

    /// The ids that nodes with this identity may have in a workspace.
    pub fn ids_of_identity(&self, ws: Uuid, identity: &str) -> [Uuid; 2] {
        let ids = [self.id_secret.ids_of(ws), self.id_secret.secret_ids_of(ws)];
        ids.map(|ids| ids.node(identity))
    }
}
