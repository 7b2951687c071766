//! HTTP: two APIs over one core. Handlers extract, authorise, parse, call one handle and serialise.

pub(crate) mod backup;
mod body;
mod client_ip;
pub mod compression;
pub mod cors;
mod document;
pub mod host;
pub mod hosted;
pub mod local;
pub mod mcp;
pub mod metrics;
mod middleware;
use middleware::head_as_get;
pub use middleware::{equalize_refusal_time, observe};
mod objects;
mod openapi;
mod pages;
mod problem;
mod query;
mod taxii;
pub mod tls;
mod viewer;
mod weight;
pub mod wire;

use std::sync::Arc;

use crate::actors::audit_writer::AuditHandle;
use crate::actors::backup_writer::BackupHandle;
use crate::actors::extractor::ExtractorHandle;
use crate::actors::graph_store::GraphHandle;
use crate::actors::identity::IdentityHandle;
use crate::actors::notifier::NotifierHandle;
use crate::actors::rate_limiter::RateLimiterHandle;
use crate::actors::roster::ActorList;
use crate::actors::staging::StagingHandle;
use crate::actors::taxii_puller::PullerHandle;
use crate::capacity::{Budget, DiskRoom};
use crate::config::Settings;
use crate::domain::demo::PublicDemo;
use crate::store::StoreHealth;

/// State shared by all handlers.
#[derive(Clone)]
pub struct AppState {
    pub settings: Arc<Settings>,
    pub graph: GraphHandle,
    pub extractor: ExtractorHandle,
    pub staging: StagingHandle,
    pub puller: PullerHandle,
    pub notifier: NotifierHandle,
    pub backup: BackupHandle,
    /// How busy the actors are.
    pub actors: ActorList,
    pub identity: IdentityHandle,
    pub audit: AuditHandle,
    pub limiter: RateLimiterHandle,
    pub storage: StoreHealth,
    /// The workspace that visitors without an account may search.
    pub demo: PublicDemo,
    /// Bytes of bodies in flight.
    pub bodies: Budget,
    /// The room that the disk must keep.
    pub disk: DiskRoom,
}
