//! The schemas published by OASIS as a reference, read from the reference folder and never part of the binary.

use std::collections::HashMap;
use std::path::Path;

use jsonschema::{Registry, Validator};
use serde_json::Value;

use super::shared;

pub(super) struct Oasis {
    by_type: HashMap<String, Validator>,
    core: Validator,
}

impl Oasis {
    /// `None` if the reference folder does not exist.
    pub(super) fn load() -> Option<Oasis> {
        let root = shared("reference/oasis-stix-2.1-schemas")?;
        let mut documents = Vec::new();
        for folder in ["common", "observables", "sdos", "sros"] {
            documents.extend(read_folder(&root.join(folder)));
        }
        let resources = documents
            .iter()
            .map(|(_, schema)| (schema["$id"].as_str().unwrap().to_owned(), schema));
        let registry = Registry::new().extend(resources).unwrap().prepare().unwrap();
        let build = |schema: &Value| {
            let options = jsonschema::options()
                .with_registry(&registry)
                .should_validate_formats(true)
                .offline();
            options.build(schema).unwrap()
        };
        let core = documents
            .iter()
            .find(|(name, _)| name == "core")
            .map(|(_, schema)| build(schema))
            .unwrap();
        let typed = documents
            .iter()
            .filter(|(_, schema)| schema["properties"]["type"].is_object() || schema["allOf"].is_array());
        let by_type = typed
            .map(|(name, schema)| (name.clone(), build(schema)))
            .collect();
        Some(Oasis { by_type, core })
    }

    /// Whether the schema of its type accepts an object; custom types have only the common properties.
    pub(super) fn accepts(&self, object: &Value) -> bool {
        let schema = object["type"]
            .as_str()
            .and_then(|name| self.by_type.get(name))
            .unwrap_or(&self.core);
        schema.is_valid(object)
    }

    pub(super) fn why(&self, object: &Value) -> String {
        let schema = object["type"]
            .as_str()
            .and_then(|name| self.by_type.get(name))
            .unwrap_or(&self.core);
        schema
            .iter_errors(object)
            .map(|error| format!("{}: {error}\n", error.instance_path()))
            .collect()
    }
}

fn read_folder(folder: &Path) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        found.push((
            name,
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap(),
        ));
    }
    found
}
