//! Rows of the audit log, and of the texts beside it. Their ids are their order, so that the tables need no index, which would cost more than a row.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::Value;
use surrealdb::types::{Array, Object, RecordId, RecordIdKey, SurrealValue};
use uuid::Uuid;

use crate::domain::audit::{AuditEntry, AuditText, ChainLink};
use crate::domain::error::DomainError;
use crate::store::connection::error::StoreError;
use crate::store::connection::tx::WriteTx;
use crate::store::rows::{corrupt, newest_first, parse};

/// Position of an entry in its workspace's log, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) struct Position {
    /// Minus the microseconds since 1970: a forward scan is far faster in the engine than a backward one.
    pub ord: i64,
    pub entry: Uuid,
}

/// An entry. Its id is [workspace, ord, entry].
#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct AuditRow {
    id: RecordId,
    tenant_id: Uuid,
    user_id: Option<Uuid>,
    user_email: Option<String>,
    action: String,
    resource: String,
    resource_id: Option<String>,
    outcome: String,
    ip_address: Option<String>,
    metadata: String,
    created_at: DateTime<Utc>,
}

/// Links that were written together. The id is [workspace, minus the first link's number]: the end of a chain comes first.
#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct LinksRow {
    id: RecordId,
    tenant_id: Uuid,
    /// When they were written.
    at: DateTime<Utc>,
    prev_hash: String,
    links: Vec<LinkRow>,
}

#[derive(Debug, Clone, SurrealValue)]
struct LinkRow {
    entry: Uuid,
    ord: i64,
    entry_hash: String,
    hash: String,
}

/// A link with its entry's position.
pub(in crate::store) type PlacedLink = (ChainLink, Position);

/// The texts of an entry, as JSON. Its id is that of the entry.
#[derive(Debug, Clone, SurrealValue)]
pub(in crate::store) struct TextsRow {
    pub(in crate::store) id: RecordId,
    tenant_id: Uuid,
    texts: String,
    on: Option<String>,
}

impl TextsRow {
    fn of(entry: &AuditEntry) -> Option<Self> {
        if entry.texts.is_empty() {
            return None;
        }
        Some(Self {
            id: Position::of(entry).texts_id(entry.tenant_id),
            tenant_id: entry.tenant_id,
            // Strings by name can't fail to be written.
            texts: serde_json::to_string(&entry.texts).unwrap_or_default(),
            on: entry.resource_id.clone(),
        })
    }

    /// Whether its entry is about one of these.
    pub(in crate::store) fn is_on(&self, ids: &HashSet<String>) -> bool {
        self.on.as_ref().is_some_and(|on| ids.contains(on))
    }

    /// The position of a row, by its id.
    pub(in crate::store) fn place_of(id: &RecordId) -> Result<(i64, Uuid), DomainError> {
        Position::from_id(id).map(|position| (position.ord, position.entry))
    }

    pub(in crate::store) fn texts(&self) -> Result<BTreeMap<String, AuditText>, DomainError> {
        serde_json::from_str(&self.texts).map_err(corrupt)
    }
}

/// Rows of entries and of their texts, and a reference to each entry for its user's own log.
pub(in crate::store) fn audit_rows<'a>(
    entries: impl IntoIterator<Item = &'a AuditEntry>,
) -> Vec<surrealdb::types::Value> {
    let mut rows = Vec::new();
    for entry in entries {
        rows.push(AuditRow::from(entry).into_value());
        rows.extend(TextsRow::of(entry).map(TextsRow::into_value));
        if let Some(user) = entry.user_id {
            let Position { ord, entry: id } = Position::of(entry);
            let key = [
                entry.tenant_id.into_value(),
                user.into_value(),
                ord.into_value(),
                id.into_value(),
            ];
            let mut reference = Object::new();
            reference.insert("id".to_owned(), id_of("audit_by_user", key.into()).into_value());
            rows.push(reference.into_value());
        }
    }
    rows
}

impl WriteTx {
    /// Writes entries of the audit log.
    pub(in crate::store) async fn audit<'a>(
        &self,
        entries: impl IntoIterator<Item = &'a AuditEntry>,
    ) -> Result<(), StoreError> {
        self.write("INSERT $rows RETURN NONE", audit_rows(entries)).await
    }
}

fn id_of(table: &str, key: Vec<surrealdb::types::Value>) -> RecordId {
    RecordId::new(table, Array::from(key))
}

impl Position {
    pub(in crate::store) fn of(entry: &AuditEntry) -> Self {
        Self {
            ord: newest_first(entry.created_at),
            entry: entry.id,
        }
    }

