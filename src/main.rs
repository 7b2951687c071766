//! The command line: parses arguments, starts the runtime, runs one command.

mod archive_commands;
mod resident;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use archive_commands::{BackupArgs, CheckArgs, RestoreArgs, TransferArgs};
use clap::{Args, CommandFactory, Parser, Subcommand};
use secrecy::SecretString;
use threat_memory::app::check::{self, CheckSummary};
use threat_memory::app::hosted::{self, Account, AccountTask, Application};
use threat_memory::app::local::LocalApplication;
use threat_memory::app::stdio::{self, Directory, Place};
use threat_memory::app::{StartError, backup, local_address, transfer};
use threat_memory::config::local::{Editor, LocalFlags, LocalSettings};
use threat_memory::config::{ConfigError, Flags, LogSettings, Settings, secret_variable};
use threat_memory::lifecycle::{self, check_open_files};
use threat_memory::telemetry::LogGuard;
use threat_memory::{capacity, demo, telemetry};
use tokio::signal::unix::{SignalKind, signal};

/// Requested limit of open files; the system may allow fewer.
const MAX_OPEN_FILES: u64 = 1 << 16;
/// Exit code for unusable configuration.
const BAD_CONFIGURATION: u8 = 2;

/// A memory for cyber threat intelligence: STIX in, blended recall, validated STIX out.
#[derive(Parser)]
#[command(name = "threat-memory", version, about, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  threat-memory demo                                see the main job in one go; nothing is left behind
  threat-memory hosted                              serve on 127.0.0.1:8080, keep everything in data/hosted
  threat-memory hosted --config config/hosted.toml  with settings of your own (the file explains each)
  threat-memory local                               a memory for yourself on 127.0.0.1:8088, kept in data/local

Secrets come from the environment: THREAT_MEMORY_ADMIN_EMAIL, THREAT_MEMORY_ADMIN_PASSWORD (first start),
THREAT_MEMORY_JWT_SECRET, THREAT_MEMORY_STORAGE_USER, THREAT_MEMORY_STORAGE_PASSWORD,
THREAT_MEMORY_EMBEDDING_API_KEY, THREAT_MEMORY_LLM_API_KEY; for the local service LOCAL_WEB_API_KEY,
LOCAL_LLM_API_KEY, LOCAL_EMBEDDING_API_KEY. The same names with _FILE name files that hold them.";

