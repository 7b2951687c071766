//! The OpenAPI document of the local API, made from the handlers and the types that they exchange.
//!
//! Bounds of bodies and query strings are asked of the code that reads them, with the settings of the moment: a change
//! of `web.max_k` changes the document too.

use std::borrow::Cow;
use std::sync::LazyLock;

use actix_web::http::StatusCode;
use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Value, json};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi, ToSchema};

use super::backup::BackUpBody;
use super::changes::ChangesQuery;
use super::error::{BAD_BODY, ErrorBody, InvalidBody, KEY_REQUIRED, LocalError, RATE_LIMITED, SET_A_KEY};
use super::graph::{EdgesQuery, EntitiesQuery, MergeBody, NodeQuery, NodesQuery, UnmergeBody, ViewQuery};
use super::guard::FOREIGN_PAGE;
use super::lookup::LookupBody;
use super::memory::{CorrectionBody, IngestBody, RecallBody, RememberBody, SupersedeBody, SynthesizeBody};
use super::system::{HistoryQuery, LogsQuery};
use super::validate::{Fields, ReaderSchema};
use super::{
    API_VERSION, LocalState, backup, changes, config, graph, guard, guarded_resource, lookup, memory,
    streams, system,
};
use crate::config::local::LocalSettings;
use crate::domain::error::DomainError;
use crate::http::document::Document;
use crate::http::openapi::{Conventions, DISK_LOW, readable};
use crate::http::query::KnownParameters;
use crate::http::viewer::Viewer;

const API_KEY: &str = "api_key";
const BEARER: &str = "bearer";
const ABOUT: &str = "A memory of notes: it remembers texts, finds them again and keeps a graph of what they mention. \
    Wherever GET is answered, HEAD is too, except on the streams. Every path below /api/ is guarded, also one that does \
    not exist (404). Unknown fields of a body are ignored, and unknown query parameters refused (422). Numbers and booleans are also read from text.";

const CONVENTIONS: Conventions = Conventions {
    guarded: &[],
    with_body: &[400, 408, 413, 422, 507],
    with_query: &[422],
    with_id: &[404],
    always: &[401, 403, 405, 429, 500, 503],
    meaning,
    error,
};

/// The page that shows the document.
const VIEWER: Viewer = Viewer {
    prefix: "/api/docs",
    document: "/api/openapi.json",
    title: "threat-memory: local API",
};
/// The same page where people look for it. It holds no data and needs no key; the document does.
const PAGE: Viewer = Viewer {
    prefix: "/docs",
    ..VIEWER
};

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    PAGE.configure::<LocalError>(cfg);
    cfg.service(guarded_resource("/api/openapi.json").route(web::get().to(document)));
    cfg.service(VIEWER.scope::<LocalError>().wrap(from_fn(guard::admit)));
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Threat-Intelligence Memory: local service",
        description = ABOUT,
        contact(name = "The user of this memory"),
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    servers((url = "/", description = "This service")),
    paths(document, viewer, viewer_file),
    components(schemas(ErrorBody, InvalidBody)),
    tags(
        (name = "Memory", description = "Remember, recall, ingest, synthesize."),
        (name = "Graph", description = "Nodes, edges, entities, domains."),
        (name = "System", description = "State, counts, telemetry, log."),
        (name = "Streams", description = "Server-sent events."),
        (name = "Settings", description = "Settings."),
        (name = "Description", description = "This document."),
    ),
    security(("api_key" = []), ("bearer" = [])),
)]
struct Docs;

/// This document.
///
/// Its bounds are those that the settings allow at this moment.
#[utoipa::path(
    get, path = "/api/openapi.json", tag = "Description", operation_id = "read_openapi",
    params((
        "If-None-Match" = Option<String>, Header, nullable = false,
        description = "The ETag of the copy that the client has."
    )),
    responses(
        (status = 200, description = "The description of this API, OpenAPI 3.1.", body = Object,
            headers(("ETag" = String, description = "Changes with the document.")),
            example = json!({"openapi": "3.1.0"})),
        (status = 304, description = "The client's copy is current."),
    ),
)]
async fn document(request: HttpRequest, state: web::Data<LocalState>) -> Result<HttpResponse, LocalError> {
    let document = current(&state.settings(), state.key.is_some());
    let failed = || DomainError::internal("the document can't be made", "a schema is missing");
    let text = document.ok_or_else(failed)?.to_string();
    Ok(Document::new(text, "application/json").answer(&request))
}

