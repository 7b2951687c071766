//! Rules of the local service's memory: notes, the entities they mention, and what a question asks for.
//!
//! Pure: no actors, no database, no clock.

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
