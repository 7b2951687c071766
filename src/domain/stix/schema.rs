//! Validation of STIX 2.1 objects and bundles: the last check before export.
//!
//! The schemas are our own and at least as strict as those of OASIS. Each object is validated against the schema of
//! its type, because a `oneOf` over all types gives useless errors. Rules beyond JSON Schema (references that
//! resolve, times in order, selectors that select) are in [`rules`]. Validation fails closed: a missing or unknown
//! type is a violation like any other.
//!
//! This module uses no clock and no network, and never changes its input. A [`Violation`] names the rule and the
//! position but not the value, so it can be logged and returned whatever the object's marking.

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
use serde_json::{Map, Value};

use embedded::{BASE_URI, BUNDLE, COMMON, CUSTOM, SCHEMAS};

/// Enough for a diagnosis; bounds the report on a hostile object.
const MAX_VIOLATIONS_PER_OBJECT: usize = 32;
const MAX_VIOLATIONS: usize = 256;

/// One broken rule and its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The object's `id`, or empty if it has none.
    pub object_id: String,
    /// JSON pointer within the object (within the bundle for rules about the bundle itself).
    pub path: String,
    /// The broken rule, without the offending value.
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

/// The embedded schemas do not compile: a build defect, never caused by data.
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

/// Allowed targets of references (`*_ref`, `*_refs`).
#[derive(Debug, Clone, Copy, Default)]
pub enum References<'a> {
    /// Only objects in the same bundle: exported bundles are self-contained.
    #[default]
    InBundle,
    /// Also these ids, which the receiver is known to have.
    InBundleOr(&'a HashSet<String>),
    /// Anything: for received bundles, which may refer to objects sent earlier.
    Anywhere,
}

/// The compiled schemas. Compiling takes tens of milliseconds, so the process shares one: [`StixValidator::shared`].
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
    /// The shared validator of this process, compiled on first use.
    pub fn shared() -> &'static StixValidator {
        static SHARED: LazyLock<StixValidator> = LazyLock::new(compile_embedded);
        &SHARED
    }

    /// Compiles the embedded schemas.
    ///
    /// # Errors
    /// If an embedded schema is not JSON, refers outside the set, or uses a regular expression that the linear
    /// engine does not support.
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

    /// The violations of a single object: its schema by `type`, then the per-object rules.
    pub fn object(&self, object: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        let type_name = object.get("type").and_then(Value::as_str);
        match type_name.and_then(|name| self.schema_of(name, object)) {
            Some(schema) => report::schema_violations(schema, object, MAX_VIOLATIONS_PER_OBJECT, &mut found),
            None => found.push(report::at(
                object,
                "/type",
                "`type` must name an object type of STIX 2.1, start with x-, or be defined by one of its `extensions`",
            )),
        }
        rules::object_rules(object, &mut found);
        found
    }

    /// Validates a bundle for export: it must be self-contained ([`References::InBundle`]).
    ///
    /// # Errors
    /// Every violation found, a few hundred at most.
    pub fn bundle(&self, bundle: &Value) -> Result<(), Vec<Violation>> {
        self.bundle_with(bundle, References::InBundle)
    }

    /// [`StixValidator::bundle`] with a different rule for references.
    ///
    /// # Errors
    /// Every violation found, a few hundred at most.
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

    fn schema_of(&self, type_name: &str, object: &Value) -> Option<&Validator> {
        let is_extended = || {
            object
                .get("extensions")
                .and_then(Value::as_object)
                .is_some_and(defines_type)
        };
        self.by_type.get(type_name).or_else(|| {
            let is_custom = type_name.starts_with("x-") || is_extended();
            is_custom.then_some(&self.custom)
        })
    }
}

/// Whether one of these extensions defines the type of its object (STIX 2.1 section 7.3).
fn defines_type(extensions: &Map<String, Value>) -> bool {
    let mut kinds = extensions
        .values()
        .filter_map(|extension| extension.get("extension_type"));
    kinds.any(|kind| kind == "new-sdo" || kind == "new-sro")
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
        // The linear engine: no crafted text can cause backtracking.
        .with_pattern_options(PatternOptions::regex())
        // Draft 2020-12 treats `format` as an annotation; export must reject an invalid `uri`.
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false)
        .offline()
        .build(schema)
        .map_err(|error| SchemaError::Compile {
            name,
            message: error.to_string(),
        })
}
