//! The databases that the tests of the storage run on. An embedded one and one of a server begin as copies of a new store:
//! a debug build takes seconds to create the schema.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Weak;

use secrecy::SecretString;
use tempfile::TempDir;
use test_support::{copy_of, server};

use crate::lifecycle::wait_until_closed;
use crate::store::connection::temporary::TemporaryDir;
use crate::store::{StorageMemory, Store};

/// Runs a test on threads whose stack is large enough for the engine.
pub(crate) fn run<F: Future<Output = ()> + Send + 'static>(test: F) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(16 << 20)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(runtime.spawn(test)).unwrap();
}

/// Runs a test on an embedded store, and on a server if available.
pub(in crate::store) fn run_on_each<F: Future<Output = ()> + Send + 'static>(test: impl Fn(String) -> F) {
    let (_dir, url) = new_dir();
    run(test(url));
    if let Some(server) = TestServer::start() {
        run(test(server.url()));
    }
}

/// A server with a new store.
pub(crate) struct TestServer {
    server: server::Server,
    _dir: TempDir,
}

impl TestServer {
    /// `None` where the program of the server was not built.
    pub(crate) fn start() -> Option<Self> {
        let program = server::program()?;
        let dir = tempfile::tempdir().unwrap();
        copy_of("new-store-of-server", &this_program(), dir.path(), |dir| {
            let server = server::Server::start(&program, dir);
            open_once(remote(&server), dir);
        });
        let server = server::Server::start(&program, dir.path());
        Some(Self { server, _dir: dir })
    }

    pub(crate) fn url(&self) -> String {
        remote(&self.server)
    }
}

/// The directory of a new store, and its URL.
pub(in crate::store) fn new_dir() -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    copy_new_store(dir.path());
    let url = embedded(dir.path());
    (dir, url)
}

/// A new store at `mem://`.
pub(crate) async fn fresh() -> Store {
    fresh_with(StorageMemory::default()).await
}

pub(crate) async fn fresh_with(memory: StorageMemory) -> Store {
    let made = TemporaryDir::new().unwrap();
    copy_new_store(&made.store());
    Store::open_temporary(made, "hosted", memory).await.unwrap()
}

fn copy_new_store(dir: &Path) {
    copy_of("new-store", &this_program(), dir, |dir| {
        open_once(embedded(dir), dir)
    });
}

fn this_program() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// Creates the schema. A runtime can't start another one on its own thread.
fn open_once(url: String, dir: &Path) {
    let dir = dir.to_owned();
    let creating = std::thread::spawn(move || {
        run(async move {
            drop(open(&url).await);
            wait_until_closed(&Weak::new(), Some(&dir), None).await;
        });
    });
    creating.join().unwrap();
}

fn embedded(dir: &Path) -> String {
    format!("surrealkv://{}", dir.display())
}

fn remote(server: &server::Server) -> String {
    format!("ws://{}", server.address)
}

pub(crate) async fn open(url: &str) -> Store {
    let secret = SecretString::from("a secret of at least 32 bytes for tests");
    let server = crate::store::StorageServer {
        username: server::USER.into(),
        password: server::PASSWORD.into(),
        connections: 4,
        timeout: std::time::Duration::from_secs(30),
    };
    let server = Some(&server).filter(|_| url.starts_with("ws"));
    Store::open(url, "hosted", StorageMemory::default(), server, &secret)
        .await
        .unwrap()
}
