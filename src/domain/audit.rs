//! Audit entries and the hash chain that makes tampering evident.
//!
//! Each entry has a digest over its own fields. Each link of a workspace's chain has a digest over its sequence
//! number, its entry's digest and the previous link's hash (as in RFC 9162 log entries, without the tree).
//! Changing, removing or reordering an entry breaks every later link.
//!
//! Rule: an entry holds no text that may have to be erased one day (a question, a name, an address). Such a text lies beside
//! the log with a random salt, and the entry has the digest of both: while the text is there, the digest proves it; once it
//! is erased, nobody can find it again by trying.

use std::collections::BTreeMap;
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
    /// The texts that lie beside the log, by name.
    #[serde(skip)]
    #[schema(ignore)]
    pub texts: BTreeMap<String, AuditText>,
}

/// A text beside the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditText {
    salt: Uuid,
    text: String,
    /// Whether it is the JSON of what has several texts.
    #[serde(default)]
    is_json: bool,
}

/// The name of the text that is an entry's `user_email`.
const USER_EMAIL: &str = "user_email";

impl AuditText {
    fn new(text: String, is_json: bool) -> Self {
        Self {
            salt: Uuid::new_v4(),
            text,
            is_json,
        }
    }

    /// The text itself; of what has several, its JSON.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn into_value(self) -> Value {
        match self.is_json {
            true => serde_json::from_str(&self.text).unwrap_or(Value::String(self.text)),
            false => Value::String(self.text),
        }
    }

    fn digest(&self) -> String {
        salted_digest(self.salt, &self.text)
    }
}

/// The field of an entry's metadata that has the digest of one of its texts.
fn digest_field(name: &str) -> String {
    format!("{name}_digest")
}

impl AuditEntry {
    /// An entry for an action of `by`.
    pub fn by(by: &Principal, action: &str, resource: &str, outcome: Outcome, now: DateTime<Utc>) -> Self {
        let mut entry = Self::anonymous(by.workspace.id, by.ip, action, resource, outcome, now);
        entry.user_id = Some(by.user_id());
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
            texts: BTreeMap::new(),
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

    /// Adds a text that lies beside the log, and its digest to the metadata.
    #[must_use]
    pub fn with_text(self, name: &str, text: &str) -> Self {
        self.with_audit_text(name, AuditText::new(text.to_owned(), false))
    }

    /// [`Self::with_text`] for what has several texts.
    #[must_use]
    pub fn with_texts(self, name: &str, texts: &Value) -> Self {
        self.with_audit_text(name, AuditText::new(texts.to_string(), true))
    }

    fn with_audit_text(mut self, name: &str, text: AuditText) -> Self {
        self.metadata.insert(digest_field(name), text.digest().into());
        self.texts.insert(name.to_owned(), text);
        self
    }

    /// [`Self::with_text`] if there is one.
    #[must_use]
    pub fn with_some_text(self, name: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.with_text(name, text),
            None => self,
        }
    }

    /// Names somebody who has no account here by the address given at sign-in.
    #[must_use]
    pub fn of_address(self, email: &str) -> Self {
        self.with_text(USER_EMAIL, email)
    }

    /// The entry as people read it: with its texts instead of their digests, and the address of the account that acted, as far
    /// as they are still there.
    #[must_use]
    pub fn readable(mut self, email: Option<&str>) -> Self {
        if let Some(email) = email {
            self.user_email.get_or_insert_with(|| email.to_owned());
        }
        for (name, text) in std::mem::take(&mut self.texts) {
            self.metadata.remove(&digest_field(&name));
            if name == USER_EMAIL {
                self.user_email = Some(text.text);
            } else {
                self.metadata.insert(name, text.into_value());
            }
        }
        self
    }

    /// The first of its texts that is not what the entry was made with.
    fn altered_text(&self) -> Option<&str> {
        let is_altered = |(name, text): &(&String, &AuditText)| {
            self.metadata.get(&digest_field(name)).and_then(Value::as_str) != Some(text.digest().as_str())
        };
        let found = self.texts.iter().find(is_altered);
        found.map(|(name, _)| name.as_str())
    }

    /// SHA-256 over the canonical JSON of the entry (keys sorted, RFC 8785 for these types).
    pub fn digest(&self) -> String {
        // Serializing a struct of plain fields cannot fail.
        let value = serde_json::to_value(self).unwrap_or(Value::Null);
        hex::encode(Sha256::digest(value.to_string()))
    }
}

/// What the log says of a text that is kept elsewhere: the SHA-256 digest of a random salt, which is kept with it, and of it.
pub fn salted_digest(salt: Uuid, text: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(salt.as_bytes());
    hasher.update(text.as_bytes());
    format!("sha256:{}", hex::encode(hasher.finalize()))
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
            Some(entry) => entry.altered_text().map(|name| {
                format!(
                    "the text {name} of entry {} of link {} was changed",
                    link.entry, link.seq
                )
            }),
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

        let mut with_text = good.clone();
        with_text[1] = with_text[1].clone().with_text("query", "Fancy Bear");
        let of_text = chain(&with_text);
        assert!(check(&of_text, &with_text).valid);
        let mut erased = with_text.clone();
        erased[1].texts.clear();
        assert!(check(&of_text, &erased).valid);
        let mut altered = with_text.clone();
        altered[1].texts = altered[1].clone().with_text("query", "Cozy Bear").texts;
        assert_eq!(
            check(&of_text, &altered).first_error,
            Some(format!(
                "the text query of entry {} of link 2 was changed",
                good[1].id
            ))
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
