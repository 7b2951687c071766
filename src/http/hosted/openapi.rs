//! `GET /openapi.json`: the description of this API (OpenAPI 3.1), generated from its handlers and types.

use std::sync::LazyLock;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Value, json};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi, ToSchema};

use super::error::{ErrorBody, HostedError};
use super::guard::{DocumentLimits, Public};
use super::{
    actors, admin, audit, auth, backup, changes, collections, corrections, demo, erasures, feeds, health,
    ingest, lookup, merges, nodes, oauth, operator, pilot, recall, resource, staging,
};
use crate::http::document::Document;
use crate::http::openapi::{Conventions, DISK_LOW, readable};
use crate::http::query::KnownParameters;
use crate::http::viewer::Viewer;

/// What follows from a rule rather than from a handler.
const CONVENTIONS: Conventions = Conventions {
    guarded: &[401, 403, 429],
    with_body: &[400, 408, 413, 415, 507],
    with_query: &[400],
    with_id: &[404],
    always: &[500, 503],
    meaning,
    error,
};

/// The page that shows the document.
const VIEWER: Viewer = Viewer {
    prefix: "/docs",
    document: "/openapi.json",
    title: "threat-memory: HTTP API",
};

static DOCUMENT: LazyLock<Document> =
    LazyLock::new(|| Document::new(description().to_string(), "application/json"));

/// The document as it is served.
pub(super) fn description() -> Value {
    // Serializing a document of plain values can't fail.
    let mut whole = serde_json::to_value(document()).unwrap_or_default();
    readable::simplify(&mut whole);
    whole
}

/// The query parameters of each route. A provider may send the callback more than this program reads (RFC 6749 section
/// 4.1.2).
pub(super) static PARAMETERS: LazyLock<KnownParameters> = LazyLock::new(|| {
    let document = serde_json::to_value(document()).unwrap_or_default();
    KnownParameters::of(&document, &["/api/auth/oauth/{provider}/callback"])
});

/// The frame of the document.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Threat-Intelligence Memory",
        version = "1.0.0",
        description = "A memory for cyber threat intelligence: STIX 2.1 and other sources in, blended recall, validated \
                       STIX 2.1 out. Unknown fields of a body are ignored; query parameters that a request does \
                       not have are refused. Times are RFC 3339.",
        contact(name = "The operator of this service"),
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    servers((url = "/", description = "This service")),
    security(("bearer" = []), ("api_key" = [])),
    components(schemas(ErrorBody)),
    tags(
        (name = "Health", description = "Needs no credential."),
        (name = "Sign-in", description = "Tokens, and who the caller is."),
        (name = "Public demo", description = "A demo workspace that anyone may search. Needs no credential."),
        (name = "Pilot", description = "Applications of those who want to try the service. Needs no credential."),
        (name = "Recall", description = "Search, sessions, export and single nodes. Requires `recall:read`."),
        (name = "Corrections", description = "What analysts set by hand over what sources state. Requires `recall:write`."),
        (name = "Ingest", description = "Structured input. Requires `recall:write` and the feature `knowledge_graph`."),
        (name = "Staging", description = "Entities extracted from text, their review and their commit. Requires `recall:write` and the feature `knowledge_graph`."),
        (name = "Threat feeds", description = "TAXII 2.1 feeds and uploaded bundles: pull, review, commit. Requires `recall:write` and the feature `knowledge_graph`."),
        (name = "Audit", description = "The audit log. Requires `audit:read` or `audit:export`, which no API key has."),
        (name = "Administration", description = "Users, API keys, collections of the TAXII server and settings of one's own workspace. Requires the role admin, which no API key has."),
        (name = "Description", description = "This document."),
    )
)]
struct Frame;

#[derive(OpenApi)]
#[openapi(paths(openapi_json))]
struct Docs;

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/openapi.json").route(web::get().to(openapi_json)));
    VIEWER.configure::<HostedError>(cfg);
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "Description", security(()),
    params(("If-None-Match" = Option<String>, Header, description = "The ETag of the copy that the client has.")),
    responses(
        (status = 200, description = "The description of this API, OpenAPI 3.1.", body = Object,
            headers(("ETag" = String, description = "Changes with the document.")),
            example = json!({"openapi": "3.1.0"})),
        (status = 304, description = "The client's copy is current."),
        (status = 429, description = "More than 60 requests within a minute from this address."),
    )
)]
async fn openapi_json(_: Public<DocumentLimits>, request: HttpRequest) -> HttpResponse {
    DOCUMENT.answer(&request)
}

