//! Owns the settings of the local service: those in effect and those pending a restart.
//!
//! Changes are applied one at a time and atomically; new settings are published to all watchers. The state is kept
//! outside the actor, so that a restarted actor continues where its predecessor stopped.

use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use uuid::Uuid;

use super::audit_writer::{AppendStored, AuditHandle};
use super::job;
use super::worker::{Access, ActorCore, Work, WorkerHandle};
use crate::clock;
use crate::config::local::{ChangeOutcome, ConfigIssue, ConfigMeta, Editor, LocalSettings};
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::error::DomainError;

/// Handle to the settings.
pub type ConfigHandle = WorkerHandle<ConfigCore>;

/// Reads the settings in effect, with secrets hidden.
#[derive(Debug)]
pub struct ReadConfig;

impl Work for ReadConfig {
    type Core = ConfigCore;
    type Reply = Value;
    const NAME: &'static str = "read_config";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<ConfigCore>) -> Result<Self::Reply, DomainError> {
        Ok(core.editor.lock().redacted_settings())
    }
}

/// Reads the settings as the text of a configuration file: those in effect and those that wait, without secrets.
#[derive(Debug)]
pub struct ReadConfigFile;

impl Work for ReadConfigFile {
    type Core = ConfigCore;
    type Reply = String;
    const NAME: &'static str = "read_config_file";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<ConfigCore>) -> Result<Self::Reply, DomainError> {
        let editor = core.editor.lock().clone();
        Ok(editor.text())
    }
}

/// Reads what is known about the settings: types, bounds, explanations, what waits for a restart.
#[derive(Debug)]
pub struct ReadConfigMeta;

impl Work for ReadConfigMeta {
    type Core = ConfigCore;
    type Reply = ConfigMeta;
    const NAME: &'static str = "read_config_meta";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) {}

    async fn run(self, core: Arc<ConfigCore>) -> Result<Self::Reply, DomainError> {
        let editor = core.editor.lock().clone();
        Ok(editor.meta())
    }
}

/// Changes settings; the inner error lists everything that is wrong with the change.
#[derive(Debug)]
pub struct ChangeConfig {
    pub change: Value,
    pub from: IpAddr,
}

impl Work for ChangeConfig {
    type Core = ConfigCore;
    type Reply = Result<ChangeOutcome, Vec<ConfigIssue>>;
    const NAME: &'static str = "change_config";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) {}

    async fn run(self, core: Arc<ConfigCore>) -> Result<Self::Reply, DomainError> {
        // Held until the end, so that the last settings published are the ones in effect.
        let _turn = core.turn.lock().await;
        core.change(&self.change, self.from).await
    }
}

/// Takes back the change that waits at a dotted path; `None` if none does.
#[derive(Debug)]
pub struct WithdrawConfig {
    pub path: String,
    pub from: IpAddr,
}

impl Work for WithdrawConfig {
    type Core = ConfigCore;
    type Reply = Option<Result<ChangeOutcome, Vec<ConfigIssue>>>;
    const NAME: &'static str = "withdraw_config";
    const ACCESS: Access = Access::Write;

    fn tenant(&self) {}

    async fn run(self, core: Arc<ConfigCore>) -> Result<Self::Reply, DomainError> {
        let _turn = core.turn.lock().await;
        let Some(change) = core.editor.lock().withdrawal(&self.path) else {
            return Ok(None);
        };
        core.change(&change, self.from).await.map(Some)
    }
}

/// The settings and their watchers.
pub struct ConfigCore {
    /// Held only briefly, so that readers never wait for a change that is being written.
    editor: Mutex<Editor>,
    /// Held by the change in progress.
    turn: tokio::sync::Mutex<()>,
    published: watch::Sender<Arc<LocalSettings>>,
    /// Workspace whose audit log records the changes, and the handle to that log.
    audit: Option<(Uuid, AuditHandle)>,
}

impl ActorCore for ConfigCore {
    type Tenant = ();

    const NAME: &'static str = "config_owner";
}

