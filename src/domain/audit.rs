//! Audit entries and the hash chain that makes tampering evident.
//!
//! Each entry has a digest over its own fields. Each link of a workspace's chain has a digest over its sequence
//! number, its entry's digest and the previous link's hash (as in RFC 9162 log entries, without the tree).
//! Changing, removing or reordering an entry breaks every later link.

use std::net::IpAddr;

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use super::node::wire_enum;
use super::principal::Principal;

wire_enum! {
    /// How the audited action ended.
    Outcome, "success, failure, denied" {
        Success = "success",
        Failure = "failure",
        Denied = "denied",
    }
}

/// One line of the audit log; the field names are the CSV columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    pub id: Uuid,
    /// The workspace.
    pub tenant_id: Uuid,
    #[schema(required)]
    pub user_id: Option<Uuid>,
    #[schema(required, example = "analyst@example.com")]
    pub user_email: Option<String>,
    #[schema(example = "recall.search")]
    pub action: String,
    #[schema(example = "recall_session")]
    pub resource: String,
    #[schema(required, example = "6f1c0a52-7d6e-4a8e-9c53-0b1f2d3e4a5b")]
    pub resource_id: Option<String>,
    pub outcome: Outcome,
    #[schema(required, example = "192.0.2.7")]
    pub ip_address: Option<String>,
    #[schema(example = json!({"query": "Fancy Bear", "results": 1}))]
    pub metadata: Map<String, Value>,
    pub created_at: DateTime<Utc>,
}

impl AuditEntry {
    /// An entry for an action of `by`.
    pub fn by(by: &Principal, action: &str, resource: &str, outcome: Outcome, now: DateTime<Utc>) -> Self {
        let mut entry = Self::anonymous(by.workspace.id, by.ip, action, resource, outcome, now);
        entry.user_id = Some(by.user_id());
        entry.user_email = Some(by.email().to_owned());
        if let Some(key) = by.api_key_id() {
            entry
                .metadata
                .insert("api_key_id".into(), Value::String(key.to_string()));
        }
        entry
    }

    /// An entry for an action without (valid) credentials.
    pub fn anonymous(
        tenant: Uuid,
        ip: IpAddr,
        action: &str,
        resource: &str,
        outcome: Outcome,
        now: DateTime<Utc>,
    ) -> Self {
        Self {
            id: Uuid::now_v7(),
            tenant_id: tenant,
            user_id: None,
            user_email: None,
            action: action.to_owned(),
            resource: resource.to_owned(),
            resource_id: None,
            outcome,
            ip_address: Some(ip.to_string()),
            metadata: Map::new(),
            // The chain hashes the time as text, so keep only the precision of that text.
            created_at: now.trunc_subsecs(6),
        }
    }

    /// Sets the id of the resource that was acted on.
    #[must_use]
    pub fn on(mut self, resource_id: impl ToString) -> Self {
        self.resource_id = Some(resource_id.to_string());
        self
    }

    /// Adds a fact to the metadata.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Adds several facts to the metadata.
    #[must_use]
    pub fn with_all(mut self, facts: impl Iterator<Item = (&'static str, Value)>) -> Self {
        self.metadata
            .extend(facts.map(|(key, value)| (key.to_owned(), value)));
        self
    }

    /// SHA-256 over the canonical JSON of the entry (keys sorted, RFC 8785 for these types).
    pub fn digest(&self) -> String {
        // Serializing a struct of plain fields cannot fail.
        let value = serde_json::to_value(self).unwrap_or(Value::Null);
        hex::encode(Sha256::digest(value.to_string()))
    }
}

/// What the log says of a text that may be erased one day: its digest.
pub fn text_digest(text: &str) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(text)))
}

/// One link of a workspace's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainLink {
    /// 1 for the first entry of the workspace.
    pub seq: u64,
    pub entry: Uuid,
    pub entry_hash: String,
    pub prev_hash: String,
    pub hash: String,
}

impl ChainLink {
    /// The previous hash of the first link.
    pub const GENESIS: &'static str = "0000000000000000000000000000000000000000000000000000000000000000";

    /// The link that appends an entry with this digest to `prev` (sequence number and hash).
    pub fn after(tenant: Uuid, prev: Option<(u64, &str)>, entry: Uuid, entry_hash: String) -> Self {
        let (seq, prev_hash) = prev.map_or((1, Self::GENESIS), |(seq, hash)| (seq + 1, hash));
        let mut hasher = Sha256::new();
        for part in [
            &tenant.to_string(),
            &seq.to_string(),
            &entry.to_string(),
            &entry_hash,
            prev_hash,
        ] {
            hasher.update(part.as_bytes());
            hasher.update([0]);
        }
        let hash = hex::encode(hasher.finalize());
        Self {
            seq,
            entry,
            entry_hash,
            prev_hash: prev_hash.to_owned(),
            hash,
        }
    }
}

