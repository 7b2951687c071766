//! The two services: each starts its actors, listens, and stops in order.
//!
//! `hosted` and `local` serve two APIs over one core. The listeners that both share are defined here.

mod demo_data;
pub mod hosted;
pub mod local;

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer, web};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::task::JoinHandle;

use crate::http::metrics;
pub use crate::lifecycle::StartError;

const METRICS_INTERVAL: Duration = Duration::from_secs(5);

/// Folds recorded latencies into their buckets; without it they pile up until `/metrics` is read.
async fn tidy_metrics(recorder: PrometheusHandle) {
    let mut ticks = tokio::time::interval(METRICS_INTERVAL);
    loop {
        ticks.tick().await;
        recorder.run_upkeep();
    }
}

/// Two running listeners: the API and the metrics.
struct Listeners {
    server: ServerHandle,
    admin_server: ServerHandle,
    address: SocketAddr,
    admin_address: SocketAddr,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Listeners {
    /// Stops accepting and waits up to `deadline` for requests in flight.
    async fn stop(&self, deadline: Duration) {
        let stopping = async {
            self.server.stop(true).await;
            self.admin_server.stop(false).await;
        };
        if tokio::time::timeout(deadline, stopping).await.is_err() {
            tracing::warn!("requests were still under way at the deadline");
        }
        self.serving.abort();
    }
}

/// Serves an API that is already bound, and the metrics beside it.
fn serve(
    server: actix_web::dev::Server,
    address: SocketAddr,
    admin_bind: SocketAddr,
    recorder: PrometheusHandle,
    bind_key: &str,
) -> Result<Listeners, StartError> {
    let recorder = web::Data::new(recorder);
    let admin_server = HttpServer::new(move || {
        App::new()
            .app_data(recorder.clone())
            .configure(metrics::configure)
    })
    .workers(1)
    .disable_signals()
    .bind(admin_bind)
    .map_err(|error| StartError::Io(format!("{bind_key} {admin_bind}"), error))?;
    let admin_address = first(admin_server.addrs())?;
    let admin_server = admin_server.run();
    let handles = (server.handle(), admin_server.handle());
    let serving = actix_web::rt::spawn(async move {
        let (served, _) = tokio::join!(server, admin_server);
        served
    });
    Ok(Listeners {
        server: handles.0,
        admin_server: handles.1,
        address,
        admin_address,
        serving,
    })
}

fn first(addresses: Vec<SocketAddr>) -> Result<SocketAddr, StartError> {
    addresses
        .first()
        .copied()
        .ok_or_else(|| StartError::Setup("no address was bound".into()))
}