    /// When the entry was made.
    pub(super) fn made_at(self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.ord.saturating_neg()).unwrap_or(DateTime::UNIX_EPOCH)
    }

    /// The position of an entry, from its id or the id of a reference to it.
    pub(super) fn from_id(id: &RecordId) -> Result<Self, DomainError> {
        let RecordIdKey::Array(key) = &id.key else {
            return Err(corrupt(format!("{:?} is not a position in the log", id.key)));
        };
        let place =
            <[surrealdb::types::Value; 2]>::try_from(key.iter().rev().take(2).cloned().collect::<Vec<_>>());
        let [entry, ord] = place.map_err(|key| corrupt(format!("{key:?} is not a position in the log")))?;
        Ok(Self {
            ord: i64::from_value(ord).map_err(corrupt)?,
            entry: Uuid::from_value(entry).map_err(corrupt)?,
        })
    }

    /// The id of the entry's row.
    pub(in crate::store) fn id(self, tenant: Uuid) -> RecordId {
        self.id_in("audit_entry", tenant)
    }

    /// The id of the row with its texts.
    pub(super) fn texts_id(self, tenant: Uuid) -> RecordId {
        self.id_in("audit_text", tenant)
    }

    fn id_in(self, table: &str, tenant: Uuid) -> RecordId {
        let key = [
            tenant.into_value(),
            self.ord.into_value(),
            self.entry.into_value(),
        ];
        id_of(table, key.into())
    }
}

impl From<&AuditEntry> for AuditRow {
    fn from(entry: &AuditEntry) -> Self {
        Self {
            id: Position::of(entry).id(entry.tenant_id),
            tenant_id: entry.tenant_id,
            user_id: entry.user_id,
            user_email: entry.user_email.clone(),
            action: entry.action.clone(),
            resource: entry.resource.clone(),
            resource_id: entry.resource_id.clone(),
            outcome: entry.outcome.as_str().to_owned(),
            ip_address: entry.ip_address.clone(),
            metadata: Value::Object(entry.metadata.clone()).to_string(),
            created_at: entry.created_at,
        }
    }
}

impl AuditRow {
    pub(in crate::store) fn id(&self) -> &RecordId {
        &self.id
    }

    pub(super) fn into_entry(self) -> Result<AuditEntry, DomainError> {
        let id = Position::from_id(&self.id)?.entry;
        self.with_id(id)
    }

    /// The entry, for a row whose id says otherwise what the entry's is.
    pub(in crate::store) fn with_id(self, id: Uuid) -> Result<AuditEntry, DomainError> {
        Ok(AuditEntry {
            id,
            tenant_id: self.tenant_id,
            user_id: self.user_id,
            user_email: self.user_email,
            action: self.action,
            resource: self.resource,
            resource_id: self.resource_id,
            outcome: parse(&self.outcome)?,
            ip_address: self.ip_address,
            metadata: serde_json::from_str(&self.metadata).map_err(corrupt)?,
            created_at: self.created_at,
            texts: BTreeMap::new(),
        })
    }
}

impl LinksRow {
    /// A row of links that follow each other; `None` without any.
    pub(in crate::store) fn new(tenant: Uuid, links: &[PlacedLink], at: DateTime<Utc>) -> Option<Self> {
        let (first, _) = links.first()?;
        let number = i64::try_from(first.seq).unwrap_or(i64::MAX);
        Some(Self {
            id: id_of("audit_link", vec![tenant.into_value(), (-number).into_value()]),
            tenant_id: tenant,
            at,
            prev_hash: first.prev_hash.clone(),
            links: links.iter().map(LinkRow::from).collect(),
        })
    }

    pub(super) fn into_links(self) -> Result<Vec<PlacedLink>, DomainError> {
        let first = first_link(&self.id)?;
        let mut prev_hash = self.prev_hash;
        let links = (first..).zip(self.links).map(|(seq, row)| {
            let prev_hash = std::mem::replace(&mut prev_hash, row.hash.clone());
            let position = Position {
                ord: row.ord,
                entry: row.entry,
            };
            let link = ChainLink {
                seq,
                entry: row.entry,
                entry_hash: row.entry_hash,
                prev_hash,
                hash: row.hash,
            };
            (link, position)
        });
        Ok(links.collect())
    }
}

/// The number of a row's first link.
fn first_link(id: &RecordId) -> Result<u64, DomainError> {
    let last = if let RecordIdKey::Array(key) = &id.key {
        key.last().cloned()
    } else {
        None
    };
    let number = last.and_then(|number| i64::from_value(number).ok());
    number
        .and_then(|number| u64::try_from(number.checked_neg()?).ok())
        .ok_or_else(|| corrupt(format!("{:?} is not a place in the chain", id.key)))
}

impl From<&PlacedLink> for LinkRow {
    fn from((link, position): &PlacedLink) -> Self {
        Self {
            entry: link.entry,
            ord: position.ord,
            entry_hash: link.entry_hash.clone(),
            hash: link.hash.clone(),
        }
    }
}
