//! The listener of an API.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use actix_http::HttpService;
use actix_http::error::DispatchError;
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt, fn_service, map_config};
use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{AppConfig, Extensions, Server, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::rt::net::TcpStream;
use tokio::net::TcpSocket;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::http::tls::Stream;
use crate::http::wire::Connection;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// Longest time for the handshake of TLS, and for the head of the first request of a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time for the client to close its end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How an API listens.
pub(super) struct Listener {
    pub address: SocketAddr,
    /// Begins TLS on each connection.
    pub tls: Option<TlsAcceptor>,
    pub workers: usize,
    /// Longest time for requests under way when the service stops, in seconds.
    pub drain_seconds: u64,
    /// Whether a client that has closed its end is still answered.
    pub allows_half_closed: bool,
    /// What handlers can learn of a connection.
    pub on_connect: fn(&TcpStream, &mut Extensions),
    /// Body of a refusal of the HTTP layer.
    pub refusal: fn(StatusCode) -> String,
}

impl Listener {
    /// Binds the address and serves `app` there.
    ///
    /// # Errors
    /// When the address can't be bound.
    pub fn serve<F, I, S, B>(self, app: F) -> io::Result<(Server, SocketAddr)>
    where
        F: Fn() -> I + Send + Clone + 'static,
        I: IntoServiceFactory<S, actix_http::Request>,
        S: ServiceFactory<
                actix_http::Request,
                Config = AppConfig,
                Response = ServiceResponse<B>,
                Error = Error,
                InitError: Debug,
                Service: 'static,
                Future: 'static,
            > + 'static,
        B: MessageBody + 'static,
    {
        let Self {
            tls,
            allows_half_closed,
            on_connect,
            refusal,
            ..
        } = self;
        let listener = bind(self.address)?;
        let address = listener.local_addr()?;
        let builder = Server::build()
            .workers(self.workers)
            .disable_signals()
            .shutdown_timeout(self.drain_seconds);
        let stopping = builder.graceful_shutdown_signal();
        let serve = move || {
            let stopping = stopping.clone();
            let app = map_config(app().into_factory(), |()| AppConfig::default());
            let http = HttpService::build()
                .graceful_shutdown_signal(move || {
                    let stopping = stopping.clone();
                    async move { stopping.notified().await }
                })
                .client_request_timeout(HEAD_TIMEOUT)
                .client_disconnect_timeout(CLOSE_TIMEOUT)
                .h1_allow_half_closed(allows_half_closed)
                .local_addr(address)
                .on_connect_ext(move |connection: &Connection, data| on_connect(connection.io.tcp(), data))
                .h1(app);
            let tls = tls.clone();
            let accept = fn_service(move |io: TcpStream| {
                let tls = tls.clone();
                async move {
                    let peer = io.peer_addr().ok();
                    let stream = timeout(HEAD_TIMEOUT, Stream::accept(io, tls.as_ref())).await;
                    let stream = stream
                        .map_err(io::Error::from)
                        .flatten()
                        .map_err(DispatchError::Io)?;
                    Ok((Connection::new(stream, refusal), peer))
                }
            });
            accept.and_then(http)
        };
        let server = builder.listen("api", listener, serve)?.run();
        Ok((server, address))
    }
}

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restart must not wait for the connections of the process before (TIME-WAIT).
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}