impl ConfigCore {
    /// The receiver always shows the settings in effect. Changes are audited if `audit` is set.
    pub fn new(
        settings: LocalSettings,
        editor: Editor,
        audit: Option<(Uuid, AuditHandle)>,
    ) -> (Self, watch::Receiver<Arc<LocalSettings>>) {
        let (published, watching) = watch::channel(Arc::new(settings));
        let core = Self {
            editor: Mutex::new(editor),
            turn: tokio::sync::Mutex::default(),
            published,
            audit,
        };
        (core, watching)
    }

    /// Makes a change and publishes it. The caller holds `turn`.
    async fn change(
        &self,
        change: &Value,
        from: IpAddr,
    ) -> Result<Result<ChangeOutcome, Vec<ConfigIssue>>, DomainError> {
        let now = self.editor.lock().clone();
        let (next, settings, done) = match now.plan(change) {
            Ok(planned) => planned,
            Err(issues) => return Ok(Err(issues)),
        };
        let moved = !next.waits_as(&now);
        let next = save(next, moved).await?;
        // A change that turns auditing off is audited too; a change that can't be audited is undone.
        let governed = self.published.borrow().governance.enabled || settings.governance.enabled;
        if let Some((ws, audit)) = self.audit.as_ref().filter(|_| governed)
            && let Err(error) = audit.call(AppendStored(entry(*ws, from, &done))).await
        {
            save(now, moved).await?;
            return Err(error);
        }
        *self.editor.lock() = next;
        self.published.send_replace(Arc::new(settings));
        tracing::info!(applied = ?done.applied, pending = ?done.pending_restart, "settings changed");
        Ok(Ok(done))
    }
}

async fn save(editor: Editor, needed: bool) -> Result<Editor, DomainError> {
    if !needed {
        return Ok(editor);
    }
    job::blocking(move || {
        let what = "the change could not be written to the data directory";
        editor
            .save()
            .map_err(|error| DomainError::internal(what, error))?;
        Ok(editor)
    })
    .await
}

/// Records which keys were changed, never their values.
fn entry(ws: Uuid, from: IpAddr, done: &ChangeOutcome) -> AuditEntry {
    AuditEntry::anonymous(
        ws,
        from,
        "config.change",
        "config",
        Outcome::Success,
        clock::now(),
    )
    .with("applied", done.applied.clone())
    .with("pending_restart", done.pending_restart.clone())
}

#[cfg(test)]
mod tests {

    use futures_util::future::join_all;
    use serde_json::json;
    use test_support::until;

    use super::*;
    use crate::actors::handle::{Job, Request, Restartable};
    use crate::actors::roster::Roster;
    use crate::actors::worker::Worker;
    use crate::config::local::LocalFlags;

    /// Makes the actor die as a panic in a handler would.
    struct Die;

    impl Request for Die {
        type Reply = ();
        const NAME: &'static str = "die";
        const ACCESS: Access = Access::Read;

        fn tenant(&self) -> crate::capacity::Tenant {
            None
        }
    }

    impl actix::Handler<Job<Die>> for Worker<ConfigCore> {
        type Result = Result<(), DomainError>;

        fn handle(&mut self, _: Job<Die>, _: &mut Self::Context) -> Self::Result {
            panic!("told to die")
        }
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = || {
            tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()
                .unwrap()
        };
        actix::System::with_tokio_rt(runtime).block_on(work)
    }

    fn change_to(change: Value) -> ChangeConfig {
        let from = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
        ChangeConfig { change, from }
    }

    fn start(dir: &std::path::Path) -> (ConfigHandle, watch::Receiver<Arc<LocalSettings>>) {
        let flags = LocalFlags {
            data_dir: Some(dir.to_owned()),
            ..LocalFlags::default()
        };
        let (settings, editor) = LocalSettings::load(None, &flags).unwrap();
        let limits = settings.actors.clone();
        let (core, watching) = ConfigCore::new(settings, editor, None);
        let handle = Roster::new(move |name| limits.of(name)).worker(&Arc::new(core));
        (handle, watching)
    }

