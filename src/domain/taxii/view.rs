//! A collection as one caller sees it.

use uuid::Uuid;

use super::collection::Collection;
use super::filter::CollectionFilter;
use crate::domain::permission::Permission;
use crate::domain::principal::{KNOWLEDGE_GRAPH, Principal};
use crate::domain::tlp::Tlp;

/// A collection as one caller sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectionView {
    pub id: Uuid,
    /// May stand in URLs in place of the id.
    pub alias: Option<String>,
    pub title: String,
    pub description: Option<String>,
    /// Whether this caller may read its objects.
    pub can_read: bool,
    /// Whether this caller may hand objects in.
    pub can_write: bool,
    pub contents: Contents,
}

/// What of the workspace is in a collection, as far as its reader may see it.
#[derive(Debug, Clone, PartialEq)]
pub enum Contents {
    /// All objects.
    All,
    /// Those with exactly this marking.
    Level(Tlp),
    /// What an administrator has chosen.
    Filtered(CollectionFilter),
}

impl CollectionView {
    /// A collection that an administrator defined; `None` for one that the caller may neither read nor write.
    pub fn of(collection: Collection, by: &Principal) -> Option<Self> {
        let key = by.api_key_id();
        let can_read = by.holds(Permission::RecallRead) && collection.readable_by.include(key);
        let may_ingest = by.holds(Permission::RecallWrite) && by.require_feature(KNOWLEDGE_GRAPH).is_ok();
        let can_write = may_ingest && collection.writable_by.include(key);
        (can_read || can_write).then_some(Self {
            id: collection.id,
            alias: collection.alias,
            title: collection.title,
            description: collection.description,
            can_read,
            can_write,
            contents: Contents::Filtered(collection.filter),
        })
    }

    /// Whether a URL that has this in the place of the collection means this one.
    pub fn is_named(&self, by: &str) -> bool {
        self.alias.as_deref() == Some(by) || by.parse() == Ok(self.id)
    }
}
