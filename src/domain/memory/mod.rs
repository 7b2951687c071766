//! The rules of the local memory: source trust, near-duplicates and more. Pure.
//!
//! - [`tier`]: trust in a note, by its source.
//! - [`injection`]: texts that read like instructions to a language model.
//! - [`digest`](mod@digest): identity of exact duplicates. [`similarity`]: near-duplicates.
//! - [`change`]: what the history tells.
//! - [`correction`]: texts that correct others.
//! - [`synthesis`]: the formats of an answer made from notes.
//! - [`note`], [`entity`], [`view`]: notes, the entities they mention, and the graph as the API shows it.
//! - [`why`]: what a recall tells about its results and the question.
//!
//! Invariants: the same input gives the same result, in time linear in the text, and no input causes a panic. Nothing
//! here does I/O or reads the clock.

pub mod change;
pub mod correction;
pub mod digest;
pub mod entity;
pub mod injection;
pub mod note;
pub mod similarity;
pub mod synthesis;
pub mod tier;
pub mod view;
pub mod why;
