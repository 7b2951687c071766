//! What the TAXII server gives out.

mod collections;
mod named;
mod page;
mod reader;
mod retract;

pub use self::collections::{ListCollections, ReadCollection};
pub use self::page::{AskedPage, ObjectPage, PageOf, ReadObjects};
pub use self::reader::GivenObject;
pub use self::retract::RetractObject;
