//! The tools of a service with their schemas.

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::{Tool as WireTool, ToolAnnotations};
use serde_json::{Value, json};

use super::api::Caller;
use super::schema::{Description, Field, Object, Place, either};
use super::tool::{Call, Effect, Paging, Tool};
use super::{hosted, local};
use crate::domain::permission::Permission;

/// Which service it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Hosted,
    Local,
}

/// A request that a tool may be, with the fields that it takes.
pub(super) struct KnownCall {
    pub call: &'static Call,
    pub fields: Vec<Field>,
}

impl KnownCall {
    /// The field that an argument is sent as.
    pub fn field(&self, argument: &str) -> Option<&Field> {
        self.fields
            .iter()
            .find(|field| self.call.argument(&field.name) == argument)
    }
}

/// A tool as clients see it.
pub(super) struct KnownTool {
    pub tool: &'static Tool,
    pub calls: Vec<KnownCall>,
    pub wire: WireTool,
}

/// The tools of a service.
pub(crate) struct Catalog {
    pub(super) service: Service,
    pub(super) tools: Vec<KnownTool>,
}

impl Catalog {
    /// The tools of the service whose API this describes.
    pub(crate) fn new(service: Service, document: &Value) -> Self {
        let tools = match service {
            Service::Hosted => hosted::TOOLS,
            Service::Local => local::TOOLS,
        };
        let description = Description(document);
        let tools = tools.iter().map(|tool| KnownTool::new(tool, description));
        Self {
            service,
            tools: tools.collect(),
        }
    }

    /// The tools that a caller may use, always in the same order.
    pub(super) fn of(&self, caller: &Caller) -> Vec<WireTool> {
        let allowed = self
            .tools
            .iter()
            .filter(|known| known.is_allowed(&caller.permissions));
        allowed.map(|known| known.wire.clone()).collect()
    }

    /// A tool by its name, or by the one that it has in the tool that the local service replaces.
    pub(super) fn tool(&self, name: &str) -> Option<&KnownTool> {
        let replaced = || {
            local::PREFIXES
                .iter()
                .find_map(|prefix| name.strip_prefix(prefix))
        };
        let name = match self.service {
            Service::Hosted => name,
            Service::Local => replaced().unwrap_or(name),
        };
        self.tools.iter().find(|known| known.tool.name == name)
    }
}

impl KnownTool {
    fn new(tool: &'static Tool, description: Description<'_>) -> Self {
        let calls: Vec<KnownCall> = tool.calls.iter().map(|call| known(call, description)).collect();
        let mut wire = WireTool::new(tool.name, tool.about, Arc::new(input(tool, &calls, description)));
        wire.title = Some(tool.title.to_owned());
        wire.output_schema = Some(Arc::new(output(&calls, description)));
        wire.annotations = Some(annotations(tool));
        Self { tool, calls, wire }
    }

    fn is_allowed(&self, permissions: &[Permission]) -> bool {
        self.tool.needs.is_none_or(|needed| permissions.contains(&needed))
    }
}

#[cfg(test)]
impl Catalog {
    /// Asserts that all that the tools name is in the description of the API.
    pub(crate) fn check(&self, document: &Value) {
        for KnownTool { tool, calls, wire } in &self.tools {
            let Value::Object(properties) = &wire.input_schema["properties"] else {
                panic!("{}: no arguments", tool.name);
            };
            for known in calls {
                let (call, case) = (known.call, format!("{} {}", tool.name, known.call.route));
                assert!(
                    document["paths"][call.route][call.verb.key()].is_object(),
                    "{case}"
                );
                let fields = Description(document).fields(call.verb, call.route);
                let has = |name: &str| fields.iter().any(|field| field.name == name);
                let named = call.names.iter().map(|(_, field)| field);
                let named = named
                    .chain(call.defaults.iter().map(|(field, _)| field))
                    .chain(call.fixed.iter().map(|(field, _)| field))
                    .chain(call.hidden);
                named
                    .chain(&call.entity)
                    .for_each(|name| assert!(has(name), "{case}: {name}"));
                call.fixed
                    .iter()
                    .for_each(|(_, value)| drop(serde_json::from_str::<Value>(value).unwrap()));
                let rows = call.paging.rows();
                let answer = Description(document).answer(call.verb, call.route);
                let (answer, _) = Description(document).object(&answer);
                assert!(
                    rows.is_none_or(|rows| answer[rows]["type"] == "array"),
                    "{case}: {rows:?}"
                );
                let given: &[&str] = match &call.when {
                    super::tool::When::Always => &[],
                    super::tool::When::Given(names) => names,
                    super::tool::When::Is(name, _) => &[*name],
                };
                given
                    .iter()
                    .for_each(|name| assert!(properties.contains_key(*name), "{case}: {name}"));
            }
            for schema in [&wire.input_schema, wire.output_schema.as_ref().unwrap()] {
                jsonschema::meta::validate(&Value::Object(schema.as_ref().clone())).unwrap();
                let text = Value::Object(schema.as_ref().clone()).to_string();
                assert!(!text.contains("#/components/"), "{}", tool.name);
            }
        }
        let whole: usize = self
            .tools
            .iter()
            .map(|known| json!(known.wire).to_string().len())
            .sum();
        assert!(
            whole < 2 * super::budget::MOST,
            "{whole} characters in the list of tools"
        );
    }
}