/// A page that shows this document and sends requests.
#[utoipa::path(
    get, path = "/api/docs", tag = "Description", operation_id = "read_docs",
    params((
        "If-None-Match" = Option<String>, Header, nullable = false,
        description = "The ETag of the copy that the client has."
    )),
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html",
            headers(("ETag" = String, description = "Changes with the page.")), example = json!("<!doctype html>")),
        (status = 304, description = "The client's copy is current."),
    ),
)]
#[allow(dead_code, reason = "describes what `VIEWER` registers")]
fn viewer() {}

/// A file that the page loads.
#[utoipa::path(
    get, path = "/api/docs/{file}", tag = "Description", operation_id = "read_docs_file",
    params(
        ("file" = String, Path, description = "Name of the file.", example = "viewer.js"),
        ("If-None-Match" = Option<String>, Header, nullable = false,
            description = "The ETag of the copy that the client has."),
    ),
    responses(
        (status = 200, description = "The file.", headers(("ETag" = String, description = "Changes with the file.")),
            content(
                (String = "text/javascript", example = json!("// …")), (String = "text/css", example = json!("/* … */")),
                (String = "image/png", example = json!("\u{89}PNG")),
            )),
        (status = 304, description = "The client's copy is current."),
        (status = 404, description = "There is no such file.", body = ErrorBody, example = json!({"detail": "Not Found"})),
    ),
)]
#[allow(dead_code, reason = "describes what `VIEWER` registers")]
fn viewer_file() {}

/// The document without the bounds that settings can change.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut all = Docs::openapi();
    for part in [
        memory::Docs::openapi(),
        graph::Docs::openapi(),
        lookup::Docs::openapi(),
        changes::Docs::openapi(),
        backup::Docs::openapi(),
        system::Docs::openapi(),
        streams::Docs::openapi(),
        config::Docs::openapi(),
    ] {
        all.merge(part);
    }
    API_VERSION.clone_into(&mut all.info.version);
    let components = all.components.get_or_insert_default();
    let key = ApiKeyValue::with_description("X-API-Key", "The key of LOCAL_WEB_API_KEY.");
    components.add_security_scheme(API_KEY, SecurityScheme::ApiKey(ApiKey::Header(key)));
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    let bearer = bearer.description(Some("The key of LOCAL_WEB_API_KEY."));
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer.build()));
    CONVENTIONS.modify(&mut all);
    // Never fails: all keys are text.
    serde_json::to_value(all).unwrap_or_default()
});

/// The query parameters of each route, except of the one that always answers 501.
pub(super) static PARAMETERS: LazyLock<KnownParameters> =
    LazyLock::new(|| KnownParameters::of(&DOCUMENT, &["/api/sync"]));

/// The document with the settings of this moment; `None` if it lacks a schema of a body or a parameter. Without a key
/// neither scheme is needed.
pub(super) fn current(settings: &LocalSettings, with_key: bool) -> Option<Value> {
    let mut document = DOCUMENT.clone();
    for (schema, described) in bodies(settings) {
        apply_bounds(&mut document, schema, described)?;
    }
    for (path, described) in queries() {
        let operation = document.get_mut("paths")?.get_mut(path)?.get_mut("get")?;
        apply_parameter_bounds(operation, described)?;
    }
    if !with_key {
        document.get_mut("security")?.as_array_mut()?.insert(0, json!({}));
    }
    readable::name_inner_objects(&mut document, "SettingsChange");
    readable::simplify(&mut document);
    Some(document)
}