#[derive(Subcommand)]
enum Command {
    /// Run the main job end to end in memory: ingest a STIX bundle, search it, export it, validate it.
    Demo {
        /// A STIX 2.1 bundle of your own in place of the one that ships with the program.
        #[arg(long, value_name = "FILE")]
        bundle: Option<PathBuf>,
    },
    /// Serve the hosted, multi-tenant API.
    Hosted {
        /// A TOML file with the settings to change; see config/hosted.toml for all of them.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Address and port of the API [default: 127.0.0.1:8080].
        #[arg(long, value_name = "ADDR:PORT")]
        bind: Option<String>,
        /// surrealkv://DIRECTORY, mem://, ws://HOST:PORT or wss://HOST:PORT [default: surrealkv://data/hosted].
        #[arg(long, value_name = "URL")]
        storage: Option<String>,
        /// Start although the store has lost writes that were acknowledged. Without a loss it has no effect.
        #[arg(long)]
        accept_loss: bool,
    },
    /// Serve the local, self-hosted memory API.
    Local {
        /// A TOML file with the settings to change; see config/local.toml for all of them.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Address to listen on; 0.0.0.0 and :: need LOCAL_WEB_API_KEY [default: 127.0.0.1].
        #[arg(long, value_name = "HOST")]
        host: Option<String>,
        /// Port to listen on [default: 8088].
        #[arg(long, value_name = "PORT")]
        port: Option<u16>,
        /// Directory for everything on disk [default: data/local].
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
        /// Start although the store has lost writes that were acknowledged. Without a loss it has no effect.
        #[arg(long)]
        accept_loss: bool,
    },
    /// Do something with an account of the hosted service on this machine, while the service rests.
    Admin {
        #[command(subcommand)]
        task: AdminCommand,
    },
    /// Write everything in a memory into one file, while its service goes on.
    Backup(BackupArgs),
    /// Check an archive: a whole one, or it and its increments in their order.
    Verify {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Restore an archive into an empty store.
    Restore(RestoreArgs),
    /// Write the STIX objects of your workspace that may leave it into a bundle.
    Export(TransferArgs),
    /// Ingest a STIX bundle of any size into your workspace.
    Import(TransferArgs),
    /// Check a store whose service rests: every row, what rows refer to, the audit log, the search index, the disk.
    Check(CheckArgs),
    /// Write the completions of a shell to standard output.
    Completions { shell: clap_complete::Shell },
    /// Write a manual page for each command into a directory.
    Man {
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Serve a memory to an agent on standard input and output (Model Context Protocol).
    Mcp {
        /// A TOML file with the settings of the local memory; see config/local.toml for all of them.
        #[arg(long, value_name = "FILE", conflicts_with = "url")]
        config: Option<PathBuf>,
        /// Directory of the local memory [default: data/local]. Where a service has it open, that service answers.
        #[arg(long, value_name = "DIR", conflicts_with = "url")]
        data_dir: Option<PathBuf>,
        /// A service elsewhere, local or hosted, such as https://memory.example.com.
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
}

#[derive(Subcommand)]
enum AdminCommand {
    /// Give an account another password: THREAT_MEMORY_NEW_PASSWORD, or one that is made and shown.
    ResetPassword(AdminArgs),
    /// Add an administrator, to the operator's workspace if none is named.
    CreateAdmin(AdminArgs),
}

#[derive(Args)]
struct AdminArgs {
    /// E-mail address of the account.
    email: String,
    /// Name or id of the workspace, where the address has accounts in several.
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
    /// The TOML file that the service is started with.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// As of the service [default: surrealkv://data/hosted].
    #[arg(long, value_name = "URL")]
    storage: Option<String>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    resident::tune();
    // Threads inherit it, so before any other is started. The notes of the local service gain nothing by it.
    if matches!(cli.command, Command::Hosted { .. }) {
        capacity::shorten_slice();
    }
    // A stream takes two file descriptors, and the usual limit of 1,024 is soon reached.
    if let Err(error) = rlimit::increase_nofile_limit(MAX_OPEN_FILES) {
        eprintln!("the limit of open files could not be raised: {error}");
    }
    // The runtime and the log need some, and would fail for reasons of their own.
    if let Err(error) = check_open_files() {
        return fail(&error);
    }
    let runtime = match capacity::runtime().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&StartError::Io("the threads of the runtime".into(), error)),
    };
    let system = actix::System::with_tokio_rt(|| runtime);
    match cli.command {
        Command::Demo { bundle } => system.block_on(demo::run(bundle.as_deref())),
        Command::Hosted {
            config,
            bind,
            storage,
            accept_loss,
        } => {
            let flags = Flags {
                bind,
                storage,
                accept_loss,
            };
            match Settings::load(config.as_deref(), &flags) {
                Ok(settings) => system.block_on(run_hosted(settings)),
                Err(error) => refuse(&error),
            }
        }
        Command::Local {
            config,
            host,
            port,
            data_dir,
            accept_loss,
        } => {
            let flags = LocalFlags {
                host,
                port,
                data_dir,
                backend: None,
                accept_loss,
            };
            match LocalSettings::load(config.as_deref(), &flags) {
                Ok((settings, editor)) => system.block_on(run_local(settings, editor)),
                Err(error) => refuse(&error),
            }
        }
        Command::Admin { task } => match admin_task(task) {
            Ok((settings, task, account)) => system.block_on(run_admin(&settings, task, account)),
            Err(error) => refuse(&error),
        },
        Command::Completions { shell } => {
            clap_complete::generate(
                shell,
                &mut Cli::command(),
                "threat-memory",
                &mut std::io::stdout(),
            );
            ExitCode::SUCCESS
        }
        Command::Man { dir } => match clap_mangen::generate_to(Cli::command(), &dir) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&StartError::Io(dir.display().to_string(), error)),
        },
        Command::Backup(args) => match args.task() {
            Ok(task) => show(system.block_on(backup::back_up(task))),
            Err(error) => refuse(&error),
        },
        Command::Export(args) => match args.task() {
            Ok(task) => show(system.block_on(transfer::export(task))),
            Err(error) => refuse(&error),
        },
        Command::Import(args) => match args.task() {
            Ok(task) => show(system.block_on(transfer::import(task))),
            Err(error) => refuse(&error),
        },
        Command::Check(args) => match args.task() {
            Ok((memory, repair)) => show_check(system.block_on(check::check(&memory, repair))),
            Err(error) => refuse(&error),
        },
        Command::Verify { files } => show(backup::verify(&files)),
        Command::Restore(args) => match args.task() {
            Ok(task) => show(system.block_on(backup::restore_memory(task))),
            Err(error) => refuse(&error),
        },
        Command::Mcp {
            config,
            data_dir,
            url,
        } => {
            let key = agent_key();
            match key.and_then(|key| Ok((place_of(config, data_dir, url)?, key))) {
                Ok((place, key)) => system.block_on(run_mcp(place, key)),
                Err(error) => refuse(&error),
            }
        }
    }
}

