//! The two services: each starts its actors, listens, and stops in order.
//!
//! `hosted` and `local` serve two APIs over one core. The listeners that both share are defined here.

pub mod backup;
pub mod check;
mod client;
mod demo_data;
pub mod hosted;
mod listener;
pub mod local;
mod part_file;
pub mod stdio;
pub mod transfer;

use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use futures_util::FutureExt;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::task::JoinHandle;

use crate::actors::roster::ActorList;
use crate::http::host::{KnownHosts, only_known_hosts};
use crate::http::metrics;
use crate::lifecycle;
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
    stopping: Arc<AtomicBool>,
    serving: JoinHandle<()>,
}

impl Listeners {
    /// Stops accepting and waits up to `deadline` for requests in flight.
    async fn stop(&self, deadline: Duration) {
        self.stopping.store(true, Ordering::Release);
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

/// Where a browser on this machine reaches a listener: one that is bound to every address is reached by loopback.
pub fn local_address(bound: SocketAddr) -> SocketAddr {
    let loopback = match bound.ip() {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let ip = Some(bound.ip()).filter(|ip| !ip.is_unspecified());
    SocketAddr::new(ip.unwrap_or(loopback), bound.port())
}

/// Where the metrics are served, as a section of the settings says.
struct AdminListener<'a> {
    section: &'static str,
    bind: SocketAddr,
    hosts: &'a [String],
    actors: ActorList,
}

/// Serves an API that is already bound, and the metrics beside it. Both listen when it returns.
async fn serve(
    server: Server,
    address: SocketAddr,
    admin: AdminListener<'_>,
    recorder: PrometheusHandle,
) -> Result<Listeners, StartError> {
    let AdminListener {
        section,
        bind,
        hosts,
        actors,
    } = admin;
    let (recorder, actors) = (web::Data::new(recorder), web::Data::new(actors));
    let known = KnownHosts::new(bind.ip(), hosts, &format!("{section}.admin_hosts"));
    let known = web::Data::new(known);
    let admin_server = HttpServer::new(move || {
        App::new()
            .app_data(recorder.clone())
            .app_data(actors.clone())
            .app_data(known.clone())
            .wrap(from_fn(only_known_hosts))
            .configure(metrics::configure)
    })
    .workers(1)
    .disable_signals()
    .bind(bind)
    .map_err(|error| StartError::Io(format!("{section}.admin_bind {bind}"), error))?;
    let admin_address = first(admin_server.addrs())?;
    let admin_server = admin_server.run();
    let handles = (server.handle(), admin_server.handle());
    let server = begin("the API", server).await?;
    let admin_server = begin("the metrics", admin_server).await?;
    let stopping = Arc::new(AtomicBool::new(false));
    let is_stopping = Arc::clone(&stopping);
    let serving = actix_web::rt::spawn(async move {
        tokio::join!(
            outlive("the API", server, &is_stopping),
            outlive("the metrics", admin_server, &is_stopping)
        );
    });
    Ok(Listeners {
        server: handles.0,
        admin_server: handles.1,
        address,
        admin_address,
        stopping,
        serving,
    })
}

/// Starts the threads of a listener, which the first poll of its future does.
async fn begin<S: Future<Output = io::Result<()>>>(name: &str, server: S) -> Result<Pin<Box<S>>, StartError> {
    let mut server = Box::pin(server);
    let first_poll = poll_fn(|context| Poll::Ready(server.as_mut().poll(context)));
    let polled = AssertUnwindSafe(first_poll).catch_unwind().await;
    let why = match polled {
        Ok(Poll::Pending) => return Ok(server),
        Ok(Poll::Ready(Ok(()))) => "it ended at once".to_owned(),
        Ok(Poll::Ready(Err(error))) => error.to_string(),
        Err(_) => "a thread of it could not be started; the log says why".to_owned(),
    };
    Err(StartError::Setup(format!(
        "the listener of {name} did not start: {why}"
    )))
}

/// Runs a listener, and ends the process when it ends before it was told to stop: a service that nobody reaches must not
/// look alive.
async fn outlive(name: &str, server: impl Future<Output = io::Result<()>>, is_stopping: &AtomicBool) {
    let why = match AssertUnwindSafe(server).catch_unwind().await {
        Ok(Ok(())) => "it stopped by itself".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "a thread of it died".to_owned(),
    };
    if !is_stopping.load(Ordering::Acquire) {
        lifecycle::give_up(&format!("the listener of {name} died: {why}"));
    }
}

fn first(addresses: Vec<SocketAddr>) -> Result<SocketAddr, StartError> {
    addresses
        .first()
        .copied()
        .ok_or_else(|| StartError::Setup("no address was bound".into()))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::process::Command;

    use super::*;

    /// Set only in the process that the test below starts, so that `--include-ignored` doesn't end all tests.
    const MAY_END: &str = "THREAT_MEMORY_TEST_MAY_END";

    fn end() -> impl Future<Output = io::Result<()>> {
        ready(Ok(()))
    }

    fn fail() -> impl Future<Output = io::Result<()>> {
        ready(Err(io::Error::other("no more files")))
    }

    fn die() -> impl Future<Output = io::Result<()>> {
        poll_fn(|_| -> Poll<io::Result<()>> { panic!("a worker can't be started") })
    }

    #[tokio::test]
    async fn a_listener_that_does_not_start_is_an_error_of_the_start() {
        assert!(begin("the API", pending()).await.is_ok());
        let failed = begin("the API", fail()).await.err().unwrap().to_string();
        assert!(
            failed.contains("the API") && failed.contains("no more files"),
            "{failed}"
        );
        assert!(begin("the API", die()).await.is_err());
        assert!(begin("the API", end()).await.is_err());
    }

    #[tokio::test]
    async fn a_listener_that_was_told_to_stop_ends_nothing() {
        outlive("the API", end(), &AtomicBool::new(true)).await;
        outlive("the API", fail(), &AtomicBool::new(true)).await;
        outlive("the API", die(), &AtomicBool::new(true)).await;
    }

    /// Run by the test below, in a process of its own.
    #[tokio::test]
    #[ignore = "ends the process"]
    async fn loses_its_listener() {
        match std::env::var(MAY_END).as_deref() {
            Ok("end") => outlive("the API", end(), &AtomicBool::new(false)).await,
            Ok("fail") => outlive("the API", fail(), &AtomicBool::new(false)).await,
            Ok("die") => outlive("the API", die(), &AtomicBool::new(false)).await,
            Ok(_) | Err(_) => {}
        }
    }

    #[test]
    fn a_process_whose_listener_ends_ends_with_an_error() {
        for how in ["end", "fail", "die"] {
            let ended = Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "app::tests::loses_its_listener",
                    "--ignored",
                    "--nocapture",
                ])
                .env(MAY_END, how)
                .output()
                .unwrap();
            assert_eq!(ended.status.code(), Some(lifecycle::EXIT_GAVE_UP), "{how}");
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(said.contains("the listener of the API died"), "{said}");
        }
    }
}
