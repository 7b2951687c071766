//! The thread that runs the actors of a memory opened as a library.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::core::LocalCore;
use super::handles::LocalHandles;
use crate::capacity::{self, STACK_BYTES};
use crate::config::local::{Editor, LocalSettings};
use crate::lifecycle::StartError;

/// Time-out for closing.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);

/// The thread. When this is dropped, the actors stop and the thread ends.
pub(super) struct Host {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Host {
    /// Starts the actors on a separate thread.
    ///
    /// # Errors
    /// Those of [`LocalCore::start`], and when the operating system can't create a thread.
    pub(super) async fn start(
        settings: LocalSettings,
        editor: Editor,
    ) -> Result<(Self, LocalHandles), StartError> {
        let (ready, started) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("threat-memory".into())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                actix::System::with_tokio_rt(runtime).block_on(run(settings, editor, ready, stopped))
            })
            .map_err(|error| StartError::Setup(error.to_string()))?;
        let handles = started
            .await
            .map_err(|_| StartError::Setup("the memory's thread ended unexpectedly".into()))??;
        Ok((Self { stop, thread }, handles))
    }

    /// Stops the actors and waits for the thread to end.
    pub(super) async fn stop(self) {
        let Self { stop, thread } = self;
        drop(stop);
        tokio::task::spawn_blocking(|| thread.join()).await.ok();
    }
}

/// Runs the actors until `stopped` fires or its sender is dropped.
async fn run(
    settings: LocalSettings,
    editor: Editor,
    ready: oneshot::Sender<Result<LocalHandles, StartError>>,
    stopped: oneshot::Receiver<()>,
) {
    match LocalCore::start(settings, editor).await {
        Ok(core) => {
            // If the opener is gone, the memory is closed again.
            if ready.send(Ok(core.handles().clone())).is_ok() {
                stopped.await.ok();
            }
            core.stop(CLOSE_TIMEOUT).await;
        }
        Err(error) => {
            ready.send(Err(error)).ok();
        }
    }
}

fn runtime() -> Runtime {
    #[allow(clippy::expect_used)] // Without threads nothing can run, and there is nobody to report to.
    capacity::runtime()
        .build()
        .expect("the operating system gives no threads")
}
