//! Both services over the Model Context Protocol (MCP): another front beside `http`, for agents.
//!
//! A tool is one request of the HTTP API, which is sent within the process through the same guard, limits and audit as any
//! other. So a marking hides here exactly what it hides there, and what a tool takes and gives is described by the types of the
//! API. What is different is written here: the names of the tools, the arguments, and answers that fit into the attention of
//! a language model.
//!
//! Two eras of the protocol are served, by the crate `rmcp`: 2026-07-28, whose requests stand alone, and the revisions
//! that begin with `initialize` (2025-11-25, 2025-06-18, 2024-11-05).

mod answer;
mod api;
mod budget;
mod call;
mod catalog;
#[cfg(feature = "mcp-fixtures")]
mod fixtures;
pub(crate) mod hosted;
pub(crate) mod local;
mod prompt;
mod resource;
mod schema;
mod server;
mod tool;

pub(crate) use self::answer::said;
pub(crate) use self::api::{Api, ApiAnswer, ApiRequest, CallLog, CallRecord, Caller, Verb};
pub(crate) use self::catalog::{Catalog, Service};
#[cfg(feature = "mcp-fixtures")]
pub(crate) use self::fixtures::Fixtures;
pub(crate) use self::schema::Object;
pub(crate) use self::server::McpServer;