/// The complete document.
fn document() -> utoipa::openapi::OpenApi {
    let mut whole = Frame::openapi();
    for part in [
        health::Docs::openapi(),
        auth::Docs::openapi(),
        oauth::Docs::openapi(),
        demo::Docs::openapi(),
        recall::Docs::openapi(),
        lookup::Docs::openapi(),
        nodes::Docs::openapi(),
        changes::Docs::openapi(),
        backup::Docs::openapi(),
        actors::Docs::openapi(),
        corrections::Docs::openapi(),
        merges::Docs::openapi(),
        ingest::Docs::openapi(),
        staging::Docs::openapi(),
        staging::many::Docs::openapi(),
        feeds::registry::Docs::openapi(),
        feeds::Docs::openapi(),
        audit::Docs::openapi(),
        admin::Docs::openapi(),
        collections::Docs::openapi(),
        operator::Docs::openapi(),
        erasures::Docs::openapi(),
        pilot::Docs::openapi(),
        Docs::openapi(),
    ] {
        whole.merge(part);
    }
    Credentials.modify(&mut whole);
    CONVENTIONS.modify(&mut whole);
    whole
}

/// The ways to authenticate.
struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        let bearer = bearer.description(Some("A token of `POST /api/auth/login`, or an API key."));
        let key = ApiKeyValue::with_description("X-API-Key", "An API key.");
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
        components.add_security_scheme("api_key", SecurityScheme::ApiKey(ApiKey::Header(key)));
    }
}

fn meaning(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "A field or parameter breaks a rule; the error names both.",
        StatusCode::UNAUTHORIZED => "The credential is missing, unknown, expired or revoked.",
        StatusCode::FORBIDDEN => "The caller lacks the permission, or the workspace the feature.",
        StatusCode::NOT_FOUND => "There is no such thing, or none that the caller may see.",
        StatusCode::REQUEST_TIMEOUT => "The body was not sent in time.",
        StatusCode::PAYLOAD_TOO_LARGE => "The body is too large.",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "The body is not of the media type `application/json`.",
        StatusCode::TOO_MANY_REQUESTS => "The rate limit is exceeded.",
        StatusCode::INTERNAL_SERVER_ERROR => "The service failed.",
        StatusCode::INSUFFICIENT_STORAGE => {
            "The disk has less free space than `storage.min_free_mib`; reads and deletions go on."
        }
        StatusCode::SERVICE_UNAVAILABLE => {
            "The service is busy, or its database is out of reach; retry later."
        }
        _ => "",
    }
}

fn error(status: StatusCode) -> (std::borrow::Cow<'static, str>, Value) {
    let text = match status {
        StatusCode::BAD_REQUEST => "items[0].title: is required",
        StatusCode::UNAUTHORIZED => "invalid or missing credentials",
        StatusCode::FORBIDDEN => "permission recall:write required",
        StatusCode::NOT_FOUND => "session not found",
        StatusCode::REQUEST_TIMEOUT => "the body was not sent in time",
        StatusCode::CONFLICT => "the feed is disabled",
        StatusCode::PAYLOAD_TOO_LARGE => "body exceeds the limit of 67108864 bytes",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "the body must be application/json",
        StatusCode::UNPROCESSABLE_ENTITY => "STIX bundle failed validation",
        StatusCode::TOO_MANY_REQUESTS => "rate limit exceeded",
        StatusCode::BAD_GATEWAY => "the pull failed: the collection answered 503",
        StatusCode::GATEWAY_TIMEOUT => "the pull failed: the collection was too slow",
        StatusCode::INSUFFICIENT_STORAGE => DISK_LOW,
        StatusCode::SERVICE_UNAVAILABLE => "graph store is busy; retry shortly",
        _ => "the request failed unexpectedly",
    };
    (ErrorBody::name(), json!({"error": text}))
}
