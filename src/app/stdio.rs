//! The protocol on standard input and output, for programs that start their tools as processes.
//!
//! Messages are passed on to `POST /mcp` of a service: one elsewhere, the one that has the data directory open, or one that
//! this process starts for it. So the answers are the same in all three cases, and nobody has to stop anything.

mod relay;
mod remote;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::ServerConfig;
use rmcp::service::{ServerInitializeError, serve_server};
use rmcp::transport::async_rw::AsyncRwTransport;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{mpsc, oneshot};

use self::relay::Relay;
use self::remote::{Failure, Remote};
use super::local::LocalApplication;
use crate::config::ConfigError;
use crate::config::local::{LocalFlags, LocalSettings};
use crate::lifecycle::{StartError, check_owner};
use crate::local::address_of;
use crate::store::StoreError;
use crate::telemetry;

/// Longest time for a service that is starting to tell its address, and the pause between two looks.
const STARTING: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);
/// Longest message on standard input, in bytes: above any limit of a service, whose answer then says what it is.
const LONGEST_LINE: usize = 256 << 20;

/// Where the memory is.
pub enum Place {
    /// A service, local or hosted, by its URL.
    Url(String),
    /// The data directory of a local memory.
    Directory(Box<Directory>),
}

impl Place {
    /// The key that the settings of a local memory have.
    fn key(&self) -> Option<SecretString> {
        match self {
            Self::Directory(directory) => {
                Some(directory.settings.web.api_key.clone()).filter(|key| !key.expose_secret().is_empty())
            }
            Self::Url(_) => None,
        }
    }
}

/// A local memory that this process may have to open.
pub struct Directory {
    /// Where its settings are read from.
    pub config: Option<PathBuf>,
    pub flags: LocalFlags,
    /// The settings as they were read.
    pub settings: LocalSettings,
}

impl Directory {
    /// Reads the settings.
    ///
    /// # Errors
    /// When they can't be read, or one is invalid.
    pub fn read(config: Option<PathBuf>, data_dir: Option<PathBuf>) -> Result<Self, ConfigError> {
        let flags = LocalFlags {
            data_dir,
            ..LocalFlags::default()
        };
        let (settings, _) = LocalSettings::load(config.as_deref(), &flags)?;
        Ok(Self {
            config,
            flags,
            settings,
        })
    }
}

/// A wish for the service that has the memory open now.
type Wish = oneshot::Sender<Result<Arc<Remote>, String>>;

/// Serves the protocol until standard input ends.
///
/// # Errors
/// In words, when the memory can't be opened or reached.
pub async fn serve(place: Place, key: Option<SecretString>) -> Result<(), StartError> {
    let mut attachment = Attachment {
        key: key.or_else(|| place.key()),
        place,
        own: None,
        logs: None,
    };
    let (remote, info) = match attachment.find().await {
        Ok(found) => found,
        Err(error) => {
            attachment.close().await;
            return Err(error);
        }
    };
    let (wishes, mut wished) = mpsc::channel::<Wish>(1);
    let relay = Relay::new(remote, info, wishes);
    let served = async {
        let (input, output) = rmcp::transport::stdio();
        let transport = AsyncRwTransport::new(input, output).with_max_line_length(LONGEST_LINE);
        match serve_server(relay, transport).await {
            Ok(running) => {
                running.waiting().await.ok();
                Ok(())
            }
            // Standard input that ends before the first message is no error.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(StartError::Setup(format!(
                "the client does not begin as the protocol says: {error}"
            ))),
        }
    };
    tokio::pin!(served);
    let ended = loop {
        tokio::select! {
            ended = &mut served => break ended,
            Some(wish) = wished.recv() => {
                let found = attachment.find().await.map(|(remote, _)| remote);
                wish.send(found.map_err(|error| error.to_string())).ok();
            }
        }
    };
    attachment.close().await;
    ended
}

/// What this process has to do with the memory.
struct Attachment {
    key: Option<SecretString>,
    place: Place,
    /// The service that this process started.
    own: Option<LocalApplication>,
    /// Writes the logs to their end when it is dropped.
    logs: Option<telemetry::LogGuard>,
}

impl Attachment {
    /// The service that has the memory open, one that runs or one that is started now, and what it says of itself.
    async fn find(&mut self) -> Result<(Arc<Remote>, ServerConfig), StartError> {
        let until = Instant::now() + STARTING;
        loop {
            let url = match &self.place {
                Place::Url(url) => url.clone(),
                Place::Directory(directory) => {
                    let dir = directory.settings.data_dir();
                    format!("http://{}", self.join(dir.as_deref(), until).await?)
                }
            };
            let remote = Remote::new(&url, self.key.clone()).map_err(StartError::Setup)?;
            match remote.discover().await {
                Ok(info) => return Ok((Arc::new(remote), info)),
                // It ended since it told its address.
                Err(Failure::Gone(_))
                    if matches!(self.place, Place::Directory(_)) && Instant::now() < until =>
                {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(failure) => return Err(StartError::Setup(failure.to_string())),
            }
        }
    }

    /// The address of the service that has the memory in a directory open. One that is just starting has it open before it
    /// tells its address.
    async fn join(&mut self, dir: Option<&Path>, until: Instant) -> Result<SocketAddr, StartError> {
        loop {
            if let Some(address) = dir.and_then(address_of) {
                return Ok(super::local_address(address));
            }
            match self.start().await {
                Err(StartError::Store(StoreError::InUse(_))) if Instant::now() < until => {
                    tokio::time::sleep(PAUSE).await;
                }
                started => return started,
            }
        }
    }

    /// Opens the memory in this process; returns the address of its API.
    async fn start(&mut self) -> Result<SocketAddr, StartError> {
        let Place::Directory(directory) = &self.place else {
            return Err(StartError::Setup("there is no directory to open".into()));
        };
        let (mut settings, editor) = LocalSettings::load(directory.config.as_deref(), &directory.flags)
            .map_err(|error| StartError::Configuration(error.to_string()))?;
        // Reached by this process and by others that find its address in the directory.
        settings.web.host = "127.0.0.1".into();
        settings.web.port = 0;
        settings.web.admin_bind = ([127, 0, 0, 1], 0).into();
        if self.logs.is_none() {
            check_owner(settings.data_dir().as_deref())?;
            let logs = telemetry::init_logs(
                &settings.logging,
                "storage.data_dir",
                settings.data_dir().as_deref(),
            );
            self.logs = Some(logs.map_err(StartError::Configuration)?);
        }
        let own = LocalApplication::start(settings, editor).await?;
        let address = own.address();
        self.own = Some(own);
        Ok(address)
    }

    async fn close(self) {
        if let Some(own) = self.own {
            own.stop().await;
        }
    }
}
