//! The archive of a back-up: one file that holds a store at one moment, or what has changed since another archive.
//!
//! It is a tar file in a zstd frame with a checksum (RFC 8878), so `tar --zstd -xf` shows everything in it:
//!
//! | Entry | What |
//! |---|---|
//! | `archive.json` | [`Header`]: what it is, of which service, and which archives it needs |
//! | `rows/TABLE/NUMBER.jsonl` | a chunk of a table: a row a line, in the order of the table's keys |
//! | `secrets.json` | [`SealedSecrets`], if they were asked for |
//! | `state.jsonl` | [`ChunkLine`]s: every chunk of the store, in this archive or in one that it needs |
//! | `pause` | nothing: an increment that found nothing to write for ten seconds, so that nobody takes it for dead |
//! | `manifest.json` | [`Manifest`]: counts and digests. It is the last, so an archive without it was not finished |
//!
//! Tables are cut into chunks by their keys ([`cut`]), whatever stands around a row. So a chunk in which nothing changed has
//! the digest that it had before, and an increment leaves it out. No actors, no database.

pub mod cut;
mod error;
mod format;
mod inspect;
mod reader;
mod secrets;
mod writer;

#[cfg(test)]
mod tests;

pub use error::ArchiveError;
pub use format::{ChunkLine, Digest, Header, Manifest, ServiceKind, TableCounts, WorkspaceNumber};
pub use inspect::{SoundArchive, inspect, inspect_all};
pub use reader::{Chunk, ChunkFeed};
pub use secrets::{SealedSecrets, SecretRows};
pub use writer::{ArchiveWriter, Since};
