//! The texts beside the log: read with their entries, and erased.

use std::collections::{BTreeMap, HashMap};

use surrealdb::types::{RecordId, SurrealValue};
use uuid::Uuid;

use super::rows::{Position, TextsRow};
use crate::domain::audit::{AuditEntry, AuditText};
use crate::domain::error::DomainError;
use crate::store::rows::{key, record};
use crate::store::{Store, failed};

const READ: &str = "reading the texts of the audit log failed";

#[derive(Debug, SurrealValue)]
struct AddressRow {
    id: RecordId,
    email: String,
}

impl Store {
    /// The texts of the entries at these positions, by entry.
    pub(super) async fn audit_texts(
        &self,
        tenant: Uuid,
        positions: &[Position],
    ) -> Result<HashMap<Uuid, BTreeMap<String, AuditText>>, DomainError> {
        let ids = positions.iter().map(|position| position.texts_id(tenant));
        let query = "SELECT * FROM $ids WHERE tenant_id = $t";
        let bound = [("t", tenant.into_value())];
        let rows: Vec<TextsRow> = self
            .rows_by_id(query, ids.collect(), &bound)
            .await
            .map_err(failed(READ))?;
        rows.iter()
            .map(|row| Ok((Position::from_id(&row.id)?.entry, row.texts()?)))
            .collect()
    }

    /// Entries as people read them.
    pub(super) async fn readable(
        &self,
        tenant: Uuid,
        entries: Vec<AuditEntry>,
    ) -> Result<Vec<AuditEntry>, DomainError> {
        let positions: Vec<Position> = entries.iter().map(Position::of).collect();
        let mut texts = self.audit_texts(tenant, &positions).await?;
        let mut users: Vec<Uuid> = entries.iter().filter_map(|entry| entry.user_id).collect();
        users.sort_unstable();
        users.dedup();
        let users = users.into_iter().map(|user| record("user", user)).collect();
        let query = "SELECT id, email FROM $ids WHERE ws = $t";
        let bound = [("t", tenant.into_value())];
        let found: Vec<AddressRow> = self
            .rows_by_id(query, users, &bound)
            .await
            .map_err(failed(READ))?;
        let found = found.into_iter().map(|row| Ok((key(&row.id)?, row.email)));
        let addresses: HashMap<Uuid, String> = found.collect::<Result<_, DomainError>>()?;
        let readable = entries.into_iter().map(|mut entry| {
            entry.texts = texts.remove(&entry.id).unwrap_or_default();
            let address = entry.user_id.and_then(|user| addresses.get(&user));
            entry.readable(address.map(String::as_str))
        });
        Ok(readable.collect())
    }
}
