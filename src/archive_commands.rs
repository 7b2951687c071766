//! The arguments of `backup`, `restore`, `check`, `export` and `import`.

use std::path::PathBuf;

use clap::Args;
use secrecy::{ExposeSecret, SecretString};
use threat_memory::app::backup::{BackUpTask, Credential, Memory, RestoreTask};
use threat_memory::app::transfer::TransferTask;
use threat_memory::config::local::{LocalFlags, LocalSettings};
use threat_memory::config::{ConfigError, Flags, Settings, secret_variable};

/// Fewest characters of a passphrase.
const PASSPHRASE: usize = 12;

/// Where a store is. Without any of them, where the hosted service has it by default.
#[derive(Args)]
pub struct StoreArgs {
    /// The TOML file that the service is started with.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The store of a hosted service [default: surrealkv://data/hosted].
    #[arg(long, value_name = "URL", conflicts_with = "data_dir")]
    storage: Option<String>,
    /// Directory of a local memory.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

#[derive(Args)]
pub struct BackupArgs {
    /// The file to write, or - for standard output.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A service that runs, local or hosted, such as https://memory.example.com.
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "storage", "data_dir"])]
    url: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
    /// Write only what has changed since this archive.
    #[arg(long, value_name = "FILE")]
    since: Option<PathBuf>,
    /// Include password hashes and API keys, encrypted by THREAT_MEMORY_BACKUP_PASSPHRASE.
    #[arg(long)]
    with_secrets: bool,
}

#[derive(Args)]
pub struct RestoreArgs {
    /// The archive, and its increments in their order.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
    /// Leave the secrets in the archive behind.
    #[arg(long)]
    without_secrets: bool,
}

#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Remove a search index that is not sound, so that the next start makes it anew.
    #[arg(long)]
    repair: bool,
}

#[derive(Args)]
pub struct TransferArgs {
    /// The bundle, or - for standard output or input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A hosted service, such as https://memory.example.com.
    #[arg(long, value_name = "URL")]
    url: String,
}

impl TransferArgs {
    /// What is to be exported from, or imported into.
    pub fn task(self) -> Result<TransferTask, ConfigError> {
        Ok(TransferTask {
            credential: hosted_credential()?,
            url: self.url,
            file: self.file,
        })
    }
}

impl CheckArgs {
    /// What is to be checked, and whether it is to be mended.
    pub fn task(self) -> Result<(Memory, bool), ConfigError> {
        Ok((self.store.memory()?, self.repair))
    }
}

impl StoreArgs {
    fn memory(self) -> Result<Memory, ConfigError> {
        let config = self.config.as_deref();
        if let Some(data_dir) = self.data_dir {
            let flags = LocalFlags {
                data_dir: Some(data_dir),
                ..LocalFlags::default()
            };
            let (settings, _) = LocalSettings::load(config, &flags)?;
            return Ok(Memory::Local(Box::new(settings)));
        }
        let flags = Flags {
            bind: None,
            storage: self.storage,
            accept_loss: false,
        };
        Ok(Memory::Hosted(Box::new(Settings::load(config, &flags)?)))
    }
}

impl BackupArgs {
    /// What is to be backed up.
    pub fn task(self) -> Result<BackUpTask, ConfigError> {
        let memory = match self.url {
            Some(url) => Memory::Service(url),
            None => self.store.memory()?,
        };
        let passphrase = match self.with_secrets {
            true => Some(long_passphrase()?),
            false => None,
        };
        let credential = credential(&memory)?;
        Ok(BackUpTask {
            memory,
            file: self.file,
            since: self.since,
            passphrase,
            credential,
        })
    }
}

impl RestoreArgs {
    /// What is to be restored.
    pub fn task(self) -> Result<RestoreTask, ConfigError> {
        Ok(RestoreTask {
            files: self.files,
            memory: self.store.memory()?,
            passphrase: passphrase()?,
            without_secrets: self.without_secrets,
        })
    }
}

fn passphrase() -> Result<Option<SecretString>, ConfigError> {
    secret_variable("THREAT_MEMORY_BACKUP_PASSPHRASE")
}

fn long_passphrase() -> Result<SecretString, ConfigError> {
    let found = passphrase()?.filter(|found| found.expose_secret().chars().count() >= PASSPHRASE);
    found.ok_or_else(|| {
        ConfigError::new(format!(
            "THREAT_MEMORY_BACKUP_PASSPHRASE: --with-secrets needs it, with at least {PASSPHRASE} characters"
        ))
    })
}

/// Who backs a service up. A local memory knows no accounts.
fn credential(memory: &Memory) -> Result<Option<Credential>, ConfigError> {
    if matches!(memory, Memory::Local(_)) {
        return Ok(secret_variable("LOCAL_WEB_API_KEY")?.map(Credential::Key));
    }
    service_credential()
}

/// Who speaks to a service that may be a hosted or a local one.
fn service_credential() -> Result<Option<Credential>, ConfigError> {
    match hosted_credential()? {
        None => Ok(secret_variable("LOCAL_WEB_API_KEY")?.map(Credential::Key)),
        found => Ok(found),
    }
}

/// Who speaks to a hosted service.
fn hosted_credential() -> Result<Option<Credential>, ConfigError> {
    let email = secret_variable("THREAT_MEMORY_ADMIN_EMAIL")?;
    let password = secret_variable("THREAT_MEMORY_ADMIN_PASSWORD")?;
    if let (Some(email), Some(password)) = (email, password) {
        let email = email.expose_secret().to_owned();
        return Ok(Some(Credential::Account { email, password }));
    }
    Ok(secret_variable("THREAT_MEMORY_API_KEY")?.map(Credential::Key))
}
