//! The command line: parses arguments, starts the runtime, runs one command.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use threat_memory::app::StartError;
use threat_memory::app::hosted::Application;
use threat_memory::app::local::LocalApplication;
use threat_memory::config::local::{Editor, LocalFlags, LocalSettings};
use threat_memory::config::{ConfigError, Flags, LogSettings, Settings};
use threat_memory::telemetry::LogGuard;
use threat_memory::{capacity, demo, telemetry};

/// mimalloc returns memory to the system after a large ingest; the default allocator does not.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type AllocatorOption = (libmimalloc_sys::mi_option_t, std::ffi::c_long);

/// How the allocator treats freed memory: options of `mimalloc.h`, most of which the bindings don't name.
const ALLOCATOR_OPTIONS: &[AllocatorOption] = &[
    // purge_delay: return memory to the system after 50 ms; the default of one second keeps a third more.
    (15, 50),
    // page_reclaim_on_free: reuse memory freed by another thread at once.
    (35, 1),
    // page_full_retain: keep no full pages in reserve.
    (36, 0),
];

/// Set once a local service has started. arena_purge_mult: purge whole pages immediately. The default, ten times the
/// delay, keeps a tenth more of all memory but makes the start faster.
const ONCE_STARTED: &[AllocatorOption] = &[(24, 0)];

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
LOCAL_LLM_API_KEY, LOCAL_EMBEDDING_API_KEY.";

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
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    tell_allocator(ALLOCATOR_OPTIONS);
    // Threads inherit it, so before any other is started. The notes of the local service gain nothing by it.
    if matches!(cli.command, Command::Hosted { .. }) {
        capacity::shorten_slice();
    }
    // A stream takes two file descriptors, and the usual limit of 1,024 is soon reached.
    if let Err(error) = rlimit::increase_nofile_limit(MAX_OPEN_FILES) {
        eprintln!("the limit of open files could not be raised: {error}");
    }
    let system = actix::System::with_tokio_rt(|| {
        #[allow(clippy::expect_used)] // Without threads nothing can run, and there is nobody to report to.
        capacity::runtime()
            .build()
            .expect("the operating system gives no threads")
    });
    match cli.command {
        Command::Demo { bundle } => system.block_on(demo::run(bundle.as_deref())),
        Command::Hosted {
            config,
            bind,
            storage,
        } => {
            let flags = Flags { bind, storage };
            match Settings::load(config.as_deref(), &flags) {
                Ok(settings) => system.block_on(hosted(settings)),
                Err(error) => refuse(&error),
            }
        }
        Command::Local {
            config,
            host,
            port,
            data_dir,
        } => {
            let flags = LocalFlags {
                host,
                port,
                data_dir,
                backend: None,
            };
            match LocalSettings::load(config.as_deref(), &flags) {
                Ok((settings, editor)) => system.block_on(local(settings, editor)),
                Err(error) => refuse(&error),
            }
        }
    }
}

fn tell_allocator(options: &[AllocatorOption]) {
    for (option, value) in options {
        // SAFETY: the options exist in the linked version, and setting one is allowed at any time.
        #[allow(unsafe_code)]
        unsafe {
            libmimalloc_sys::mi_option_set(*option, *value);
        }
    }
}

/// Returns memory that only the start needed; the allocator itself would wait for further activity.
fn give_memory_back() {
    // SAFETY: allowed at any time and on any thread.
    #[allow(unsafe_code)]
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
    // SAFETY: the callback takes what dl_iterate_phdr(3) passes, and no data.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[allow(unsafe_code)]
    unsafe {
        libc::dl_iterate_phdr(Some(unmap_constant_pages), std::ptr::null_mut());
    }
}

/// Unmaps code and constants of the first object reported, which is the program. For every page used the kernel maps
/// 64 KiB, so after the start most of the program is resident. What is used later is mapped again from the page cache.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[allow(unsafe_code)]
unsafe extern "C" fn unmap_constant_pages(
    object: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _data: *mut libc::c_void,
) -> libc::c_int {
    const STOP: libc::c_int = 1;
    // SAFETY: the dynamic linker passes a valid object with as many headers as it says.
    let (base, headers, page) = unsafe {
        let object = &*object;
        let headers = std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into());
        (
            object.dlpi_addr,
            headers,
            libc::sysconf(libc::_SC_PAGESIZE) as u64,
        )
    };
    for header in headers {
        // Relocations write to writable segments only, even to those that are protected afterwards.
        if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0 {
            let start = (base + header.p_vaddr).next_multiple_of(page);
            let end = (base + header.p_vaddr + header.p_filesz) / page * page;
            let length = end.saturating_sub(start) as usize;
            // SAFETY: these pages were never written, so the kernel reads the same bytes from the file again.
            unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
        }
    }
    STOP
}

fn refuse(error: &ConfigError) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(BAD_CONFIGURATION)
}

/// Sets up logging in the directory that the key names, then starts the service; returns an exit code if either fails.
/// The logs are flushed when the guard is dropped.
async fn started<T>(
    log: &LogSettings,
    (key, data_dir): (&str, Option<&Path>),
    start: impl Future<Output = Result<T, StartError>>,
) -> Result<(T, LogGuard), ExitCode> {
    let guard = telemetry::init_logs(log, key, data_dir).map_err(|error| {
        eprintln!("configuration: {error}");
        ExitCode::from(BAD_CONFIGURATION)
    })?;
    telemetry::log_panics();
    let app = start.await.map_err(|error| {
        eprintln!("threat-memory could not start: {error}");
        ExitCode::FAILURE
    })?;
    give_memory_back();
    Ok((app, guard))
}

async fn hosted(settings: Settings) -> ExitCode {
    let (log, dir) = (settings.log.clone(), settings.data_dir());
    let (app, _flush) = match started(&log, ("storage", dir.as_deref()), Application::start(settings)).await {
        Ok(app) => app,
        Err(code) => return code,
    };
    demo::announce(&app);
    wait_for_signal().await;
    tracing::info!("stopping");
    app.stop().await;
    ExitCode::SUCCESS
}

async fn local(settings: LocalSettings, editor: Editor) -> ExitCode {
    let (log, dir) = (settings.logging.clone(), settings.data_dir());
    let start = LocalApplication::start(settings, editor);
    let (app, _flush) = match started(&log, ("storage.data_dir", dir.as_deref()), start).await {
        Ok(app) => app,
        Err(code) => return code,
    };
    tell_allocator(ONCE_STARTED);
    let (api, metrics) = (app.address(), app.admin_address());
    eprintln!("API on http://{api}, metrics on http://{metrics}/metrics");
    wait_for_signal().await;
    tracing::info!("stopping");
    app.stop().await;
    ExitCode::SUCCESS
}

/// Waits for SIGTERM or Ctrl-C.
async fn wait_for_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(error) => {
            tracing::warn!(%error, "SIGTERM can't be watched; Ctrl-C stops the service");
            tokio::signal::ctrl_c().await.ok();
        }
    }
}
