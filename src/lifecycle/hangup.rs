//! What a service reads again on SIGHUP.

use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

type Read = dyn Fn() -> Result<(), String> + Send + Sync;

/// Something that is read again: what it is called in the log, and what reads it. What was in force stays where that fails.
#[derive(Clone)]
pub(crate) struct Reload {
    name: &'static str,
    read: Arc<Read>,
}

impl Reload {
    pub fn new(name: &'static str, read: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        let read = Arc::new(read);
        Self { name, read }
    }
}

/// Listens to SIGHUP, which from now on does not end the process.
pub(crate) fn watch() -> Option<Signal> {
    let warn =
        |error: &_| tracing::warn!(%error, "SIGHUP can't be listened to; files are read at the start only");
    signal(SignalKind::hangup()).inspect_err(warn).ok()
}

/// Reads everything again whenever the process gets SIGHUP, and once if it got one before.
pub(crate) async fn reload_on_hangup(hangups: Option<Signal>, all: Vec<Reload>) {
    let Some(mut hangup) = hangups else { return };
    while hangup.recv().await.is_some() {
        for Reload { name, read } in all.clone() {
            let done = crate::blocking::spawn(move || read()).await;
            match done.map_err(|error| error.to_string()).flatten() {
                Ok(()) => tracing::info!(what = name, "read again"),
                Err(error) => tracing::error!(what = name, error, "not read again; what is in force stays"),
            }
        }
    }
}
