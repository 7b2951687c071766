//! What the OpenAPI documents of both APIs have in common. A handler describes only what is special to it; answers that
//! follow from a rule, headers and examples are added here, once for all operations.

mod example;
pub(super) mod readable;

use std::borrow::Cow;
use std::collections::BTreeMap;

use actix_web::http::StatusCode;
use serde_json::Value;
use utoipa::Modify;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::link::Link;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{Content, Header, OpenApi, PathItem, Ref, RefOr, Response, Schema};

use self::example::Examples;

/// Media type of all bodies but exports.
/// Example of the error below `storage.min_free_mib`.
pub(super) const DISK_LOW: &str = "the disk has 12 MiB left, less than storage.min_free_mib (64): nothing is written until there \
                                   is more; reading goes on";
const JSON: &str = "application/json";
const TOO_MANY: &str = "429";

/// The rules of one API for the answers that its handlers don't describe.
pub(super) struct Conventions {
    /// Statuses of operations that require a credential.
    pub guarded: &'static [u16],
    /// Statuses of operations that take a body.
    pub with_body: &'static [u16],
    /// Statuses of operations that take query parameters.
    pub with_query: &'static [u16],
    /// Statuses of operations whose path names something by id.
    pub with_id: &'static [u16],
    /// Statuses of all operations.
    pub always: &'static [u16],
    /// What an answer with this status means.
    pub meaning: fn(StatusCode) -> &'static str,
    /// Schema name and example of the body of an error.
    pub error: fn(StatusCode) -> (Cow<'static, str>, Value),
}

impl Modify for Conventions {
    /// Adds the common answers as components, completes those of the handlers, and gives each body an example.
    fn modify(&self, document: &mut OpenApi) {
        let anonymous = document.security.is_none();
        for operation in operations(document) {
            self.complete(operation, anonymous);
        }
        let components = document.components.get_or_insert_default();
        let all = [
            self.guarded,
            self.with_body,
            self.with_query,
            self.with_id,
            self.always,
        ];
        for status in all.concat() {
            let Ok(status) = StatusCode::from_u16(status) else {
                continue;
            };
            let response = self.complete_response(status, Response::default());
            let responses = &mut components.responses;
            responses.insert(component(status), RefOr::T(response));
        }
        let schemas = components.schemas.clone();
        let examples = Examples::new(&schemas);
        for operation in operations(document) {
            exemplify(operation, &examples);
        }
    }
}

impl Conventions {
    fn complete(&self, operation: &mut Operation, anonymous: bool) {
        // `security(())` means "no credential": written as the empty list, not as an optional credential.
        if let Some(security) = &mut operation.security {
            security.retain(|requirement| *requirement != Default::default());
        }
        let statuses = self.statuses(operation, anonymous);
        let responses = &mut operation.responses.responses;
        for status in statuses {
            let Ok(status) = StatusCode::from_u16(status) else {
                continue;
            };
            let common = Ref::new(format!("#/components/responses/{}", component(status)));
            let entry = responses.entry(status.as_str().to_owned());
            entry.or_insert(RefOr::Ref(common));
        }
        let limited = responses.contains_key(TOO_MANY);
        for (status, response) in responses {
            let status = status
                .parse()
                .ok()
                .and_then(|code| StatusCode::from_u16(code).ok());
            let (Some(status), RefOr::T(response)) = (status, response) else {
                continue;
            };
            let own = std::mem::take(response);
            *response = self.complete_response(status, own);
            response.links.values_mut().for_each(fix_link_name);
            if !limited {
                response.headers.retain(|name, _| !name.starts_with("RateLimit-"));
            }
        }
    }

    /// The statuses that follow from a rule. A query parameter or a whole body is left out, but never null: its schema
    /// loses that type.
    fn statuses(&self, operation: &mut Operation, anonymous: bool) -> Vec<u16> {
        let open = operation.security.as_ref().map_or(anonymous, Vec::is_empty);
        let mut statuses = self.always.to_vec();
        if !open {
            statuses.extend(self.guarded);
        }
        if let Some(body) = &mut operation.request_body {
            statuses.extend(self.with_body);
            let schemas = body
                .content
                .values_mut()
                .filter_map(|content| content.schema.as_mut());
            schemas.for_each(without_null);
        }
        for parameter in operation.parameters.iter_mut().flatten() {
            match parameter.parameter_in {
                ParameterIn::Path => statuses.extend(self.with_id),
                ParameterIn::Query => {
                    statuses.extend(self.with_query);
                    parameter.schema.iter_mut().for_each(without_null);
                }
                ParameterIn::Header | ParameterIn::Cookie => {}
            }
        }
        statuses
    }

