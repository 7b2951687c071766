//! Starts the hosted service.

use std::path::Path;
use std::time::Duration;

use crate::Fallible;
use crate::client::{EMAIL, PASSWORD};
pub use crate::program::Service;
use crate::program::program;

impl Service {
    /// Starts the program on `dir`; also returns the time until its first healthy response.
    pub async fn start(dir: &Path) -> Fallible<(Self, Duration)> {
        Self::start_with(dir, &[]).await
    }

    /// As `start`, with further environment variables.
    pub async fn start_with(dir: &Path, variables: &[(&str, &str)]) -> Fallible<(Self, Duration)> {
        let mut command = program();
        command
            .args(["hosted", "--bind", "127.0.0.1:0", "--storage"])
            .arg(format!("surrealkv://{}", dir.display()))
            .env("THREAT_MEMORY_SERVER__ADMIN_BIND", "127.0.0.1:0")
            .env("THREAT_MEMORY_LIMITS__TIERS__ENTERPRISE", "100000000")
            .env("THREAT_MEMORY_LIMITS__TIERS__PILOT", "100000000")
            .env("THREAT_MEMORY_ADMIN_EMAIL", EMAIL)
            .env("THREAT_MEMORY_ADMIN_PASSWORD", PASSWORD)
            .envs(variables.iter().copied());
        Self::launch(command, "/health").await
    }
}
