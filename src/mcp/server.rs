//! The server: answers the requests of the protocol.

use std::sync::Arc;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ResourceContents, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, model::ErrorCode};
use serde_json::{Value, json};

use super::answer::{answer, outcome_of, refused, said};
use super::api::{CallRecord, Caller};
use super::call::prepare;
use super::catalog::{Catalog, Service};
use super::{hosted, local, prompt, resource};
use crate::domain::audit::Outcome;

type Context = RequestContext<RoleServer>;

/// Longest name of a client in the log, in characters.
const MOST_NAME: usize = 100;

/// The protocol over the tools of a service. Each request brings its [`Caller`].
#[derive(Clone)]
pub(crate) struct McpServer {
    catalog: Arc<Catalog>,
}

impl McpServer {
    pub(crate) fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog }
    }

    /// Resources that have ids, from `offset` on.
    async fn listed(&self, caller: &Caller, offset: usize) -> Result<Vec<rmcp::model::Resource>, ErrorData> {
        let service = self.catalog.service;
        let sent = caller.api.send(resource::listing(service, offset)).await;
        let body: Value = serde_json::from_slice(&sent.body).unwrap_or_default();
        match sent.status {
            200 => Ok(resource::listed(service, &body)),
            // Who may read nothing has no resources.
            403 => Ok(Vec::new()),
            _ => Err(ErrorData::internal_error(said(&body, &[]), None)),
        }
    }
}

/// Writes the entry of a call.
async fn log(context: &Context, caller: &Caller, name: &str, outcome: Outcome) -> Result<(), ErrorData> {
    let introduced = context
        .client_info()
        .map(|client| match client.version.is_empty() {
            true => client.name,
            false => format!("{}/{}", client.name, client.version),
        });
    // A stateless request of an early revision comes without a name.
    let introduced = introduced.filter(|name| !name.starts_with("rmcp"));
    let client = introduced.or_else(|| caller.user_agent.clone());
    let record = CallRecord {
        action: format!("mcp.{name}"),
        client: client.map(|name| name.chars().take(MOST_NAME).collect()),
        outcome,
    };
    let recorded = caller.log.record(record).await;
    recorded.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Who sent the request: the listener puts it beside each.
fn caller_of(context: &Context) -> Result<Caller, ErrorData> {
    let parts = context.extensions.get::<http::request::Parts>();
    let caller = parts.and_then(|parts| parts.extensions.get::<Caller>());
    caller
        .cloned()
        .ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
}

/// The place in a list that a cursor names.
fn offset_of(request: Option<PaginatedRequestParams>) -> Result<usize, ErrorData> {
    let cursor = request.and_then(|request| request.cursor);
    let offset = cursor.map_or(Ok(0), |cursor| cursor.parse());
    offset.map_err(|_| ErrorData::invalid_params("cursor: is none that this server gave", None))
}

/// Lists that have one page.
fn only_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params(
            "cursor: is none that this server gave",
            None,
        )),
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        let (title, instructions) = match self.catalog.service {
            Service::Hosted => ("Threat-Intelligence Memory", hosted::INSTRUCTIONS),
            Service::Local => ("Threat-Intelligence Memory: local service", local::INSTRUCTIONS),
        };
        let server = Implementation::new("threat-memory", env!("CARGO_PKG_VERSION")).with_title(title);
        ServerConfig::new(capabilities)
            .with_server_info(server)
            .with_instructions(instructions)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        only_page(request)?;
        let caller = caller_of(&context)?;
        Ok(ListToolsResult::with_all_items(self.catalog.of(&caller)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Some(self.catalog.tool(name)?.wire.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = caller_of(&context)?;
        let arguments = request.arguments.unwrap_or_default();
        let Some(known) = self.catalog.tool(&request.name) else {
            let names: Vec<String> = self
                .catalog
                .of(&caller)
                .into_iter()
                .map(|tool| tool.name.into_owned())
                .collect();
            log(&context, &caller, "call", Outcome::Failure).await?;
            let shown: String = request.name.chars().take(MOST_NAME).collect();
            let text = format!("there is no tool {shown:?}; there are {}", names.join(", "));
            return Err(ErrorData::invalid_params(text, None));
        };
        let note = |outcome| log(&context, &caller, known.tool.name, outcome);
        let result = match prepare(known, arguments, caller.api.as_ref()).await {
            Err(refusal) => {
                note(Outcome::Failure).await?;
                refused(refusal.0)
            }
            Ok(prepared) => {
                let sent = caller.api.send(prepared.request.clone()).await;
                // The entry is written while the answer is built.
                let noted = note(outcome_of(sent.status));
                let built = async { answer(known.tool, &prepared, sent) };
                let (noted, result) = tokio::join!(noted, built);
                noted?;
                result
            }
        };
        Ok(CallToolResponse::from(result))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let offset = offset_of(request)?;
        let caller = caller_of(&context)?;
        let mut resources = match offset {
            0 => resource::fixed(self.catalog.service, &caller),
            _ => Vec::new(),
        };
        let listed = self.listed(&caller, offset).await?;
        let next = (listed.len() == resource::PAGE).then(|| (offset + resource::PAGE).to_string());
        resources.extend(listed);
        let mut result = ListResourcesResult::with_all_items(resources);
        result.next_cursor = next;
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        only_page(request)?;
        let caller = caller_of(&context)?;
        let templates = resource::templates(self.catalog.service, &caller);
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = caller_of(&context)?;
        let uri = request.uri;
        let missing = |said: &str| {
            let shown: String = uri.chars().take(200).collect();
            ErrorData::new(
                ErrorCode::RESOURCE_NOT_FOUND,
                format!("{shown}: {said}"),
                Some(json!({ "uri": shown })),
            )
        };
        let Some(reading) = resource::reading(self.catalog.service, &caller, &uri) else {
            let outcome = match resource::is_denied(self.catalog.service, &caller, &uri) {
                true => Outcome::Denied,
                false => Outcome::Failure,
            };
            log(&context, &caller, "read", outcome).await?;
            return Err(missing("there is no such resource, or none that you may see"));
        };
        let sent = caller.api.send(reading.request).await;
        let outcome = match sent.status {
            200 => Outcome::Success,
            401 | 403 => Outcome::Denied,
            _ => Outcome::Failure,
        };
        log(&context, &caller, "read", outcome).await?;
        if sent.status != 200 {
            let body: Value = serde_json::from_slice(&sent.body).unwrap_or_default();
            return Err(missing(&said(&body, &[])));
        }
        let text = resource::text_of(&sent.body, reading.media_type);
        let contents = ResourceContents::text(text, uri).with_mime_type(reading.media_type);
        Ok(ReadResourceResponse::from(ReadResourceResult::new(vec![
            contents,
        ])))
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        only_page(request)?;
        Ok(ListPromptsResult::with_all_items(prompt::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let caller = caller_of(&context)?;
        let arguments = request.arguments.unwrap_or_default();
        let written = prompt::write(self.catalog.service, &request.name, &arguments);
        let outcome = match written {
            Ok(_) => Outcome::Success,
            Err(_) => Outcome::Failure,
        };
        log(&context, &caller, "prompt", outcome).await?;
        let (about, message) = written.map_err(|error| ErrorData::invalid_params(error, None))?;
        let mut result = GetPromptResult::new(vec![message]);
        result.description = Some(about.to_owned());
        Ok(GetPromptResponse::from(result))
    }
}