    #[test]
    fn a_change_is_published_and_survives_the_actor_but_not_the_process() {
        let dir = tempfile::tempdir().unwrap();
        run(async {
            let (handle, mut watching) = start(dir.path());
            let change = json!({"retrieval.default_k": 7, "llm": {"model": "m"}});
            let done = handle.call(change_to(change)).await.unwrap().unwrap();
            assert_eq!((done.applied.len(), done.pending_restart.len()), (1, 1));
            assert!(watching.has_changed().unwrap());
            let seen = Arc::clone(&watching.borrow_and_update());
            assert_eq!((seen.retrieval.default_k, seen.llm.model.as_str()), (7, ""));

            assert!(handle.call(Die).await.is_err());
            until(|| handle.revive()).await;
            assert_eq!(
                handle.call(ReadConfig).await.unwrap()["retrieval"]["default_k"],
                7
            );
            handle
                .call(change_to(json!({"web.max_k": 40})))
                .await
                .unwrap()
                .unwrap();
            let seen = Arc::clone(&watching.borrow_and_update());
            assert_eq!((seen.retrieval.default_k, seen.web.max_k), (7, 40));
        });
        run(async {
            let (handle, watching) = start(dir.path());
            let shown = handle.call(ReadConfig).await.unwrap();
            assert_eq!(shown["retrieval"]["default_k"], 10, "live values live in memory");
            assert_eq!(shown["llm"]["model"], "m", "what waited is in effect");
            assert_eq!(watching.borrow().llm.model, "m");
        });
    }

    #[test]
    fn a_refused_change_publishes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        run(async {
            let (handle, watching) = start(dir.path());
            let change = json!({"retrieval.default_k": 7, "web.max_k": 0});
            let issues = handle.call(change_to(change)).await.unwrap().unwrap_err();
            assert_eq!(issues[0].loc, ["body", "web", "max_k"]);
            assert!(!watching.has_changed().unwrap());
            let fields = handle.call(ReadConfigMeta).await.unwrap().restart_required_fields;
            assert!(fields.contains(&"llm.provider".to_owned()) && fields.is_sorted());
        });
    }

    #[test]
    fn what_waits_can_be_taken_back_even_a_secret() {
        let dir = tempfile::tempdir().unwrap();
        let withdraw = |path: &str| WithdrawConfig {
            path: path.to_owned(),
            from: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        };
        run(async {
            let (handle, watching) = start(dir.path());
            let change = json!({"llm.api_key": "k-e-y", "llm.model": "m", "llm.provider": "openai"});
            handle.call(change_to(change)).await.unwrap().unwrap();
            let issues = handle.call(withdraw("llm.model")).await.unwrap().unwrap();
            assert_eq!(
                issues.unwrap_err()[0].loc,
                ["body", "llm", "model"],
                "the provider needs it"
            );
            let done = handle
                .call(withdraw("llm.api_key"))
                .await
                .unwrap()
                .unwrap()
                .unwrap();
            assert_eq!(done.applied, ["llm.api_key"]);
            for path in ["llm.api_key", "retrieval.default_k", "nope", ""] {
                assert_eq!(handle.call(withdraw(path)).await.unwrap(), None, "{path}");
            }
            assert_eq!(watching.borrow().llm.model, "");
        });
        run(async {
            let (handle, _watching) = start(dir.path());
            let shown = handle.call(ReadConfig).await.unwrap();
            assert_eq!(
                (&shown["llm"]["api_key"], &shown["llm"]["model"]),
                (&json!(""), &json!("m"))
            );
        });
    }

    #[test]
    fn changes_at_the_same_time_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let keys = [
            "graph_store",
            "audit_writer",
            "rate_limiter",
            "extractor",
            "write_semaphore",
            "enricher",
        ];
        run(async {
            let (handle, watching) = start(dir.path());
            let changes = keys.iter().enumerate().map(|(n, key)| {
                let live = ["max_k", "max_streams", "max_sync_limit"][n % 3];
                let body = json!({format!("actors.{key}.mailbox"): 77, format!("web.{live}"): 55});
                handle.call(change_to(body))
            });
            for outcome in join_all(changes).await {
                assert_eq!(outcome.unwrap().unwrap().pending_restart.len(), 1);
            }
            let web = watching.borrow().web.clone();
            assert_eq!((web.max_k, web.max_streams, web.max_sync_limit), (55, 55, 55));
        });
        run(async {
            let (handle, _watching) = start(dir.path());
            let shown = handle.call(ReadConfig).await.unwrap();
            for key in keys {
                assert_eq!(shown["actors"][key]["mailbox"], 77, "{key}");
            }
        });
    }
}
