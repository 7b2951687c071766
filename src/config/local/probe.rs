//! Checks that pending directories and addresses are usable on this machine.

use std::net::{IpAddr, TcpListener, ToSocketAddrs};
use std::path::Path;

use super::super::ConfigError;
use super::LocalSettings;
use super::pending::PendingValues;
use crate::files;
use crate::warninglists::WarninglistsHandle;

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
    if waits("warninglists.dir") {
        let opened = WarninglistsHandle::open(Some(Path::new(&settings.warninglists.dir)), false);
        opened.map_err(|error| ConfigError::new(format!("warninglists.dir: {error}")))?;
    }
    let web = &settings.web;
    let is_same_port = web.port != 0 && web.port == web.admin_bind.port();
    let waits_for_port = waits("web.port") || waits("web.host") || waits("web.admin_bind");
    if waits_for_port && is_same_port && share_an_address(&web.host, web.admin_bind.ip()) {
        let key = if waits("web.admin_bind") {
            "web.admin_bind"
        } else {
            "web.port"
        };
        let rule = "the API and the metrics need addresses of their own";
        return Err(ConfigError::new(format!("{key}: {rule}")));
    }
    if waits("web.host") || waits("web.port") {
        let key = if waits("web.host") { "web.host" } else { "web.port" };
        check_free(key, (web.host.as_str(), web.port))?;
    }
    if waits("web.admin_bind") {
        check_free("web.admin_bind", web.admin_bind)?;
    }
    Ok(())
}

/// Whether one listener takes the address of the other.
fn share_an_address(host: &str, admin: IpAddr) -> bool {
    let hosts = (host, 0)
        .to_socket_addrs()
        .into_iter()
        .flatten()
        .map(|address| address.ip());
    let (mut hosts, admin) = (hosts.map(|host| host.to_canonical()), admin.to_canonical());
    hosts.any(|host| host == admin || host.is_unspecified() || admin.is_unspecified())
}

/// Checks that this machine can listen on the address.
fn check_free(key: &str, address: impl ToSocketAddrs) -> Result<(), ConfigError> {
    let bound = TcpListener::bind(address);
    bound
        .map(drop)
        .map_err(|error| ConfigError::new(format!("{key}: can't be listened on: {error}")))
}
