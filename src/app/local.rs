//! The local service: the memory and its listeners.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use actix_web::middleware::{Compress, from_fn};
use actix_web::{App, web};
use metrics_exporter_prometheus::PrometheusHandle;
use secrecy::ExposeSecret;
use tokio::task::JoinHandle;

use super::listener::Listener;
use super::{AdminListener, Listeners, StartError, serve, tidy_metrics};
use crate::actors::roster::ActorList;
use crate::config::local::{EVERYWHERE, Editor, LocalSettings, WebSettings};
use crate::http::local::{self, LocalState};
use crate::http::mcp::InProcessApi;
use crate::http::{compression, observe};
use crate::local::{LocalCore, MemoryManager, Peer, PublishedAddress};
use crate::telemetry;

/// The local service with its HTTP API.
pub struct LocalApplication {
    core: LocalCore,
    listening: Listeners,
    metrics: JoinHandle<()>,
    drain: Duration,
    /// Where other programs of this user find the service; a memory in an external database may have it elsewhere.
    published: Option<PublishedAddress>,
}

impl LocalApplication {
    /// Starts the actors and the listeners.
    ///
    /// # Errors
    /// When the memory can't start, in words an operator can act on, or when an address can't be bound.
    pub async fn start(settings: LocalSettings, editor: Editor) -> Result<Self, StartError> {
        // Installed before the actors, which register their metrics when they start.
        let recorder = telemetry::init_metrics().map_err(StartError::Setup)?;
        let web = settings.web.clone();
        let dir = settings.data_dir();
        let core = LocalCore::start(settings, editor).await?;
        let metrics = tokio::spawn(tidy_metrics(recorder.clone()));
        let state = LocalState::new(MemoryManager::from_core(&core), &web.api_key);
        let listening = listen(&state, &web, core.actors.clone(), recorder).await?;
        let published = dir.map(|dir| PublishedAddress::publish(&dir, listening.address));
        let published = published.and_then(|published| {
            let told = |error: &_| tracing::warn!(%error, "the address is not told to other programs");
            published.inspect_err(told).ok()
        });
        Ok(Self {
            core,
            listening,
            metrics,
            drain: Duration::from_secs(web.drain_seconds),
            published,
        })
    }

    /// Address of the API.
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// Address of `/metrics`.
    pub fn admin_address(&self) -> SocketAddr {
        self.listening.admin_address
    }

    /// Ends the streams, lets requests in flight finish, and closes the store.
    pub async fn stop(self) {
        // Nobody is sent to a service that takes no more requests.
        drop(self.published);
        let cutting = self.core.end_streams();
        self.listening.stop(self.drain).await;
        cutting.abort();
        self.metrics.abort();
        self.core.stop(self.drain).await;
    }
}

/// Binds both listeners and starts serving.
async fn listen(
    state: &LocalState,
    web_settings: &WebSettings,
    actors: ActorList,
    recorder: PrometheusHandle,
) -> Result<Listeners, StartError> {
    let place = format!("web.host {} port {}", web_settings.host, web_settings.port);
    let failed = |error| StartError::Io(place.clone(), error);
    let address = match web_settings.host.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, web_settings.port),
        Err(_) => (web_settings.host.as_str(), web_settings.port)
            .to_socket_addrs()
            .map_err(failed)?
            .next()
            .ok_or_else(|| StartError::Setup(format!("{place}: no address")))?,
    };
    // A host name may also resolve to an unspecified address.
    if address.ip().to_canonical().is_unspecified() && web_settings.api_key.expose_secret().is_empty() {
        return Err(StartError::Setup(format!("web.host: {EVERYWHERE}")));
    }
    let data = web::Data::new(state.clone());
    let listener = Listener {
        address,
        tls: None,
        workers: web_settings.workers,
        drain_seconds: web_settings.drain_seconds,
        // Frees the slot of a disconnected stream client at once rather than at the next line.
        allows_half_closed: false,
        on_connect: |connection, data| {
            if let Ok(peer) = Peer::of(connection) {
                data.insert(peer);
            }
        },
        refusal: local::refusal,
    };
    let app = move || {
        let inner = data.clone();
        App::new()
            .app_data(data.clone())
            .data_factory(move || {
                let app = App::new().app_data(inner.clone());
                InProcessApi::start(app.configure(local::configure))
            })
            // The last one is the first to see a request.
            .wrap(from_fn(compression::mark_uncompressed))
            .wrap(Compress::default())
            .wrap(from_fn(compression::negotiate))
            .wrap(from_fn(observe))
            .configure(local::configure)
    };
    let (server, address) = listener.serve(app).map_err(failed)?;
    serve(
        server,
        address,
        AdminListener {
            section: "web",
            bind: web_settings.admin_bind,
            hosts: &web_settings.admin_hosts,
            actors,
        },
        recorder,
    )
    .await
}