/// What the reader of each body takes.
fn bodies(settings: &LocalSettings) -> [(&'static str, ReaderSchema); 10] {
    [
        ("BackUpBody", Fields::describe(BackUpBody::read)),
        (
            "RecallBody",
            Fields::describe(|fields| RecallBody::read(fields, settings)),
        ),
        ("LookupBody", Fields::describe(LookupBody::read)),
        ("SupersedeBody", Fields::describe(SupersedeBody::read)),
        ("MergeBody", Fields::describe(MergeBody::read)),
        ("UnmergeBody", Fields::describe(UnmergeBody::read)),
        (
            "CorrectionBody",
            Fields::describe(|fields| CorrectionBody::read(fields, settings)),
        ),
        (
            "RememberBody",
            Fields::describe(|fields| RememberBody::read(fields, settings)),
        ),
        (
            "IngestBody",
            Fields::describe(|fields| IngestBody::read(fields, settings)),
        ),
        (
            "SynthesizeBody",
            Fields::describe(|fields| SynthesizeBody::read(fields, settings)),
        ),
    ]
}

/// What the reader of each query string takes.
fn queries() -> [(&'static str, ReaderSchema); 8] {
    [
        ("/api/graph/nodes", Fields::describe(NodesQuery::read)),
        ("/api/graph/edges", Fields::describe(EdgesQuery::read)),
        ("/api/graph/view", Fields::describe(ViewQuery::read)),
        ("/api/graph/node", Fields::describe(NodeQuery::read)),
        ("/api/entities", Fields::describe(EntitiesQuery::read)),
        ("/api/changes", Fields::describe(ChangesQuery::read)),
        ("/api/history", Fields::describe(HistoryQuery::read)),
        ("/api/logs", Fields::describe(LogsQuery::read)),
    ]
}

/// Gives the properties of a schema the types, bounds and defaults that their reader has.
fn apply_bounds(document: &mut Value, schema: &str, described: ReaderSchema) -> Option<()> {
    let target = document
        .get_mut("components")?
        .get_mut("schemas")?
        .get_mut(schema)?;
    target
        .as_object_mut()?
        .insert("required".to_owned(), json!(described.required));
    let mut inner = Vec::new();
    for (name, mut keywords) in described.properties {
        let property = target.get_mut("properties")?.get_mut(&name)?;
        // The entries of a list have a schema of their own.
        if let Some(ReaderSchema { properties, required }) = ReaderSchema::of_items(&mut keywords) {
            let entry = property.get("items")?.get("$ref")?.as_str()?;
            inner.push((
                entry.rsplit('/').next()?.to_owned(),
                ReaderSchema { properties, required },
            ));
        }
        replace(property, keywords)?;
    }
    inner
        .into_iter()
        .try_for_each(|(schema, described)| apply_bounds(document, &schema, described))
}

fn apply_parameter_bounds(operation: &mut Value, described: ReaderSchema) -> Option<()> {
    let parameters = operation.get_mut("parameters")?.as_array_mut()?;
    for (name, mut keywords) in described.properties {
        let parameter = parameters
            .iter_mut()
            .find(|parameter| parameter["name"] == name.as_str())?;
        // A query string has no null.
        if keywords["type"].is_array() {
            keywords["type"] = keywords["type"][0].take();
        }
        replace(parameter.get_mut("schema")?, keywords)?;
    }
    Some(())
}

/// Replaces keywords of a schema. A reference keeps its type.
fn replace(schema: &mut Value, keywords: Value) -> Option<()> {
    let (schema, Value::Object(keywords)) = (schema.as_object_mut()?, keywords) else {
        return None;
    };
    let is_reference = schema.contains_key("$ref") || schema.contains_key("allOf");
    let fits = |keyword: &str| !is_reference || keyword == "default";
    schema.extend(keywords.into_iter().filter(|(keyword, _)| fits(keyword)));
    Some(())
}

fn meaning(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "The body is not UTF-8, or can't be read.",
        StatusCode::UNAUTHORIZED => "A key is configured, and the request has none or another one.",
        StatusCode::FORBIDDEN => {
            "No key is configured, and the request comes from a web page of another origin."
        }
        StatusCode::NOT_FOUND => "There is no such note.",
        StatusCode::METHOD_NOT_ALLOWED => "The path has other methods; `Allow` names them.",
        StatusCode::REQUEST_TIMEOUT => "The body was not sent in time.",
        StatusCode::PAYLOAD_TOO_LARGE => "The body is larger than its fields can be.",
        StatusCode::UNPROCESSABLE_ENTITY => "Fields are invalid; each is named with its rule.",
        StatusCode::TOO_MANY_REQUESTS => "More requests in a minute than `web.rate_limit_per_minute`.",
        StatusCode::INSUFFICIENT_STORAGE => {
            "The disk has less free space than `storage.min_free_mib`; reads and deletions go on."
        }
        StatusCode::SERVICE_UNAVAILABLE => {
            "No key is configured, and the caller is not on this machine; or the service is too busy, or its disk failed."
        }
        _ => "The request failed; the log has the cause.",
    }
}

/// Schema and example of the body of an error.
fn error(status: StatusCode) -> (Cow<'static, str>, Value) {
    let detail = match status {
        StatusCode::UNPROCESSABLE_ENTITY => {
            let issue =
                json!({"type": "missing", "loc": ["body", "query"], "msg": "Field required", "input": {}});
            return (InvalidBody::name(), json!({"detail": [issue]}));
        }
        StatusCode::BAD_REQUEST => BAD_BODY,
        StatusCode::UNAUTHORIZED => KEY_REQUIRED,
        StatusCode::FORBIDDEN => FOREIGN_PAGE,
        StatusCode::NOT_FOUND => "note not found",
        StatusCode::METHOD_NOT_ALLOWED => "Method Not Allowed",
        StatusCode::REQUEST_TIMEOUT => "the body was not sent in time",
        StatusCode::PAYLOAD_TOO_LARGE => "body exceeds the limit of 78736 bytes",
        StatusCode::TOO_MANY_REQUESTS => RATE_LIMITED,
        StatusCode::INSUFFICIENT_STORAGE => DISK_LOW,
        StatusCode::SERVICE_UNAVAILABLE => SET_A_KEY,
        _ => "Internal Server Error",
    };
    (ErrorBody::name(), json!({"detail": detail}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::local::LocalFlags;

    fn settings() -> LocalSettings {
        LocalSettings::load(None, &LocalFlags::default()).unwrap().0
    }

    #[test]
    fn a_reader_and_its_type_have_the_same_fields() {
        let names =
            |properties: &Value| -> Vec<String> { properties.as_object().unwrap().keys().cloned().collect() };
        let schemas = &DOCUMENT["components"]["schemas"];
        for (schema, mut described) in bodies(&settings()) {
            let typed = &schemas[schema]["properties"];
            assert_eq!(names(typed), names(&json!(described.properties)), "{schema}");
            for (name, keywords) in &mut described.properties {
                if let Some(entry) = ReaderSchema::of_items(keywords) {
                    let target = typed[name]["items"]["$ref"].as_str().unwrap();
                    let target = DOCUMENT.pointer(target.trim_start_matches('#')).unwrap();
                    assert_eq!(
                        names(&target["properties"]),
                        names(&json!(entry.properties)),
                        "{name}"
                    );
                }
            }
        }
        for (path, described) in queries() {
            let parameters = DOCUMENT["paths"][path]["get"]["parameters"].as_array().unwrap();
            let mut typed: Vec<&str> = parameters.iter().filter_map(|one| one["name"].as_str()).collect();
            typed.sort_unstable();
            assert_eq!(typed, names(&json!(described.properties)), "{path}");
        }
    }

    #[test]
    fn settings_and_key_change_the_document() {
        let mut settings = settings();
        settings.web.max_k = 3;
        settings.web.max_content_chars = 9;
        let document = current(&settings, true).unwrap();
        let schemas = &document["components"]["schemas"];
        let k = &schemas["SynthesizeBody"]["properties"]["k"];
        assert_eq!((&k["maximum"], &k["default"]), (&json!(3), &json!(3)));
        assert_eq!(schemas["IngestItem"]["properties"]["content"]["maxLength"], 9);
        assert_eq!(document["security"].as_array().unwrap().len(), 2);
        assert_eq!(current(&settings, false).unwrap()["security"][0], json!({}));
    }
}
