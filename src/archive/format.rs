//! What the entries of an archive hold.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Shows that a file is an archive.
pub(super) const KIND: &str = "threat-memory archive";
/// The format that this program writes; it reads all up to it.
pub(super) const FORMAT: u32 = 1;

pub(super) const HEADER: &str = "archive.json";
pub(super) const ROWS: &str = "rows/";
pub(super) const SECRETS: &str = "secrets.json";
pub(super) const STATE: &str = "state.jsonl";
pub(super) const MANIFEST: &str = "manifest.json";
/// An entry that holds nothing: it shows that the writer is still reading.
pub(super) const PAUSE: &str = "pause";

/// Which service a store belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceKind {
    Hosted,
    Local,
}

impl ServiceKind {
    /// Name of the database in the store.
    pub fn database(self) -> &'static str {
        match self {
            Self::Hosted => "hosted",
            Self::Local => "local",
        }
    }
}

/// What an archive is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    kind: String,
    pub(super) format: u32,
    pub id: Uuid,
    pub service: ServiceKind,
    /// Version of the schema of the rows.
    pub schema: i64,
    /// Version of the program that wrote it.
    pub program: String,
    pub made_at: DateTime<Utc>,
    /// The archives that hold the store together, the first one that is no increment, the last one this.
    pub archives: Vec<Uuid>,
}

impl Header {
    /// The header of an archive that goes on from these others.
    pub fn new(service: ServiceKind, schema: i64, made_at: DateTime<Utc>, before: &[Uuid]) -> Self {
        let id = Uuid::new_v4();
        Self {
            kind: KIND.into(),
            format: FORMAT,
            id,
            service,
            schema,
            program: env!("CARGO_PKG_VERSION").into(),
            made_at,
            archives: before.iter().copied().chain([id]).collect(),
        }
    }

    /// Whether it is of this kind of file at all.
    pub(super) fn is_of_kind(&self) -> bool {
        self.kind == KIND && self.archives.last() == Some(&self.id)
    }
}

/// The first 16 bytes of a SHA-256 digest (FIPS 180-4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 16]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_hash(Sha256::new_with_prefix(bytes))
    }

    pub(super) fn from_hash(hash: Sha256) -> Self {
        let whole = hash.finalize();
        let mut part = [0; 16];
        part.copy_from_slice(&whole[..16]);
        Self(part)
    }
}

impl FromStr for Digest {
    type Err = hex::FromHexError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(text, &mut bytes)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A chunk of a store, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkLine {
    pub table: String,
    pub digest: Digest,
    pub rows: u64,
    /// Its archive: the place in [`Header::archives`].
    pub archive: usize,
}

/// Counts and digests of a finished archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub id: Uuid,
    /// The tables of the store, whichever archive their rows are in.
    pub tables: BTreeMap<String, TableCounts>,
    /// The number of the last write of each workspace.
    pub workspaces: Vec<WorkspaceNumber>,
    /// Chunks in this archive.
    pub chunks: u64,
    /// Whether it holds passwords and API keys, encrypted.
    pub secrets: bool,
    /// Digest of `state.jsonl`.
    pub state: Digest,
}

/// What a table holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCounts {
    pub rows: u64,
    pub chunks: u64,
}

/// The number of the last write of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceNumber {
    pub id: Uuid,
    pub name: String,
    pub number: u64,
}

impl Manifest {
    /// Rows of the whole store.
    pub fn rows(&self) -> u64 {
        self.tables.values().map(|table| table.rows).sum()
    }
}
