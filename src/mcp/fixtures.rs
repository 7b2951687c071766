//! What the conformance suite of the protocol (`@modelcontextprotocol/conformance`) expects a server to have: its scenarios
//! prove the transport and the library with these tools, resources and prompts. Only a build with the feature
//! `mcp-fixtures` has them, in place of the memory's; no release is built so.

use std::time::Duration;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, Prompt, PromptArgument, PromptMessage, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, model::ErrorCode};
use serde_json::{Value, json};

use super::schema::Object;

type Context = RequestContext<RoleServer>;

/// A picture of one pixel, and a sound of no length.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const TOOLS: [&str; 9] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
    "test_missing_capability",
    "test_logging_tool",
];

/// The server of the suite.
#[derive(Clone)]
pub(crate) struct Fixtures;

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Object::new(),
    }
}

fn embedded(uri: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(text, uri))
}

async fn report_progress(context: &Context) {
    let token = context.meta.get_progress_token();
    for progress in [0.0, 50.0, 100.0] {
        if let Some(token) = &token {
            let notification = ProgressNotificationParam::new(token.clone(), progress).with_total(100.0);
            context.peer.notify_progress(notification).await.ok();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder();
        ServerConfig::new(
            capabilities
                .enable_tools()
                .enable_resources()
                .enable_prompts()
                .build(),
        )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = object(json!({"type": "object", "properties": {}}));
        let tools = TOOLS.map(|name| Tool::new(name, "A tool of the conformance suite", schema.clone()));
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let content = match request.name.as_ref() {
            "test_simple_text" | "test_logging_tool" => {
                vec![ContentBlock::text("This is a simple text response for testing.")]
            }
            "test_image_content" => vec![ContentBlock::image(PNG, "image/png")],
            "test_audio_content" => vec![ContentBlock::audio(WAV, "audio/wav")],
            "test_embedded_resource" => {
                vec![embedded(
                    "test://embedded-resource",
                    "This is an embedded resource content.",
                )]
            }
            "test_multiple_content_types" => vec![
                ContentBlock::text("Multiple content types test:"),
                ContentBlock::image(PNG, "image/png"),
                embedded("test://mixed-content-resource", r#"{"test":"data","value":123}"#),
            ],
            "test_error_handling" => {
                let text = ContentBlock::text("This tool intentionally returns an error for testing");
                return Ok(CallToolResponse::from(CallToolResult::error(vec![text])));
            }
            "test_tool_with_progress" => {
                report_progress(&context).await;
                vec![ContentBlock::text("Done.")]
            }
            "test_missing_capability" => {
                // By name: the library has deprecated the capability, the suite asks for it.
                let declared = serde_json::to_value(context.client_capabilities()).unwrap_or_default();
                if !declared["sampling"].is_object() {
                    let needed: ClientCapabilities =
                        serde_json::from_value(json!({"sampling": {}})).unwrap_or_default();
                    return Err(ErrorData::missing_required_client_capability(needed));
                }
                vec![ContentBlock::text("Declared.")]
            }
            other => {
                return Err(ErrorData::invalid_params(
                    format!("there is no tool {other}"),
                    None,
                ));
            }
        };
        Ok(CallToolResponse::from(CallToolResult::success(content)))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources =
            ["static-text", "static-binary"].map(|name| Resource::new(format!("test://{name}"), name));
        Ok(ListResourcesResult::with_all_items(resources.to_vec()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("test://template/{id}/data", "template");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let id = uri
            .strip_prefix("test://template/")
            .and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, id) {
            ("test://static-text", _) => {
                ResourceContents::text("This is the content of the static text resource.", uri)
            }
            ("test://static-binary", _) => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
            (_, Some(id)) => {
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
            }
            (_, None) => {
                let data = Some(json!({ "uri": uri }));
                return Err(ErrorData::new(
                    ErrorCode::RESOURCE_NOT_FOUND,
                    "Resource not found",
                    data,
                ));
            }
        };
        Ok(ReadResourceResponse::from(ReadResourceResult::new(vec![
            contents,
        ])))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = |name: &str| {
            PromptArgument::new(name)
                .with_description("Of the suite")
                .with_required(true)
        };
        let prompts = [
            ("test_simple_prompt", None),
            (
                "test_prompt_with_arguments",
                Some(vec![argument("arg1"), argument("arg2")]),
            ),
            (
                "test_prompt_with_embedded_resource",
                Some(vec![argument("resourceUri")]),
            ),
            ("test_prompt_with_image", None),
        ];
        let prompts =
            prompts.map(|(name, arguments)| Prompt::new(name, Some("A prompt of the suite"), arguments));
        Ok(ListPromptsResult::with_all_items(prompts.to_vec()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let argument = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let user = |content: ContentBlock| PromptMessage::new(Role::User, content);
        let messages = match request.name.as_str() {
            "test_simple_prompt" => vec![user(ContentBlock::text("This is a simple prompt for testing."))],
            "test_prompt_with_arguments" => {
                let (one, other) = (argument("arg1"), argument("arg2"));
                let text = format!("Prompt with arguments: arg1='{one}', arg2='{other}'");
                vec![user(ContentBlock::text(text))]
            }
            "test_prompt_with_embedded_resource" => vec![
                user(embedded(
                    &argument("resourceUri"),
                    "Embedded resource content for testing.",
                )),
                user(ContentBlock::text("Please process the embedded resource above.")),
            ],
            "test_prompt_with_image" => vec![
                user(ContentBlock::image(PNG, "image/png")),
                user(ContentBlock::text("Please analyze the image above.")),
            ],
            other => {
                return Err(ErrorData::invalid_params(
                    format!("there is no prompt {other}"),
                    None,
                ));
            }
        };
        Ok(GetPromptResponse::from(GetPromptResult::new(messages)))
    }
}
