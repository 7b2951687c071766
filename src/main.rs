//! The command line: reads arguments, starts the runtime, runs one command.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use threat_memory::app::hosted::Application;
use threat_memory::config::{Flags, Settings};
use threat_memory::{demo, telemetry};

/// The allocator returns memory to the system, which the default one does not after a large ingest.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// SurrealDB evaluates queries recursively.
const STACK_BYTES: usize = 16 << 20;
/// Exit code for configuration that can't be used.
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

Secrets come from the environment: THREAT_MEMORY_ADMIN_EMAIL, THREAT_MEMORY_ADMIN_PASSWORD (first start),
THREAT_MEMORY_JWT_SECRET, THREAT_MEMORY_STORAGE_USER, THREAT_MEMORY_STORAGE_PASSWORD,
THREAT_MEMORY_EMBEDDING_API_KEY, THREAT_MEMORY_LLM_API_KEY.";

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
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let system = actix::System::with_tokio_rt(|| {
        #[allow(clippy::expect_used)] // Without threads there is nothing to run and nobody to tell.
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_stack_size(STACK_BYTES)
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
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::from(BAD_CONFIGURATION)
                }
            }
        }
    }
}

async fn hosted(settings: Settings) -> ExitCode {
    let _flush = match telemetry::init_logs(&settings.log, settings.data_dir().as_deref()) {
        Ok(guard) => guard,
        Err(error) => {
            eprintln!("configuration: {error}");
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    let app = match Application::start(settings).await {
        Ok(app) => app,
        Err(error) => {
            eprintln!("threat-memory could not start: {error}");
            return ExitCode::FAILURE;
        }
    };
    demo::announce(&app);
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