    /// Completes a response: the meaning and body of an error, and the headers that its status has.
    fn complete_response(&self, status: StatusCode, mut response: Response) -> Response {
        if status.is_client_error() || status.is_server_error() {
            if response.description.is_empty() {
                (self.meaning)(status).clone_into(&mut response.description);
            }
            let (schema, example) = (self.error)(status);
            response.content.entry(JSON.to_owned()).or_insert_with(|| {
                let mut content = Content::new(Some(Ref::from_schema_name(schema)));
                content.example = Some(example);
                content
            });
        }
        for (name, header) in headers(status) {
            response.headers.entry(name.to_owned()).or_insert(header);
        }
        response
    }
}

/// The operations of a document.
pub(super) fn operations(document: &mut OpenApi) -> impl Iterator<Item = &mut Operation> {
    document.paths.paths.values_mut().flat_map(|item: &mut PathItem| {
        let all = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
            &mut item.options,
            &mut item.head,
            &mut item.patch,
            &mut item.trace,
        ];
        all.into_iter().flatten()
    })
}

/// utoipa 5.5 writes the target of a link as `operation_id`; OpenAPI calls it `operationId`.
fn fix_link_name(link: &mut RefOr<Link>) {
    if let RefOr::T(link) = link {
        let id = std::mem::take(&mut link.operation_id);
        let extensions = link.extensions.get_or_insert_default();
        extensions.insert("operationId".to_owned(), Value::String(id));
    }
}

fn without_null(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(object)) => {
            if let SchemaType::Array(types) = &mut object.schema_type {
                types.retain(|one| *one != Type::Null);
            }
            if let SchemaType::Array(types) = &object.schema_type
                && let [one] = types.as_slice()
            {
                object.schema_type = SchemaType::Type(one.clone());
            }
        }
        RefOr::T(Schema::OneOf(one)) => {
            let is_null = |item: &RefOr<Schema>| matches!(item, RefOr::T(Schema::Object(object)) if object.schema_type == SchemaType::Type(Type::Null));
            one.items.retain(|item| !is_null(item));
            if let [only] = one.items.as_slice() {
                *schema = only.clone();
            }
        }
        RefOr::T(_) | RefOr::Ref(_) => {}
    }
}

/// Name of the component that describes a common answer.
fn component(status: StatusCode) -> String {
    let reason = status.canonical_reason().unwrap_or(status.as_str());
    reason.replace(' ', "")
}

/// Headers of every answer with this status.
fn headers(status: StatusCode) -> BTreeMap<&'static str, Header> {
    let mut headers = BTreeMap::new();
    headers.insert(
        "X-Request-Id",
        text("Id of the request in the service's log: the caller's, if it sent a harmless one."),
    );
    if status == StatusCode::UNAUTHORIZED {
        let scheme = text("The scheme to authenticate by (RFC 9110 section 11.6.1).");
        headers.insert("WWW-Authenticate", scheme);
    }
    if [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status) {
        headers.insert("Retry-After", count("Seconds after which a retry may succeed."));
    }
    // A refusal of the credential comes before its limit is known.
    if status != StatusCode::UNAUTHORIZED && !status.is_server_error() {
        headers.insert("RateLimit-Limit", count("Requests per window."));
        headers.insert("RateLimit-Remaining", count("Requests left in this window."));
        headers.insert("RateLimit-Reset", count("Seconds until the window ends."));
    }
    headers
}

fn text(description: &str) -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    header(schema, description)
}

fn count(description: &str) -> Header {
    let format = SchemaFormat::KnownFormat(KnownFormat::Int64);
    let schema = ObjectBuilder::new().schema_type(Type::Integer);
    header(schema.format(Some(format)).minimum(Some(0)), description)
}

fn header(schema: ObjectBuilder, description: &str) -> Header {
    let described = HeaderBuilder::new().schema(Schema::Object(schema.build()));
    described.description(Some(description)).build()
}

/// Gives each body without an example one that is composed of the examples of its schemas.
fn exemplify(operation: &mut Operation, examples: &Examples<'_>) {
    let request = operation.request_body.iter_mut().map(|body| &mut body.content);
    let answers = operation.responses.responses.values_mut();
    let answers = answers.filter_map(|answer| match answer {
        RefOr::T(answer) => Some(&mut answer.content),
        RefOr::Ref(_) => None,
    });
    let request: Vec<&mut Content> = request.flat_map(|content| content.values_mut()).collect();
    let answers = answers.flat_map(|content| content.values_mut());
    for content in request.into_iter().chain(answers) {
        if content.example.is_none()
            && content.examples.is_empty()
            && let Some(schema) = &content.schema
        {
            content.example = Some(examples.of(schema));
        }
    }
}
