//! The program as a child process, and its resource use as reported by the operating system.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::Fallible;

/// Environment variable with the path of another binary, so that two can be compared without a rebuild.
const BINARY: &str = "THREAT_MEMORY_BINARY";
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(2);
/// Ticks per second in `/proc/PID/stat`.
const TICKS: f64 = 100.0;

/// A running service; killed when dropped.
pub struct Service {
    child: Child,
    base: String,
}

/// The program to measure, without the settings of this process's environment.
pub fn program() -> Command {
    let mut command = Command::new(chosen().unwrap_or_else(|| env!("CARGO_BIN_EXE_threat-memory").into()));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("THREAT_MEMORY_") {
            command.env_remove(name);
        }
    }
    command
}

fn chosen() -> Option<OsString> {
    std::env::var_os(BINARY).filter(|path| !path.is_empty())
}

/// Prints the version and the machine's state, so that the figures below can be judged.
pub fn head(kind: &str) {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("threat-memory {}{kind}, {cores} cores", env!("CARGO_PKG_VERSION"));
    if let Some(path) = chosen() {
        println!("binary: {}", path.display());
    }
    if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
        let load = load.split(' ').next().unwrap_or_default();
        println!("load of the machine before the start: {load}");
    }
}

impl Service {
    /// Starts the program; also returns the time until its first healthy response on the route `health`.
    pub async fn launch(mut command: Command, health: &str) -> Fallible<(Self, Duration)> {
        // Built before the clock starts: it reads the machine's certificates.
        let http = reqwest::Client::builder().no_proxy().build()?;
        let begun = Instant::now();
        let service = Self::spawn(&mut command)?;
        let health = format!("{}{health}", service.base);
        while begun.elapsed() < PATIENCE {
            if let Ok(answer) = http.get(&health).send().await
                && answer.status() == 200
            {
                return Ok((service, begun.elapsed()));
            }
            tokio::time::sleep(POLL).await;
        }
        Err("the service did not become healthy".into())
    }

    /// Starts the program and waits until it has told its address.
    fn spawn(command: &mut Command) -> Fallible<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let spawned = command.spawn();
        let mut child = spawned
            .map_err(|error| format!("{} can't be started: {error}", command.get_program().display()))?;
        let lines = BufReader::new(child.stderr.take().ok_or("no stderr")?).lines();
        let mut service = Self {
            child,
            base: String::new(),
        };
        let (said, heard) = mpsc::channel();
        // Drains the pipe, so that the service never blocks on a full one.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                said.send(line).ok();
            }
        });
        let mut all = Vec::new();
        while let Ok(line) = heard.recv_timeout(PATIENCE) {
            if let Some((api, _)) = line
                .strip_prefix("API on ")
                .and_then(|rest| rest.split_once(", metrics on "))
            {
                api.clone_into(&mut service.base);
                return Ok(service);
            }
            all.push(line);
        }
        Err(format!("the service did not start:\n{}", all.join("\n")).into())
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    /// Stops the service with SIGTERM, as an operator would, and waits for it to exit.
    pub fn terminate(mut self) -> Fallible<()> {
        self.signal("-TERM")?;
        let status = self.child.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the service ended with {status}").into())
        }
    }

    /// Makes all threads of the service stand still.
    #[allow(dead_code)] // Each benchmark uses some of these functions.
    pub fn pause(&self) -> Fallible<()> {
        self.signal("-STOP")
    }

    /// Makes them go on.
    #[allow(dead_code)]
    pub fn resume(&self) -> Fallible<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Fallible<()> {
        let id = self.child.id().to_string();
        match Command::new("kill").args([signal, &id]).status()?.success() {
            true => Ok(()),
            false => Err(format!("kill {signal} failed").into()),
        }
    }

    /// Kills the service at once, as a power cut would.
    pub fn kill(mut self) -> Fallible<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits until the service has been idle for eight seconds, for at most a minute and a half. Some work begins only
    /// seconds after the last write.
    pub async fn settle(&self) {
        let mut idle = 0;
        for _ in 0..90 {
            let before = self.cpu();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let is_idle = |(after, before): (f64, f64)| after - before < 0.03;
            idle = if self.cpu().zip(before).is_none_or(is_idle) {
                idle + 1
            } else {
                0
            };
            if idle == 8 {
                return;
            }
        }
    }

    /// CPU time used so far, in seconds.
    pub fn cpu(&self) -> Option<f64> {
        cpu_of(&self.child.id().to_string())
    }

    /// Number of entries in a directory of `/proc/PID`: `fd` for open files, `task` for threads.
    #[allow(dead_code)]
    pub fn count(&self, folder: &str) -> usize {
        let folder = format!("/proc/{}/{folder}", self.child.id());
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    /// A value of `/proc/PID/status` in bytes.
    pub fn memory(&self, name: &str) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let number = line.trim_start_matches(':').split_whitespace().next()?;
        Some(number.parse::<u64>().ok()? * 1024)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// CPU time that a process used so far, in seconds; `self` is this one.
pub fn cpu_of(process: &str) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ').skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

/// Disk usage of a directory in bytes.
pub fn disk(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => disk(&entry.path()),
        Ok(data) => data.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(size).sum()
}
