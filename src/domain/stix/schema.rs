//! Validation of STIX 2.1 objects and bundles: the last gate before anything leaves the service.
//!
//! The schemas are our own, at least as strict as those OASIS publishes, and each object is validated by the schema of
//! its type: a `oneOf` over all types says nothing useful when it fails. What JSON Schema cannot say (references that
//! resolve, times in order, selectors that select) is in [`rules`]. The gate fails closed: an object without a type,
//! or of a type nobody described, is a violation like any other.
//!
//! This module reads no clock and no network, and never changes what it validates. A [`Violation`] names the rule and
//! the place, not the value found there, so that it can be logged and returned whatever the marking of the object.

mod embedded;
mod references;
mod report;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::LazyLock;

use jsonschema::{PatternOptions, Registry, Validator};
use serde::Serialize;
use serde_json::Value;

use embedded::{BASE_URI, BUNDLE, COMMON, CUSTOM, SCHEMAS};

/// Enough to see what is wrong; a hostile object cannot make the report larger than itself.
const MAX_VIOLATIONS_PER_OBJECT: usize = 32;
const MAX_VIOLATIONS: usize = 256;

/// One broken rule: where, and which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The `id` of the object, or empty when it has none.
    pub object_id: String,
    /// JSON pointer inside the object (inside the bundle for rules about the bundle itself).
    pub path: String,
    /// What was broken, without the value that broke it.
    pub rule: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = if self.object_id.is_empty() {
            "(object without id)"
        } else {
            &self.object_id
        };
        let path = if self.path.is_empty() { "/" } else { &self.path };
        write!(f, "{id} at {path}: {}", self.rule)
    }
}

/// The embedded schemas do not compile: a fault of the build, never of the data.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("schema {name} is not JSON")]
    Json {
        name: &'static str,
        source: serde_json::Error,
    },
    #[error("schema {name} does not compile: {message}")]
    Compile { name: &'static str, message: String },
}

/// What a reference (`*_ref`, `*_refs`) may point at.
#[derive(Debug, Clone, Copy, Default)]
pub enum References<'a> {
    /// Only at objects of the same bundle: what the exporter sends is complete.
    #[default]
    InBundle,
    /// Also at these ids, which the receiver is known to have.
    InBundleOr(&'a HashSet<String>),
    /// Anywhere: for bundles of others, which may speak about objects sent earlier.
    Anywhere,
}

/// The compiled schemas. Compiling takes tens of milliseconds, so there is one per process: [`StixValidator::shared`].
pub struct StixValidator {
    by_type: HashMap<&'static str, Validator>,
    custom: Validator,
    bundle: Validator,
}

impl fmt::Debug for StixValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StixValidator")
            .field("types", &self.by_type.len())
            .finish_non_exhaustive()
    }
}

impl StixValidator {
    /// The validator of this process, compiled on first use.
    pub fn shared() -> &'static StixValidator {
        static SHARED: LazyLock<StixValidator> = LazyLock::new(compile_embedded);
        &SHARED
    }

    /// Compiles the embedded schemas.
    ///
    /// # Errors
    /// When an embedded schema is not JSON, refers to something outside the set or uses an expression that the linear
    /// regex engine does not have.
    pub fn compile() -> Result<StixValidator, SchemaError> {
        let documents = parse_all()?;
        let registry = registry(&documents)?;
        let build = |name: &'static str| match documents.get(name) {
            Some(schema) => compile_one(name, schema, &registry),
            None => Err(SchemaError::Compile {
                name,
                message: "not embedded".to_owned(),
            }),
        };
        let by_type = SCHEMAS
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| ![COMMON, CUSTOM, BUNDLE].contains(name))
            .map(|name| Ok((name, build(name)?)))
            .collect::<Result<_, SchemaError>>()?;
        Ok(StixValidator {
            by_type,
            custom: build(CUSTOM)?,
            bundle: build(BUNDLE)?,
        })
    }

    /// What is wrong with one object, taken alone: its schema by `type`, then the rules inside one object.
    pub fn object(&self, object: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        let type_name = object.get("type").and_then(Value::as_str);
        match type_name.and_then(|name| self.schema_of(name)) {
            Some(schema) => report::schema_violations(schema, object, MAX_VIOLATIONS_PER_OBJECT, &mut found),
            None => found.push(report::at(
                object,
                "/type",
                "`type` must name an object type of STIX 2.1, or start with x-",
            )),
        }
        rules::object_rules(object, &mut found);
        found
    }

    /// Whether a bundle may leave: complete in itself ([`References::InBundle`]).
    ///
    /// # Errors
    /// Every violation found, at most a few hundred.
    pub fn bundle(&self, bundle: &Value) -> Result<(), Vec<Violation>> {
        self.bundle_with(bundle, References::InBundle)
    }

    /// [`StixValidator::bundle`] with another rule for references.
    ///
    /// # Errors
    /// Every violation found, at most a few hundred.
    pub fn bundle_with(&self, bundle: &Value, references: References<'_>) -> Result<(), Vec<Violation>> {
        let mut found = Vec::new();
        report::schema_violations(&self.bundle, bundle, MAX_VIOLATIONS_PER_OBJECT, &mut found);
        let objects = bundle
            .get("objects")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        for object in objects {
            if found.len() >= MAX_VIOLATIONS {
                break;
            }
            found.extend(self.object(object));
        }
        if found.len() < MAX_VIOLATIONS {
            rules::bundle_rules(objects, references, &mut found);
        }
        found.truncate(MAX_VIOLATIONS);
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    fn schema_of(&self, type_name: &str) -> Option<&Validator> {
        self.by_type
            .get(type_name)
            .or_else(|| type_name.starts_with("x-").then_some(&self.custom))
    }
}

#[allow(clippy::expect_used)] // The schemas are part of the binary and a test compiles them: this cannot depend on data.
fn compile_embedded() -> StixValidator {
    StixValidator::compile().expect("the embedded STIX schemas compile")
}

fn parse_all() -> Result<HashMap<&'static str, Value>, SchemaError> {
    SCHEMAS
        .iter()
        .map(|(name, text)| match serde_json::from_str(text) {
            Ok(schema) => Ok((*name, schema)),
            Err(source) => Err(SchemaError::Json { name, source }),
        })
        .collect()
}

fn registry<'a>(documents: &'a HashMap<&'static str, Value>) -> Result<Registry<'a>, SchemaError> {
    let failed = |message: String| SchemaError::Compile {
        name: COMMON,
        message,
    };
    let resources = documents
        .iter()
        .map(|(name, schema)| (format!("{BASE_URI}{name}.json"), schema));
    Registry::new()
        .extend(resources)
        .and_then(jsonschema::RegistryBuilder::prepare)
        .map_err(|error| failed(error.to_string()))
}

fn compile_one(
    name: &'static str,
    schema: &Value,
    registry: &Registry<'_>,
) -> Result<Validator, SchemaError> {
    jsonschema::options()
        .with_registry(registry)
        // The linear engine: no text, however crafted, can make a pattern backtrack.
        .with_pattern_options(PatternOptions::regex())
        // Draft 2020-12 makes `format` an annotation; here a `uri` that is none must not leave.
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false)
        .offline()
        .build(schema)
        .map_err(|error| SchemaError::Compile {
            name,
            message: error.to_string(),
        })
}
