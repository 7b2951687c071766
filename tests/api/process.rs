//! The program as an operator runs it: a process of its own, stopped by signals.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::helpers::{ADMIN, Client, PASSWORD};

const PATIENCE: Duration = Duration::from_secs(20);

/// The program, ready to be given arguments, with no setting of this machine's in its environment.
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

/// `threat-memory hosted` on free ports over the data directory `dir`.
pub fn hosted(dir: &Path) -> Command {
    let mut command = program();
    command
        .args(["hosted", "--bind", "127.0.0.1:0", "--storage"])
        .arg(format!("surrealkv://{}", dir.display()))
        .env("THREAT_MEMORY_SERVER__ADMIN_BIND", "127.0.0.1:0")
        .env("THREAT_MEMORY_LIMITS__TIERS__ENTERPRISE", "1000000")
        .env("THREAT_MEMORY_ADMIN_EMAIL", ADMIN)
        .env("THREAT_MEMORY_ADMIN_PASSWORD", PASSWORD)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Runs a command that is to end by itself; one that serves instead is ended, and its status says so.
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
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// A running service.
pub struct Service {
    child: Child,
    base: String,
    admin_base: String,
}

impl Service {
    /// Starts the command and waits until it says where it listens.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (found, address) = mpsc::channel();
        // Reads to the end, so that the service never waits for a full pipe.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                found.send(line).ok();
            }
        });
        let until = Instant::now() + PATIENCE;
        let mut said = Vec::new();
        while let Ok(line) = address.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if let Some((api, metrics)) = line
                .strip_prefix("API on ")
                .and_then(|rest| rest.split_once(", metrics on "))
            {
                let (base, admin_base) = (api.to_owned(), metrics.trim_end_matches("/metrics").to_owned());
                return Self {
                    child,
                    base,
                    admin_base,
                };
            }
            said.push(line);
        }
        child.kill().ok();
        child.wait().ok();
        panic!("the service did not start:\n{}", said.join("\n"));
    }

    /// A client without credentials.
    pub fn anonymous(&self) -> Client {
        let mut client = Client::at(&self.base);
        client.admin_base.clone_from(&self.admin_base);
        client
    }

    /// A client of the first administrator.
    pub async fn admin(&self) -> Client {
        self.anonymous().sign_in(ADMIN, PASSWORD).await
    }

    /// Ends the process at once, as a power cut would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The process's number.
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

    /// Waits for the process to end by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the service does not end");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
