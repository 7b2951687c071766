//! The local memory below HTTP: its actors, wired, behind [`MemoryManager`].
//!
//! Every front of the memory (the HTTP API, the library) speaks to `MemoryManager` only; the ways to the actors do not
//! leave this folder. Nothing here knows of HTTP.

mod core;
mod handles;
mod host;
mod lease;
mod manager;
mod service;

pub(crate) use self::core::LocalCore;
pub use self::manager::{MemoryError, MemoryManager, Synthesized};
pub use crate::actors::graph_store::memory::{EntityFilter, FoundNote, NotesFound};
pub(crate) use crate::actors::telemetry_tailer::{Event, Followed, Peer, Subscription};
pub use crate::domain::memory::note::{NewNote, NoteStatus, Remembered};