/// Result of checking a workspace's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChainReport {
    pub valid: bool,
    pub entries: u64,
    /// Recent entries that are not linked yet.
    pub unchained: u64,
    /// Hash of the last link. Recording it elsewhere allows truncation to be detected later.
    #[schema(
        pattern = "^[0-9a-f]{64}$",
        example = "5c7c51f8b33ddcea9ee5f3f955f385da4a308a2eaebd55315a21f3d459fc7bf9"
    )]
    pub head: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "link 7 does not follow the one before it")]
    pub first_error: Option<String>,
}

/// Checks links one by one, so a log of any length takes constant memory.
#[derive(Debug)]
pub struct ChainCheck {
    tenant: Uuid,
    last: Option<(u64, String)>,
    first_error: Option<String>,
}

impl ChainCheck {
    /// A check that has not seen any link yet.
    pub fn new(tenant: Uuid) -> Self {
        Self {
            tenant,
            last: None,
            first_error: None,
        }
    }

    /// Checks the next link against its entry, which is `None` if the entry is missing.
    pub fn link(&mut self, link: &ChainLink, entry: Option<&AuditEntry>) {
        let prev = self.last.as_ref().map(|(seq, hash)| (*seq, hash.as_str()));
        let want = ChainLink::after(self.tenant, prev, link.entry, link.entry_hash.clone());
        let problem = match entry {
            _ if *link != want => Some(format!("link {} does not follow the one before it", link.seq)),
            None => Some(format!("entry {} of link {} is missing", link.entry, link.seq)),
            Some(entry) if entry.digest() != link.entry_hash => {
                Some(format!("entry {} of link {} was changed", link.entry, link.seq))
            }
            Some(_) => None,
        };
        self.fail(problem);
        self.last = Some((link.seq, link.hash.clone()));
    }

    /// Records a problem; only the first one is reported.
    pub fn fail(&mut self, problem: Option<String>) {
        if self.first_error.is_none() {
            self.first_error = problem;
        }
    }

    /// Finishes the check; `unchained` is the number of entries without a link.
    pub fn finish(self, unchained: u64) -> ChainReport {
        let (entries, head) = self.last.unwrap_or((0, ChainLink::GENESIS.to_owned()));
        ChainReport {
            valid: self.first_error.is_none(),
            entries,
            unchained,
            head,
            first_error: self.first_error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(entries: &[AuditEntry]) -> Vec<ChainLink> {
        let mut links: Vec<ChainLink> = Vec::new();
        for entry in entries {
            let prev = links.last().map(|link| (link.seq, link.hash.clone()));
            let prev = prev.as_ref().map(|(seq, hash)| (*seq, hash.as_str()));
            links.push(ChainLink::after(entry.tenant_id, prev, entry.id, entry.digest()));
        }
        links
    }

    fn entries(n: usize) -> Vec<AuditEntry> {
        let tenant = Uuid::new_v4();
        let ip = IpAddr::from([127, 0, 0, 1]);
        let now = DateTime::UNIX_EPOCH;
        (0..n)
            .map(|i| {
                AuditEntry::anonymous(tenant, ip, "recall.search", "node", Outcome::Success, now)
                    .with("n", i as u64)
            })
            .collect()
    }

    fn check(links: &[ChainLink], entries: &[AuditEntry]) -> ChainReport {
        let mut check = ChainCheck::new(entries[0].tenant_id);
        for link in links {
            check.link(link, entries.iter().find(|entry| entry.id == link.entry));
        }
        check.finish(0)
    }

    #[test]
    fn an_untouched_chain_is_valid_and_any_change_is_found() {
        let good = entries(5);
        let links = chain(&good);
        assert!(check(&links, &good).valid);

        let mut changed = good.clone();
        changed[2].outcome = Outcome::Denied;
        assert_eq!(
            check(&links, &changed).first_error,
            Some(format!("entry {} of link 3 was changed", good[2].id))
        );

        let mut removed = good.clone();
        removed.remove(1);
        assert!(!check(&links, &removed).valid);

        let mut cut = links.clone();
        cut.remove(1);
        assert!(!check(&cut, &good).valid);

        let mut swapped = links.clone();
        swapped.swap(3, 4);
        assert!(!check(&swapped, &good).valid);
    }
}
