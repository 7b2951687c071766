//! A staged object, and its id.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::node::wire_enum;
use crate::domain::staging::DuplicateCandidate;
use crate::domain::tlp::Tlp;

wire_enum! {
    /// Review status of an item. A commit makes `accepted` items `committed`, which is final.
    ItemStatus, "pending, accepted, rejected, committed" {
        Pending = "pending",
        Accepted = "accepted",
        Rejected = "rejected",
        Committed = "committed",
    }
}

wire_enum! {
    /// What committing an item would do.
    Change, "new, update" {
        New = "new",
        Update = "update",
    }
}

/// Id of an item: a UUIDv8 (RFC 9562 section 5.8) of a hash of its batch and its position there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ToSchema)]
pub struct ItemId(Uuid);

/// Bytes of an id that hold the position.
const POSITION: usize = 6;
/// Largest position that an id can hold.
const MAX_POSITION: u64 = (1 << (8 * POSITION)) - 1;

impl ItemId {
    /// The id of the item at this position of the batch.
    pub fn of(batch: Uuid, position: u64) -> Self {
        let mut bytes = [0; 16];
        for (byte, of_batch) in bytes.iter_mut().zip(Sha256::digest(batch.as_bytes())) {
            *byte = of_batch;
        }
        let position = position.min(MAX_POSITION).to_be_bytes();
        for (byte, of_position) in bytes.iter_mut().rev().zip(position.iter().rev().take(POSITION)) {
            *byte = *of_position;
        }
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// The item's position, if it belongs to the batch.
    pub fn position_in(self, batch: Uuid) -> Option<u64> {
        let tail = self.0.as_u128() & u128::from(MAX_POSITION);
        let position = u64::try_from(tail).ok()?;
        (Self::of(batch, position) == self).then_some(position)
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ItemId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| "must be a UUID")
    }
}

impl Serialize for ItemId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for ItemId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Uuid::deserialize(deserializer).map(Self)
    }
}

/// A staged object as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FeedItem {
    pub id: ItemId,
    pub batch_id: Uuid,
    #[schema(example = "malware--c3f1c3f8-5a0d-4f4b-8c1a-2f5b6a7d8e9f")]
    pub stix_id: String,
    #[schema(example = "malware")]
    pub stix_type: String,
    #[schema(example = "Industroyer")]
    pub name: String,
    pub modified: DateTime<Utc>,
    pub change: Change,
    pub status: ItemStatus,
    /// The object's own marking, or else the feed's default.
    pub proposed_tlp: Tlp,
    /// The reviewer's marking.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub resolved_tlp: Option<Tlp>,
    /// Ends of a relationship.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        nullable = false,
        example = "intrusion-set--1b2c3d4e-5f60-4718-92a3-b4c5d6e7f809"
    )]
    pub source_ref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "malware--c3f1c3f8-5a0d-4f4b-8c1a-2f5b6a7d8e9f")]
    pub target_ref: Option<String>,
    pub duplicate_candidates: Vec<DuplicateCandidate>,
    #[schema(example = json!([]))]
    pub warnings: Vec<String>,
    /// The object, where a single item is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = json!({"type": "malware", "name": "Industroyer"}))]
    pub object: Option<serde_json::Map<String, serde_json::Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_gives_its_position_in_its_own_batch_only() {
        let (batch, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        for position in [0, 1, 255, 256, 99_999, MAX_POSITION] {
            let id = ItemId::of(batch, position);
            assert_eq!(id.position_in(batch), Some(position));
            assert_eq!(id.position_in(other), None);
            assert_eq!(id.to_string().parse::<ItemId>().unwrap(), id);
            assert_eq!(id.0.get_version_num(), 8);
        }
        assert_ne!(ItemId::of(batch, 7), ItemId::of(other, 7));
        assert_eq!("7".parse::<ItemId>(), Err("must be a UUID"));
    }
}
