//! Checks that pending directories and addresses are usable on this machine.

use std::net::{TcpListener, ToSocketAddrs};

use super::super::ConfigError;
use super::LocalSettings;
use super::pending::PendingValues;
use crate::files;

/// # Errors
/// Names the pending key whose value would keep the service from starting.
pub(super) fn check_usable(settings: &LocalSettings, waiting: &PendingValues) -> Result<(), ConfigError> {
    let waits = |path: &str| waiting.contains_key(path);
    if waits("storage.data_dir")
        && let Some(dir) = settings.data_dir()
    {
        let refused = files::private_dir(&dir).and_then(|()| files::check_writable(&dir));
        refused.map_err(|error| ConfigError::new(format!("storage.data_dir: can't be written: {error}")))?;
    }
    let web = &settings.web;
    if waits("web.host") || waits("web.port") {
        let key = if waits("web.host") { "web.host" } else { "web.port" };
        check_free(key, (web.host.as_str(), web.port))?;
    }
    if waits("web.admin_bind") {
        check_free("web.admin_bind", web.admin_bind)?;
    }
    Ok(())
}

/// Checks that this machine can listen on the address.
fn check_free(key: &str, address: impl ToSocketAddrs) -> Result<(), ConfigError> {
    let bound = TcpListener::bind(address);
    bound
        .map(drop)
        .map_err(|error| ConfigError::new(format!("{key}: can't be listened on: {error}")))
}
