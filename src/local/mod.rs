//! The local memory without HTTP: its connected actors behind [`MemoryManager`].
//!
//! Every front end of the memory (the HTTP API, the library) uses `MemoryManager` only; actor handles do not leave this
//! module. Nothing here depends on HTTP.

mod address;
mod core;
mod handles;
mod host;
mod lease;
mod manager;
mod service;

pub(crate) use self::address::{PublishedAddress, address_of};
pub(crate) use self::core::{LocalCore, VALUE_LOG, storage_owner};
pub use self::manager::{MemoryError, MemoryManager, SynthesisResult};
pub use crate::actors::note_store::{
    ChangesSince, EntityFilter, EntityOrder, FoundNote, NoteCorrection, NoteDeletion, NotesFound,
    RecallOptions, Scope, ViewGraph,
};
pub(crate) use crate::actors::telemetry_tailer::{
    Event, LogPage, Peer, StreamKind, Subscription, TelemetryEntry, TelemetryMetrics,
};
pub use crate::domain::memory::change::{ChangeKind, ChangePlace, MemoryChange};
pub use crate::domain::memory::note::{NewNote, NoteStatus, RememberOutcome};
pub use crate::store::{ChangePage, NoteVersion, StoredVersion};
