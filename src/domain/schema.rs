//! What the API description says about rules that the types of a body do not show.
//!
//! A pattern must mean the same to all readers. `\s` does not (ECMA-262 counts U+FEFF and not U+0085, Rust the other way
//! round), so white space is spelt out here as the code trims it: the Unicode property White_Space.

use serde_json::Value;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};

/// White space, as part of a character class.
macro_rules! white {
    () => {
        r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    };
}
pub(crate) use white;

/// Any text that the store can hold: one without NUL characters.
pub const PLAIN: Option<&str> = Some(r"^[^\x00]*$");
/// A text that is not blank and has no NUL character.
pub const NOT_BLANK: Option<&str> = Some(concat!(r"^[^\x00]*[^\x00", white!(), r"][^\x00]*$"));
/// A text that is not blank, also without its NUL characters.
pub const SOMETHING: Option<&str> = Some(concat!(r"[^\x00", white!(), "]"));
/// A text of one line.
pub const CONTROL_FREE: Option<&str> = Some(r"^[^\x00-\x1f\x7f-\x9f]*$");
/// A text of one line that is not blank.
pub const LINE: Option<&str> = Some(concat!(
    r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x1f\x7f-\x9f",
    white!(),
    r"][^\x00-\x1f\x7f-\x9f]*$"
));

/// Schema of a text.
pub fn text(
    description: &str,
    length: (usize, usize),
    pattern: Option<&str>,
    example: &str,
) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let text = text.description(Some(description)).pattern(pattern);
    let text = text.min_length(Some(length.0)).max_length(Some(length.1));
    text.examples([Value::from(example)]).into()
}

/// Schema of a text that is one of these names. The description has the form of doc comments, line by line.
pub fn names(description: &[&str], names: impl Iterator<Item = &'static str>) -> RefOr<Schema> {
    let lines: Vec<&str> = description.iter().map(|line| line.trim()).collect();
    let text = ObjectBuilder::new().schema_type(Type::String);
    let text = text.description(Some(lines.join("\n")));
    text.enum_values(Some(names)).into()
}

/// Schema of a field that may only be null, or be left out.
pub fn null() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Null)
}

/// Declares a type that only stands for the schema of a text, in bodies that hold it as a `String`.
macro_rules! text_schema {
    ($(#[doc = $doc:literal])+ $name:ident, $length:expr, $pattern:expr, $example:expr) => {
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub enum $name {}
        crate::domain::schema::schema_of!($name, concat!($($doc),+), $length, $pattern, $example);
    };
}
pub(crate) use text_schema;

/// Implements the schema of a type that is written as a text.
macro_rules! schema_of {
    ($name:ident, $description:expr, $length:expr, $pattern:expr, $example:expr) => {
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                crate::domain::schema::text($description.trim(), $length, $pattern, $example)
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}
pub(crate) use schema_of;

/// Schema of a body of the type with this name, of which at least one field must be there and not null. Which fields
/// count is beyond what generators of clients read.
pub fn one_of_them(of: &str) -> RefOr<Schema> {
    let some = ObjectBuilder::new().schema_type(Type::Object);
    let whole = AllOfBuilder::new().item(Ref::from_schema_name(of));
    whole.item(some.min_properties(Some(1))).into()
}

/// Declares a type that only stands for the schema of a body of which at least one field must be there.
macro_rules! at_least_one {
    ($(#[$meta:meta])* $name:ident, $of:ty) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub enum $name {}

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                crate::domain::schema::one_of_them(&<$of as utoipa::ToSchema>::name())
            }
        }

        impl utoipa::ToSchema for $name {
            fn schemas(
                schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>,
            ) {
                let name = <$of as utoipa::ToSchema>::name();
                schemas.push((name.into(), <$of as utoipa::PartialSchema>::schema()));
                <$of as utoipa::ToSchema>::schemas(schemas);
            }
        }
    };
}
pub(crate) use at_least_one;