/// A call with the fields that are arguments of it.
fn known(call: &'static Call, description: Description<'_>) -> KnownCall {
    let mut fields = description.fields(call.verb, call.route);
    fields.retain(|field| {
        let name = field.name.as_str();
        let is_place = matches!(call.paging, Paging::Offset(_)) && name == "offset"
            || matches!(call.paging, Paging::Next { field, .. } if field == "after" && name == "after");
        !is_place && !call.hidden.contains(&name) && call.fixed.iter().all(|(fixed, _)| *fixed != name)
    });
    for field in &mut fields {
        let default = call.defaults.iter().find(|(name, _)| *name == field.name);
        if let (Some((_, value)), Some(schema)) = (default, field.schema.as_object_mut()) {
            schema.insert("default".into(), serde_json::from_str(value).unwrap_or_default());
        }
    }
    KnownCall { call, fields }
}

/// Schema of the arguments.
fn input(tool: &Tool, calls: &[KnownCall], description: Description<'_>) -> Object {
    let of_call = |known: &KnownCall| {
        let argument = |field: &Field| known.call.argument(&field.name).to_owned();
        let properties = known
            .fields
            .iter()
            .map(|field| (argument(field), field.schema.clone()));
        let required = known
            .fields
            .iter()
            .filter(|field| field.required || field.place == Place::Path);
        let mut required: BTreeSet<String> = required.map(argument).collect();
        if known.call.entity.is_some() {
            required.extend(["type", "value"].map(str::to_owned));
        }
        (properties.collect::<Object>(), required)
    };
    let (mut properties, required) = calls.iter().map(of_call).reduce(either).unwrap_or_default();
    for (name, schema) in tool.own {
        let schema = serde_json::from_str(schema).unwrap_or_default();
        properties.insert((*name).to_owned(), schema);
    }
    if calls.iter().any(|known| known.call.paging.rows().is_some()) {
        let cursor = json!({"type": "string", "maxLength": 200,
            "description": "The `cursor` of an earlier answer to the same arguments, to go on where it ended."});
        properties.insert("cursor".into(), cursor);
    }
    let mut schema = Object::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema.insert("additionalProperties".into(), json!(false));
    description.complete(schema, false)
}

/// Schema of the structured answer.
fn output(calls: &[KnownCall], description: Description<'_>) -> Object {
    let of_call = |known: &KnownCall| {
        let answer = description.answer(known.call.verb, known.call.route);
        match known.call.under {
            None => description.object(&answer),
            Some(name) => {
                let properties = [(name.to_owned(), answer)].into_iter().collect();
                (properties, BTreeSet::from([name.to_owned()]))
            }
        }
    };
    let (mut properties, required) = calls.iter().map(of_call).reduce(either).unwrap_or_default();
    for (name, schema) in [
        (NOTICE, json!({"type": "string"})),
        (TRUNCATED, json!({"type": "boolean"})),
        (CURSOR, json!({"type": "string"})),
    ] {
        properties.insert(name.to_owned(), schema);
    }
    let mut schema = Object::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    description.complete(schema, true)
}

/// The fields of an answer that are not those of the API: that its texts are data, that it is not whole, and where it goes
/// on.
/// Comes before the others, whose texts it is about.
pub(super) const NOTICE: &str = "_notice";
pub(super) const TRUNCATED: &str = "truncated";
pub(super) const CURSOR: &str = "cursor";

fn annotations(tool: &Tool) -> ToolAnnotations {
    let (reads, idempotent) = match tool.effect {
        Effect::Reads => (true, true),
        Effect::Adds => (false, false),
        Effect::Decides => (false, true),
    };
    ToolAnnotations::with_title(tool.title)
        .read_only(reads)
        .destructive(false)
        .idempotent(idempotent)
        .open_world(false)
}
