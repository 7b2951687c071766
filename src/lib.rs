//! threat-memory: a memory for cyber threat intelligence.
//!
//! ```text
//!  HTTP workers ──► Guarded<…> ──► IdentityHandle ──► Identity ──┐
//!       │                └───────► RateLimiterHandle ► RateLimiter
//!       ├──► GraphHandle ──► GraphStore ──► store (SurrealDB) + search (derived index)
//!       │                        └──► AuditHandle ──► AuditWriter ──► audit tables
//!       └──► AuditHandle                 (every arrow is a message; no cycle)
//! ```
//!
//! - [`domain`]: pure rules. No actors, no database, no clock.
//! - [`store`]: SurrealQL behind small functions; the source of truth.
//! - [`search`]: the derived search index: keywords, vectors, fusion.
//! - [`actors`]: one owner per piece of state, reached through typed handles with concurrency limits.
//! - [`outbound`]: the guarded client of all outgoing HTTP requests.
//! - [`llm`]: extraction and answers by a language model, over any OpenAI-compatible endpoint.
//! - [`local`]: the local memory without HTTP, usable as a library: its actors behind [`MemoryManager`].
//! - [`archive`]: the file of a back-up, without a database.
//! - [`mail`]: sends e-mail over SMTP.
//! - [`taxii`]: reads the objects of a TAXII 2.1 collection, page by page.
//! - [`http`]: the APIs; thin handlers. Beside it `mcp`, the same for agents (Model Context Protocol).
//! - [`auth`]: passwords, tokens, API keys.
//! - [`config`]: settings and their validation.
//! - [`capacity`]: concurrency limits, and how they are shared among workspaces.
//! - [`app`]: the two services: actors, listeners, graceful shutdown. [`lifecycle`]: start and stop code they share.
//! - [`demo`]: the main workflow in one command.
//! - [`blocking`]: blocking tasks with a watchdog.
//! - [`telemetry`]: logs and metrics. [`files`]: private files. [`clock`]: the only reader of the wall clock.

pub mod actors;
pub mod app;
pub mod archive;
pub mod auth;
pub mod blocking;
pub mod capacity;
pub mod clock;
pub mod config;
pub mod demo;
pub mod domain;
pub mod embedding;
pub mod files;
pub mod http;
pub mod lifecycle;
pub mod llm;
pub mod local;
pub mod mail;
mod mcp;
pub mod outbound;
pub mod search;
pub mod store;
pub mod taxii;
pub mod telemetry;
pub mod warninglists;

pub use domain::memory::synthesis::SynthesisFormat;
pub use local::{
    ChangeKind, ChangePage, ChangesSince, MemoryChange, MemoryError, MemoryManager, NewNote, NoteCorrection,
    NoteDeletion, NoteStatus, NotesFound, RecallOptions, RememberOutcome, Scope,
};
