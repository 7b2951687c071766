//! What the TAXII server gives out and takes in, as administrators define it.

pub mod addition;
pub mod asked;
pub mod collection;
pub mod filter;
pub mod hand_in;
pub mod request;
pub mod standing;
pub mod view;
