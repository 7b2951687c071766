//! The program as an operator runs it: a separate process, stopped by signals.

use std::io::{BufRead, BufReader, PipeReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use test_support::{copy_of, eventually};

use crate::helpers::{ADMIN, Client, PASSWORD};

const PATIENCE: Duration = Duration::from_secs(60);

/// The program, ready for arguments, without this machine's settings in its environment.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_threat-memory"));
    for (name, _) in std::env::vars_os() {
        let own = ["THREAT_MEMORY_", "LOCAL_", "PLATFORM_"];
        if own
            .iter()
            .any(|prefix| name.to_string_lossy().starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// `threat-memory hosted` on free ports with the data directory `dir`.
pub fn hosted(dir: &Path) -> Command {
    let mut command = program();
    command
        .args(["hosted", "--bind", "127.0.0.1:0", "--storage"])
        .arg(format!("surrealkv://{}", dir.display()))
        .env("THREAT_MEMORY_SERVER__ADMIN_BIND", "127.0.0.1:0")
        .env("THREAT_MEMORY_LIMITS__TIERS__ENTERPRISE", "1000000")
        .env("THREAT_MEMORY_ADMIN_EMAIL", ADMIN)
        .env("THREAT_MEMORY_ADMIN_PASSWORD", PASSWORD)
        .stdout(Stdio::null());
    command
}

/// A data directory of `threat-memory hosted` that was started once, by the administrator of the tests.
pub fn started_once() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    copy_started_once(dir.path());
    dir
}

/// Makes `dir` such a directory.
pub fn copy_started_once(dir: &Path) {
    let program = program();
    copy_of("started-once", Path::new(program.get_program()), dir, |dir| {
        Service::start(hosted(dir)).stop();
    });
}

/// Runs a command that should exit by itself. If it keeps running, it is killed, and its exit status shows that.
pub fn finish(command: &mut Command) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
        }
        // Not async: callers have no runtime.
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// What a command that succeeds prints.
pub fn printed(command: &mut Command) -> String {
    let ended = finish(command);
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

/// What a command that fails says.
pub fn refused(command: &mut Command) -> String {
    let ended = finish(command);
    assert!(!ended.status.success(), "{command:?}");
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

/// What a service writes to its standard error, and to its standard output if nobody reads on.
type Log = std::io::Lines<BufReader<PipeReader>>;

/// A running service.
pub struct Service {
    child: Child,
    /// Ends with what was not read, if nobody reads on.
    _log: JoinHandle<Log>,
    base: String,
    admin_base: String,
}

impl Service {
    /// Starts the command and waits until it reports its address.
    pub fn start(command: Command) -> Self {
        Self::try_start(command).unwrap_or_else(|said| panic!("the service did not start:\n{said}"))
    }

    /// The same; fails with what the command said if it doesn't start.
    pub fn try_start(command: Command) -> Result<Self, String> {
        Self::start_read(command, true)
    }

    /// The same with a reader of the log that stalls as soon as the service has started.
    pub fn start_unread(command: Command) -> Self {
        Self::start_read(command, false).unwrap_or_else(|said| panic!("the service did not start:\n{said}"))
    }

    fn start_read(mut command: Command, to_the_end: bool) -> Result<Self, String> {
        let (reader, writer) = std::io::pipe().unwrap();
        if !to_the_end {
            command.stdout(writer.try_clone().unwrap());
        }
        let mut child = command.stderr(writer).spawn().unwrap();
        // The command holds the writing end, too. While it does, the reader never sees the end of the log.
        drop(command);
        let mut lines = BufReader::new(reader).lines();
        let (found, address) = mpsc::channel();
        let log = std::thread::spawn(move || {
            for line in lines.by_ref().map_while(Result::ok) {
                let is_last = !to_the_end && line.starts_with("API on ");
                found.send(line).ok();
                if is_last {
                    break;
                }
            }
            lines
        });
        let until = Instant::now() + PATIENCE;
        let mut said = Vec::new();
        while let Ok(line) = address.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if let Some((api, metrics)) = line
                .strip_prefix("API on ")
                .and_then(|rest| rest.split_once(", metrics on "))
            {
                let (base, admin_base) = (api.to_owned(), metrics.trim_end_matches("/metrics").to_owned());
                return Ok(Self {
                    child,
                    _log: log,
                    base,
                    admin_base,
                });
            }
            said.push(line);
        }
        child.kill().ok();
        child.wait().ok();
        Err(said.join("\n"))
    }

    /// A client without credentials.
    pub fn anonymous(&self) -> Client {
        let mut client = Client::at(&self.base);
        client.admin_base.clone_from(&self.admin_base);
        client
    }

    /// A client signed in as the first administrator.
    pub async fn admin(&self) -> Client {
        self.anonymous().sign_in(ADMIN, PASSWORD).await
    }

    /// Kills the process at once, as a power cut would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The URL that the API is below.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let sent = Command::new("kill")
            .arg(self.child.id().to_string())
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Stops the service in order, where there is no runtime.
    pub fn stop(mut self) {
        self.terminate();
        assert!(self.child.wait().unwrap().success());
    }

    /// Waits for the process to exit by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        eventually(|| {
            let ended = self.child.try_wait().unwrap();
            std::future::ready(ended.ok_or("the service does not end"))
        })
        .await
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
