//! The local API: one file per resource. Responses keep the shapes that clients of the tool it replaces expect.

mod backup;
mod body;
mod changes;
mod config;
mod error;
mod graph;
mod guard;
mod input;
mod lookup;
mod mcp;
mod memory;
mod openapi;
mod pages;
mod shares;
mod streams;
mod system;
mod times;
mod toml;
mod validate;

use std::sync::Arc;
use std::time::Instant;

use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, Resource, web};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use self::error::LocalError;
pub use self::error::refusal;
use super::head_as_get;
use super::problem::{self, Endpoint, no_route};
use crate::capacity::Budget;
use crate::config::local::LocalSettings;
use crate::local::MemoryManager;

/// Version of the API (local specification, section Versioning).
const API_VERSION: &str = "2.8.0";
const EDITION: &str = "community";
const EDITION_NAME: &str = "Threat Memory Community";

/// Most bytes of bodies in flight; raised to twice the body limit if that is larger.
const BODIES_IN_FLIGHT: usize = 256 << 20;

/// State shared by all handlers.
#[derive(Clone)]
pub struct LocalState {
    memory: MemoryManager,
    /// SHA-256 of the key that callers must send; without one, only callers on this machine are admitted.
    key: Option<[u8; 32]>,
    /// Bytes of bodies in flight.
    bodies: Budget,
    started: Instant,
}

impl LocalState {
    /// Creates the state over a running memory.
    pub fn new(memory: MemoryManager, key: &SecretString) -> Self {
        let bodies = BODIES_IN_FLIGHT.max(2 * memory.settings().web.body_limit);
        let key = Some(key.expose_secret()).filter(|key| !key.is_empty());
        Self {
            memory,
            key: key.map(|key| Sha256::digest(key).into()),
            bodies: Budget::new(bodies, bodies),
            started: Instant::now(),
        }
    }

    fn settings(&self) -> Arc<LocalSettings> {
        self.memory.settings()
    }
}

/// Registers every route of the local API.
pub fn configure(cfg: &mut web::ServiceConfig) {
    memory::configure(cfg);
    graph::configure(cfg);
    lookup::configure(cfg);
    changes::configure(cfg);
    backup::configure(cfg);
    system::configure(cfg);
    streams::configure(cfg);
    config::configure(cfg);
    openapi::configure(cfg);
    pages::configure(cfg);
    mcp::configure(cfg);
    // Unknown paths are guarded too, so that callers without a key can't probe for routes.
    for path in ["/api", "/api/{rest:.*}"] {
        cfg.service(guarded_resource(path).route(web::route().to(no_route::<LocalError>)));
    }
    cfg.default_service(web::route().to(no_route::<LocalError>));
}

/// A resource behind the guard that answers HEAD wherever it answers GET.
fn guarded_resource(path: &'static str) -> Resource<impl Endpoint> {
    stream(path).wrap(from_fn(head_as_get))
}

/// A guarded resource for an endless stream, which does not support HEAD.
fn stream(path: &'static str) -> Resource<impl Endpoint> {
    problem::resource::<LocalError>(path).wrap(from_fn(guard::admit))
}

/// The caller's address.
fn address_of(request: &HttpRequest) -> std::net::IpAddr {
    crate::http::client_ip::client_ip(request, &[])
}
