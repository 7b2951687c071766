//! The rules of the local memory, pure: what a question asks for, how far a source is trusted, when two notes say the
//! same.
//!
//! - [`intent`]: the kind of a question. [`tier`]: the trust in a note by where it came from.
//! - [`injection`]: texts that read like orders to a language model. [`pii`]: personal data.
//! - [`digest`](mod@digest): the identity of an exact duplicate. [`similarity`]: near-duplicates.
//! - [`synthesis`]: the shape of an answer made from notes.
//! - [`note`], [`entity`], [`view`]: notes, the entities they mention, and the graph as it is shown.
//!
//! Invariants: the same input gives the same result, in time linear in the text, without a panic whatever it holds.
//! Nothing here stores, asks or knows the time.

pub mod digest;
pub mod entity;
pub mod injection;
pub mod intent;
pub mod note;
pub mod pii;
pub mod similarity;
pub mod synthesis;
pub mod tier;
pub mod view;
