//! Erasures: what was asked for, how far it is, and how much was removed where.
//!
//! Rule: an erasure is remembered by ids, counts and a digest of the ids. Ids are made with a secret of the installation
//! (`ids.rs`), so none of that tells what the erased things said.

use std::collections::HashSet;

use aho_corasick::AhoCorasick;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use super::node::wire_enum;

wire_enum! {
    /// What an erasure was asked for by.
    ErasureKind, "node_ids, evidence_ids, source, feed_id, user_id, workspace_id" {
        Nodes = "node_ids",
        Evidence = "evidence_ids",
        Source = "source",
        Feed = "feed_id",
        User = "user_id",
        Workspace = "workspace_id",
    }
}

wire_enum! {
    /// How far an erasure is: `done` once no row, index or file holds anything of it.
    ErasureStatus, "running, done" {
        Running = "running",
        Done = "done",
    }
}

/// How much an erasure has removed so far, of what its administrator may see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemovedCounts {
    /// Nodes, with their entries of the search index and their vectors.
    #[schema(example = 1)]
    pub nodes: u64,
    /// Relationships from or to them, and those that erased evidence alone states.
    #[schema(example = 3)]
    pub relationships: u64,
    /// Passages about them.
    #[schema(example = 2)]
    pub passages: u64,
    /// Evidence records that nothing else lists.
    #[schema(example = 1)]
    pub evidence: u64,
    /// Supporting STIX objects with the same ids.
    #[schema(example = 0)]
    pub supporting_objects: u64,
    /// Relationships that waited for their other end.
    #[schema(example = 0)]
    pub waiting_relationships: u64,
    /// Staging batches with their texts and entities.
    #[schema(example = 1)]
    pub staging_batches: u64,
    /// Items of threat-feed batches.
    #[schema(example = 0)]
    pub feed_items: u64,
    /// Merges with other nodes.
    #[schema(example = 0)]
    pub merges: u64,
    /// Recall sessions that lost ids, or that are gone because their question named what is erased.
    #[schema(example = 4)]
    pub sessions: u64,
    /// Changes in the list of changes.
    #[schema(example = 5)]
    pub changes: u64,
    /// Entries of the audit log that lost a text.
    #[serde(default)]
    #[schema(example = 2)]
    pub audit_texts: u64,
    /// Threat feeds, with what they remember.
    #[serde(default)]
    #[schema(example = 0)]
    pub feeds: u64,
    /// Batches of threat feeds, of a workspace that is erased.
    #[serde(default)]
    #[schema(example = 0)]
    pub feed_batches: u64,
    /// Users.
    #[serde(default)]
    #[schema(example = 0)]
    pub users: u64,
    /// API keys.
    #[serde(default)]
    #[schema(example = 0)]
    pub api_keys: u64,
}

impl RemovedCounts {
    /// Adds what a further part has removed.
    pub fn add(&mut self, more: &Self) {
        self.nodes += more.nodes;
        self.relationships += more.relationships;
        self.passages += more.passages;
        self.evidence += more.evidence;
        self.supporting_objects += more.supporting_objects;
        self.waiting_relationships += more.waiting_relationships;
        self.staging_batches += more.staging_batches;
        self.feed_items += more.feed_items;
        self.merges += more.merges;
        self.sessions += more.sessions;
        self.changes += more.changes;
        self.audit_texts += more.audit_texts;
        self.feeds += more.feeds;
        self.feed_batches += more.feed_batches;
        self.users += more.users;
        self.api_keys += more.api_keys;
    }
}

/// An erasure, as its receipt shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Erasure {
    pub id: Uuid,
    pub what: ErasureKind,
    pub status: ErasureStatus,
    /// Number of nodes, evidence records and relationships that were asked for, or found; the feed, the user or the workspace
    /// counts as one.
    #[schema(example = 1)]
    pub asked: u64,
    /// SHA-256 of their ids, sorted, one a line; the audit log has the same.
    #[schema(example = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
    pub digest: String,
    /// The administrator.
    pub requested_by: Uuid,
    pub requested_at: DateTime<Utc>,
    /// When nothing was left in any file; null until then.
    #[schema(required)]
    pub finished_at: Option<DateTime<Utc>>,
    pub removed: RemovedCounts,
}

/// SHA-256 of ids, in order and one a line.
pub fn digest_of(ids: impl IntoIterator<Item = Uuid>) -> String {
    let mut ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    ids.sort_unstable();
    format!("sha256:{}", hex::encode(Sha256::digest(ids.join("\n"))))
}

/// Names of at least this many characters are looked for inside a text; shorter ones are words of every language, and only
/// a text that is nothing else is taken to mean them.
const MIN_INSIDE: usize = 4;

/// The names of what is erased, to be found in questions.
#[derive(Debug)]
pub struct ErasedNames {
    whole: HashSet<String>,
    inside: Option<AhoCorasick>,
}

impl ErasedNames {
    /// Names, without regard to case. `None` if there are none.
    pub fn of(names: impl IntoIterator<Item = String>) -> Option<Self> {
        let names = names.into_iter().map(|name| name.trim().to_lowercase());
        let whole: HashSet<String> = names.filter(|name| !name.is_empty()).collect();
        if whole.is_empty() {
            return None;
        }
        let long = whole.iter().filter(|name| name.chars().count() >= MIN_INSIDE);
        // An automaton fails to build beyond 2^31 bytes of patterns only.
        let inside = AhoCorasick::new(long).ok();
        Some(Self { whole, inside })
    }

    /// Whether a text names one of them: as whole words, or as all that it says.
    pub fn are_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        if self.whole.contains(text.trim()) {
            return true;
        }
        let is_word = |side: Option<char>| side.is_some_and(char::is_alphanumeric);
        self.inside.as_ref().is_some_and(|inside| {
            inside.find_overlapping_iter(&text).any(|found| {
                let before = text
                    .get(..found.start())
                    .and_then(|left| left.chars().next_back());
                let after = text.get(found.end()..).and_then(|rest| rest.chars().next());
                !is_word(before) && !is_word(after)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_words_and_a_short_one_only_alone() {
        let names = ["Cozy Bear", "Go", "192.0.2.7", "Жук-олень", " "];
        let names = ErasedNames::of(names.map(str::to_owned)).unwrap();
        for (text, expected) in [
            ("what does COZY BEAR use?", true),
            ("cozy bears", false),
            ("cozy bear", true),
            ("xcozy bear cozy bear", true),
            ("go", true),
            (" GO ", true),
            ("where does it go to", false),
            ("seen from 192.0.2.7:443", true),
            ("seen from 192.0.2.77", false),
            ("что знает ЖУК-ОЛЕНЬ?", true),
            ("жук-оленьи", false),
            ("", false),
        ] {
            assert_eq!(names.are_in(text), expected, "{text}");
        }
        assert!(ErasedNames::of(Vec::new()).is_none());
    }
}
