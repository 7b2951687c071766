//! A real SurrealDB server: a separate process with its own directory, which ends with the test.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The root user of the server.
pub const USER: &str = "root";
pub const PASSWORD: &str = "the password of the owner";

const PROGRAM: &str = "THREAT_MEMORY_TEST_SURREALDB";
const PATIENCE: Duration = Duration::from_secs(30);

/// Path of the server binary; `None` where it was not built, and the test is skipped.
pub fn program() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(PROGRAM) {
        let path = PathBuf::from(path);
        assert!(path.is_file(), "{PROGRAM}: {} is not a file", path.display());
        return Some(path);
    }
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().with_file_name("surrealdb-for-tests");
    if path.is_file() {
        return Some(path);
    }
    crate::skipped(&format!(
        "{} is not there (cargo build -p surrealdb-for-tests)",
        path.display()
    ));
    None
}

/// A running server.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    /// Starts a server on `dir` and waits until it responds.
    // Not async: a server is also started where there is no runtime yet.
    #[allow(clippy::disallowed_methods)]
    pub fn start(program: &Path, dir: &Path) -> Self {
        let until = Instant::now() + PATIENCE;
        loop {
            // Another process may take the port in between; the server then exits and another port is tried.
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = free.local_addr().unwrap();
            drop(free);
            let child = spawn(program, dir, address);
            let mut server = Self { child, address };
            while server.child.try_wait().unwrap().is_none() {
                if is_ready(address) {
                    return server;
                }
                assert!(Instant::now() < until, "the server does not answer");
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(Instant::now() < until, "the server ends at once");
        }
    }

    /// Kills the process at once, as a power cut would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn spawn(program: &Path, dir: &Path, address: SocketAddr) -> Child {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SURREAL_") {
            command.env_remove(name);
        }
    }
    command
        .args(["start", "--no-banner", "--log", "error", "--bind"])
        .arg(address.to_string())
        .args(["--user", USER, "--pass", PASSWORD])
        .arg(format!("surrealkv://{}", dir.display()))
        // The server exits when this pipe closes.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

fn is_ready(address: SocketAddr) -> bool {
    let asked = TcpStream::connect(address).and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        write!(
            stream,
            "GET /ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    asked.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
