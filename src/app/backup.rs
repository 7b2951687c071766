//! The commands `backup`, `verify` and `restore`.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Weak;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

pub use super::client::Credential;
use super::client::ServiceClient;
use super::part_file::PartFile;
use crate::archive::{ArchiveError, ServiceKind, Since, SoundArchive, inspect, inspect_all};
use crate::clock;
use crate::config::Settings;
use crate::config::local::LocalSettings;
use crate::lifecycle::{StartError, forget_indexes, storage_memory, wait_until_closed};
use crate::local::{address_of, storage_owner};
use crate::store::{BackUp, RestoreError, StorageServer, StoreError, StoreTarget, restore};

/// Where the services write archives: the hosted one, and the local one.
const ROUTES: [&str; 2] = ["api/admin/backup", "api/backup"];

/// Where the memory is.
pub enum Memory {
    /// A service, local or hosted, by its URL.
    Service(String),
    /// The store of a hosted service that does not run.
    Hosted(Box<Settings>),
    /// A local memory, whether a service has it open or not.
    Local(Box<LocalSettings>),
}

/// What to back up, and to where.
pub struct BackUpTask {
    pub memory: Memory,
    /// `-` is standard output.
    pub file: PathBuf,
    /// The archive to go on from.
    pub since: Option<PathBuf>,
    /// Encrypts passwords and API keys, which are left out without one.
    pub passphrase: Option<SecretString>,
    /// For a service.
    pub credential: Option<Credential>,
}

/// What to restore, and into what.
pub struct RestoreTask {
    /// The archive that is no increment, then its increments in their order.
    pub files: Vec<PathBuf>,
    /// Where to: no service.
    pub memory: Memory,
    pub passphrase: Option<SecretString>,
    pub without_secrets: bool,
}

impl From<ArchiveError> for StartError {
    fn from(error: ArchiveError) -> Self {
        Self::Setup(error.to_string())
    }
}

impl From<RestoreError> for StartError {
    fn from(error: RestoreError) -> Self {
        Self::Setup(error.to_string())
    }
}

/// Backs a memory up; returns what was written, in lines.
///
/// # Errors
/// In words: the memory can't be reached or read, or the file can't be written. There is no file of this name then.
pub async fn back_up(task: BackUpTask) -> Result<String, StartError> {
    let base = task.since.as_deref().map(inspect).transpose()?;
    if task.file == Path::new("-") {
        write_archive(&task, base.as_ref(), Box::new(io::stdout())).await?;
        return Ok(String::new());
    }
    let part = PartFile::begin(&task.file)?;
    write_archive(&task, base.as_ref(), Box::new(part.writer()?)).await?;
    // What is said to be done can be restored.
    let written = inspect(&part.path)?;
    part.finish()?;
    Ok(lines(&task.file, &written))
}

/// Checks archives: the one that is no increment, then its increments. One alone may be an increment. Returns what they hold,
/// in lines.
///
/// # Errors
/// In words, with the file and what is wrong with it.
pub fn verify(files: &[PathBuf]) -> Result<String, StartError> {
    let inspected = match files {
        [one] => vec![inspect(one)?],
        several => inspect_all(several)?,
    };
    Ok(inspected.iter().map(|found| lines(&found.path, found)).collect())
}

/// Restores a memory; returns what was restored, in lines.
///
/// # Errors
/// In words: an archive is damaged or not the right one, or the store is not empty.
pub async fn restore_memory(task: RestoreTask) -> Result<String, StartError> {
    let target = target_of(&task.memory)?;
    let done = restore(task.files, &target, task.passphrase, task.without_secrets).await;
    wait_until_closed(&Weak::new(), target.dir(), None).await;
    let done = done?;
    let data_dir = target.dir().and_then(Path::parent);
    if data_dir.is_some_and(|data_dir| !forget_indexes(data_dir)) {
        return Err(StartError::Setup(
            "the store is restored, but the old search index beside it can't be removed: remove index/ and graph/".into(),
        ));
    }
    let mut text = String::new();
    let resumed = if done.resumed {
        ", after an interruption"
    } else {
        ""
    };
    let (rows, tables) = (done.manifest.rows(), done.manifest.tables.len());
    writeln!(text, "Restored {rows} rows of {tables} tables{resumed}.").ok();
    if !done.secrets && target.service == ServiceKind::Hosted {
        text.push_str(
            "Passwords and API keys were not restored. `threat-memory admin reset-password EMAIL` gives an account a new \
             password.\n",
        );
    }
    Ok(text)
}