/// What is to be done with which account, and where.
fn admin_task(command: AdminCommand) -> Result<(Settings, AccountTask, Account), ConfigError> {
    let (task, args) = match command {
        AdminCommand::ResetPassword(args) => (AccountTask::ResetPassword, args),
        AdminCommand::CreateAdmin(args) => (AccountTask::CreateAdmin, args),
    };
    let flags = Flags {
        bind: None,
        storage: args.storage,
        accept_loss: false,
    };
    let settings = Settings::load(args.config.as_deref(), &flags)?;
    let account = Account {
        email: args.email,
        workspace: args.workspace,
        password: secret_variable("THREAT_MEMORY_NEW_PASSWORD")?,
    };
    Ok((settings, task, account))
}

async fn run_admin(settings: &Settings, task: AccountTask, account: Account) -> ExitCode {
    match hosted::recover(settings, task, account).await {
        Ok(done) => {
            print!("{}", done.lines());
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}

/// Where the memory of an agent is.
fn place_of(
    config: Option<PathBuf>,
    data_dir: Option<PathBuf>,
    url: Option<String>,
) -> Result<Place, ConfigError> {
    match url {
        Some(url) => Ok(Place::Url(url)),
        None => Ok(Place::Directory(Box::new(Directory::read(config, data_dir)?))),
    }
}

/// The key for the service that answers an agent.
fn agent_key() -> Result<Option<SecretString>, ConfigError> {
    match secret_variable("THREAT_MEMORY_API_KEY")? {
        None => secret_variable("LOCAL_WEB_API_KEY"),
        key => Ok(key),
    }
}

async fn run_mcp(place: Place, key: Option<SecretString>) -> ExitCode {
    match stdio::serve(place, key).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Shows what was done.
fn show(done: Result<String, StartError>) -> ExitCode {
    match done {
        Ok(lines) => {
            print!("{lines}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("threat-memory: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Shows what a check found; it fails if something is wrong.
fn show_check(checked: Result<CheckSummary, StartError>) -> ExitCode {
    match checked {
        Ok(checked) => {
            print!("{}", checked.text);
            match checked.is_sound {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        Err(error) => show(Err(error)),
    }
}

fn refuse(error: &ConfigError) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(BAD_CONFIGURATION)
}

fn fail(error: &StartError) -> ExitCode {
    match error {
        StartError::Configuration(_) => {
            eprintln!("{error}");
            ExitCode::from(BAD_CONFIGURATION)
        }
        StartError::Store(_) | StartError::Io(..) | StartError::Setup(_) => {
            eprintln!("threat-memory could not start: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Sets up logging in the directory that the key names, then starts the service; returns an exit code if either fails.
/// The future waits for the signal to stop. The logs are flushed when the guard is dropped.
async fn start_service<T>(
    log: &LogSettings,
    (key, data_dir): (&str, Option<&Path>),
    start: impl Future<Output = Result<T, StartError>>,
) -> Result<(T, impl Future<Output = ()>, LogGuard), ExitCode> {
    lifecycle::check_owner(data_dir).map_err(|error| fail(&error))?;
    let guard = telemetry::init_logs(log, key, data_dir).map_err(|error| {
        eprintln!("configuration: {error}");
        ExitCode::from(BAD_CONFIGURATION)
    })?;
    telemetry::log_panics();
    let app = start.await.map_err(|error| fail(&error))?;
    let stop =
        stop_signal().map_err(|error| fail(&StartError::Io("signals can't be watched".into(), error)))?;
    resident::give_back();
    Ok((app, stop, guard))
}

async fn run_hosted(settings: Settings) -> ExitCode {
    let (log, dir) = (settings.log.clone(), settings.data_dir());
    let start = Application::start(settings);
    let (app, stop, _flush) = match start_service(&log, ("storage", dir.as_deref()), start).await {
        Ok(started) => started,
        Err(code) => return code,
    };
    demo::announce(&app);
    wait_for(stop).await;
    tracing::info!("stopping");
    app.stop().await;
    ExitCode::SUCCESS
}

async fn run_local(settings: LocalSettings, editor: Editor) -> ExitCode {
    let (log, dir) = (settings.logging.clone(), settings.data_dir());
    let start = LocalApplication::start(settings, editor);
    let (app, stop, _flush) = match start_service(&log, ("storage.data_dir", dir.as_deref()), start).await {
        Ok(started) => started,
        Err(code) => return code,
    };
    let (api, metrics) = (app.address(), app.admin_address());
    eprintln!("Page on http://{}/", local_address(api));
    eprintln!("API on http://{api}, metrics on http://{metrics}/metrics");
    wait_for(stop).await;
    tracing::info!("stopping");
    app.stop().await;
    ExitCode::SUCCESS
}

/// Waits for the signal to stop, and gives memory back meanwhile.
async fn wait_for(stop: impl Future<Output = ()>) {
    tokio::select! {
        () = stop => {}
        () = resident::give_back_at_rest() => {}
    }
}

/// SIGTERM or Ctrl-C. They are watched from this call on, not from the first poll of the future: a signal that comes
/// right after the service has told its address must not kill it.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
