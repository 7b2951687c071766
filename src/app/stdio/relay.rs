//! The server on standard input and output: passes each request on.

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerConfig,
};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::Wish;
use super::remote::{Failure, Remote};
use crate::mcp::Object;

type Context = RequestContext<RoleServer>;

pub(super) struct Relay {
    remote: Mutex<Arc<Remote>>,
    info: ServerConfig,
    wishes: mpsc::Sender<Wish>,
}

impl Relay {
    pub fn new(remote: Arc<Remote>, info: ServerConfig, wishes: mpsc::Sender<Wish>) -> Self {
        Self {
            remote: Mutex::new(remote),
            info,
            wishes,
        }
    }

    /// Passes a request on. If its service is gone, it goes to the one that has the memory now; it was not sent before, so
    /// nothing is done twice.
    async fn pass<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Object,
        name: Option<&str>,
        context: &Context,
    ) -> Result<T, ErrorData> {
        let client = context
            .client_info()
            .unwrap_or_else(|| Implementation::new("unknown", ""));
        let remote = Arc::clone(&self.remote.lock());
        match remote.ask(method, params.clone(), name, &client).await {
            Ok(result) => return Ok(result),
            Err(Failure::Told(error)) => return Err(error),
            Err(Failure::Gone(_)) => {}
        }
        let (wish, granted) = oneshot::channel();
        self.wishes.send(wish).await.ok();
        let found = granted
            .await
            .unwrap_or_else(|_| Err("the memory is closed".to_owned()));
        let remote = found.map_err(|why| ErrorData::internal_error(why, None))?;
        *self.remote.lock() = Arc::clone(&remote);
        remote
            .ask(method, params, name, &client)
            .await
            .map_err(|failure| match failure {
                Failure::Told(error) => error,
                Failure::Gone(why) => ErrorData::internal_error(why, None),
            })
    }

    async fn page<T: DeserializeOwned>(
        &self,
        method: &'static str,
        request: Option<PaginatedRequestParams>,
        context: &Context,
    ) -> Result<T, ErrorData> {
        let mut params = Object::new();
        if let Some(cursor) = request.and_then(|request| request.cursor) {
            params.insert("cursor".into(), Value::String(cursor));
        }
        self.pass(method, params, None, context).await
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Object::new(),
    }
}

impl ServerHandler for Relay {
    fn get_info(&self) -> ServerConfig {
        self.info.clone()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        self.page("tools/list", request, &context).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let params =
            object(json!({"name": request.name, "arguments": request.arguments.unwrap_or_default()}));
        let result: CallToolResult = self
            .pass("tools/call", params, Some(&request.name), &context)
            .await?;
        Ok(CallToolResponse::from(result))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.page("resources/list", request, &context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.page("resources/templates/list", request, &context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let params = object(json!({"uri": request.uri}));
        let result: ReadResourceResult = self
            .pass("resources/read", params, Some(&request.uri), &context)
            .await?;
        Ok(ReadResourceResponse::from(result))
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.page("prompts/list", request, &context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let params =
            object(json!({"name": request.name, "arguments": request.arguments.unwrap_or_default()}));
        let result: GetPromptResult = self
            .pass("prompts/get", params, Some(&request.name), &context)
            .await?;
        Ok(GetPromptResponse::from(result))
    }
}
