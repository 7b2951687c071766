//! Owns the settings of the local service: what is in effect, and what waits for a restart.
//!
//! One change at a time, all of it or nothing; what takes effect is published to everybody who watches. The state is
//! kept beside the actor, so that one that is started again goes on where it was.

use std::sync::{Arc, Mutex, PoisonError};

use actix::{Actor, Context};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::handle::{Access, ActorHandle, Request};
use super::job;
use crate::config::ActorSettings;
use crate::config::local::{Applied, ConfigIssue, Editor, LocalSettings};
use crate::domain::error::DomainError;

/// Way to the settings.
pub type ConfigHandle = ActorHandle<ConfigOwner>;

/// Reads what is in effect, secrets hidden.
#[derive(Debug)]
pub struct ReadConfig;

impl Request for ReadConfig {
    type Reply = Value;
    const NAME: &'static str = "read_config";
    const ACCESS: Access = Access::Read;
}

/// Lists the dotted paths that take effect at the next start only.
#[derive(Debug)]
pub struct ReadConfigMeta;

impl Request for ReadConfigMeta {
    type Reply = Vec<String>;
    const NAME: &'static str = "read_config_meta";
    const ACCESS: Access = Access::Read;
}

/// Changes settings; the inner error says everything that is wrong with the change.
#[derive(Debug)]
pub struct ChangeConfig(pub Value);

impl Request for ChangeConfig {
    type Reply = Result<Applied, Vec<ConfigIssue>>;
    const NAME: &'static str = "change_config";
    const ACCESS: Access = Access::Write;
}

/// The settings and who is told of them.
pub struct ConfigCore {
    editor: Mutex<Editor>,
    published: watch::Sender<Arc<LocalSettings>>,
}

/// The actor.
pub struct ConfigOwner {
    core: Arc<ConfigCore>,
    runtime: Handle,
}

impl ConfigOwner {
    /// Starts the actor; the receiver always shows what is in effect.
    pub fn start(
        settings: LocalSettings,
        editor: Editor,
        runtime: Handle,
    ) -> (ConfigHandle, watch::Receiver<Arc<LocalSettings>>) {
        let limits: ActorSettings = settings.actors.config_owner;
        let (published, watching) = watch::channel(Arc::new(settings));
        let core = Arc::new(ConfigCore {
            editor: Mutex::new(editor),
            published,
        });
        let arbiter = actix::Arbiter::current();
        let handle = ActorHandle::start(
            "config_owner",
            limits,
            Box::new(move || {
                let (core, runtime) = (Arc::clone(&core), runtime.clone());
                Self::start_in_arbiter(&arbiter, move |ctx| {
                    ctx.set_mailbox_capacity(limits.mailbox.max(1));
                    Self { core, runtime }
                })
            }),
        );
        (handle, watching)
    }
}

impl Actor for ConfigOwner {
    type Context = Context<Self>;
}

impl ConfigCore {
    fn editor(&self) -> std::sync::MutexGuard<'_, Editor> {
        self.editor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[allow(clippy::unused_async)] // The shape of every request's work.
    async fn read(&self, _: ReadConfig) -> Result<Value, DomainError> {
        Ok(self.editor().shown())
    }

    #[allow(clippy::unused_async)]
    async fn meta(&self, _: ReadConfigMeta) -> Result<Vec<String>, DomainError> {
        Ok(self.editor().restart_required())
    }

    async fn change(
        self: Arc<Self>,
        message: ChangeConfig,
    ) -> Result<Result<Applied, Vec<ConfigIssue>>, DomainError> {
        // It may write a file.
        job::blocking(move || {
            let mut editor = self.editor();
            Ok(editor.change(&message.0).map(|(settings, applied)| {
                // Under the lock, so that what is published last is what is in effect.
                self.published.send_replace(Arc::new(settings));
                tracing::info!(applied = ?applied.applied, pending = ?applied.pending_restart, "settings changed");
                applied
            }))
        })
        .await
    }
}

job::delegate! {
    ConfigOwner:
    ReadConfig => read,
    ReadConfigMeta => meta,
    ChangeConfig => change,
}