/// What an archive holds, for people.
fn lines(path: &Path, found: &SoundArchive) -> String {
    let (header, manifest) = (&found.header, &found.manifest);
    let service = header.service.database();
    let at = header.made_at.format("%Y-%m-%d %H:%M:%S UTC");
    let kind = match header.archives.len() {
        1 => "whole".to_owned(),
        more => format!("increment, needs {} before it", more - 1),
    };
    let secrets = if manifest.secrets { "with" } else { "without" };
    let mut text = String::new();
    writeln!(text, "{}: sound", path.display()).ok();
    writeln!(text, "  archive    {} ({kind})", header.id).ok();
    writeln!(
        text,
        "  state of   {at}, {service} service, version {}",
        header.program
    )
    .ok();
    writeln!(
        text,
        "  holds      {} rows of {} tables, {secrets} secrets",
        manifest.rows(),
        manifest.tables.len()
    )
    .ok();
    for workspace in &manifest.workspaces {
        writeln!(
            text,
            "  workspace  {} up to write {}",
            workspace.name, workspace.number
        )
        .ok();
    }
    text
}

/// Writes the archive of a memory to `out`.
async fn write_archive(
    task: &BackUpTask,
    base: Option<&SoundArchive>,
    out: Box<dyn Write + Send>,
) -> Result<(), StartError> {
    let url = match &task.memory {
        Memory::Service(url) => Some(url.clone()),
        Memory::Hosted(_) => None,
        Memory::Local(settings) => {
            let running = settings.data_dir().as_deref().and_then(address_of);
            running.map(|address| format!("http://{}", super::local_address(address)))
        }
    };
    if let Some(url) = url {
        let client = ServiceClient::new(&url, task.credential.as_ref()).await?;
        let body = request_of(base, task.passphrase.as_ref());
        return client.download(&ROUTES, &body, out).await;
    }
    let target = target_of(&task.memory)?;
    let opened = target.snapshot().await;
    if let Err(StoreError::InUse(_)) = opened {
        return Err(StartError::Setup(format!(
            "a service has {} open; back it up through the service: threat-memory backup --url URL, with its \
             administrator's THREAT_MEMORY_ADMIN_EMAIL and THREAT_MEMORY_ADMIN_PASSWORD",
            target.url
        )));
    }
    let opened = opened?;
    let since = base.map(since_of).unwrap_or_default();
    let work = BackUp {
        service: target.service,
        made_at: clock::now(),
        since,
        passphrase: task.passphrase.clone(),
    };
    let (snapshot, open) = opened;
    let header = work.header(&snapshot);
    let written = work.write(snapshot, header, out).await;
    drop(open);
    wait_until_closed(&Weak::new(), target.dir(), None).await;
    written
        .map(drop)
        .map_err(|error| StartError::Setup(error.to_string()))
}

/// The body that asks a service for an archive.
fn request_of(base: Option<&SoundArchive>, passphrase: Option<&SecretString>) -> Value {
    let mut body = json!({});
    if let Some(passphrase) = passphrase {
        body["passphrase"] = passphrase.expose_secret().into();
    }
    if let Some(base) = base {
        let chunks = base
            .state
            .iter()
            .map(|line| format!("{}:{}", line.archive, line.digest));
        body["archives"] = json!(base.header.archives);
        body["chunks"] = chunks.collect();
    }
    body
}

/// What an increment on an archive goes on from.
fn since_of(base: &SoundArchive) -> Since {
    let chunks = base.state.iter().map(|line| (line.digest, line.archive));
    Since::new(base.header.archives.clone(), chunks)
}

/// The store that settings name.
pub(super) fn target_of(memory: &Memory) -> Result<StoreTarget, StartError> {
    let (url, memory, owner, storage, service) = match memory {
        Memory::Service(_) => {
            return Err(StartError::Setup(
                "a store is named by --storage or --data-dir".into(),
            ));
        }
        Memory::Hosted(settings) => (
            settings.engine_url(),
            storage_memory(&settings.storage, super::hosted::VALUE_LOG),
            settings
                .storage_user
                .clone()
                .zip(settings.storage_password.clone()),
            settings.storage.clone(),
            ServiceKind::Hosted,
        ),
        Memory::Local(settings) => (
            settings.engine_url(),
            storage_memory(&settings.storage(), crate::local::VALUE_LOG),
            storage_owner()?,
            settings.storage(),
            ServiceKind::Local,
        ),
    };
    let server = owner.map(|(username, password)| StorageServer {
        username,
        password,
        connections: 1,
        timeout: std::time::Duration::from_millis(storage.timeout_ms),
    });
    Ok(StoreTarget {
        url,
        memory,
        server,
        service,
    })
}
