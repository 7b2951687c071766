//! `POST /mcp` of both services: streamable HTTP (MCP 2026-07-28, basic/transports).
//!
//! A message is answered by [`McpServer`], whose tools send requests to the API of the same process. Without sessions there is
//! nothing to keep between two messages, and no stream to hold open.

use std::convert::Infallible;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use actix_http::{Message, Payload, Request, RequestHead};
use actix_service::{IntoServiceFactory, Service, ServiceFactory, map_config};
use actix_web::body::{MessageBody, to_bytes};
use actix_web::dev::{AppConfig, Extensions, ServiceResponse};
use actix_web::http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName,
    HeaderValue, IF_MATCH, IF_NONE_MATCH, ORIGIN, RETRY_AFTER, TRANSFER_ENCODING, USER_AGENT,
};
use actix_web::http::{Method, StatusCode, Uri};
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;

use crate::mcp::{Api, ApiAnswer, ApiRequest, Caller, Catalog, McpServer, Verb};

/// Headers of a message that say nothing of the requests that come of it.
const OWN_HEADERS: [HeaderName; 9] = [
    ACCEPT,
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    IF_MATCH,
    IF_NONE_MATCH,
    ORIGIN,
    TRANSFER_ENCODING,
];

/// What an admitted caller leaves with a request, so that it is authenticated and counted once.
pub(super) type Admission = Arc<dyn Fn(&mut Extensions) + Send + Sync>;

/// A request on its way to the API of its worker thread.
struct Call {
    request: ApiRequest,
    headers: Vec<(HeaderName, HeaderValue)>,
    peer: Option<SocketAddr>,
    admission: Admission,
    reply: oneshot::Sender<ApiAnswer>,
}

/// The API of a worker thread, without a listener.
pub struct InProcessApi {
    calls: mpsc::UnboundedSender<Call>,
}

impl InProcessApi {
    /// Starts it on this thread; it ends when it is dropped.
    ///
    /// # Errors
    /// Those of the application.
    pub async fn start<I, S, B>(app: I) -> Result<Self, S::InitError>
    where
        I: IntoServiceFactory<S, Request>,
        S: ServiceFactory<
                Request,
                Config = AppConfig,
                Response = ServiceResponse<B>,
                Error = Error,
                InitError: Debug,
                Service: 'static,
                Future: 'static,
            > + 'static,
        B: MessageBody + 'static,
    {
        let factory = map_config(app.into_factory(), |()| AppConfig::default());
        let service = Rc::new(factory.new_service(()).await?);
        let (calls, mut waiting) = mpsc::unbounded_channel::<Call>();
        actix_web::rt::spawn(async move {
            while let Some(call) = waiting.recv().await {
                let service = Rc::clone(&service);
                actix_web::rt::spawn(answer_call(service, call));
            }
        });
        Ok(Self { calls })
    }

    /// The API for the caller that sent a message.
    pub(super) fn of(&self, message: &HttpRequest, admission: Admission) -> Arc<dyn Api> {
        let kept = message
            .headers()
            .iter()
            .filter(|(name, _)| !OWN_HEADERS.contains(name));
        Arc::new(CallerApi {
            calls: self.calls.clone(),
            headers: kept.map(|(name, value)| (name.clone(), value.clone())).collect(),
            peer: message.peer_addr(),
            admission,
        })
    }
}

/// Answers a call, unless nobody waits for the answer any more.
async fn answer_call<S, B>(service: Rc<S>, mut call: Call)
where
    S: Service<Request, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody + 'static,
{
    let request = request_of(&call);
    let answering = async {
        let response = match request {
            Some(request) => service.call(request).await,
            None => return failed(StatusCode::BAD_REQUEST),
        };
        let response = match response {
            Ok(response) => response.map_into_boxed_body(),
            Err(error) => return failed(error.as_response_error().status_code()),
        };
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
        let status = response.status().as_u16();
        match to_bytes(response.into_body()).await {
            Ok(body) => ApiAnswer {
                status,
                retry_after,
                body,
            },
            Err(_) => failed(StatusCode::INTERNAL_SERVER_ERROR),
        }
    };
    let answer = tokio::select! {
        answer = answering => answer,
        () = call.reply.closed() => return,
    };
    call.reply.send(answer).ok();
}

fn failed(status: StatusCode) -> ApiAnswer {
    ApiAnswer {
        status: status.as_u16(),
        retry_after: None,
        body: Bytes::new(),
    }
}

fn request_of(call: &Call) -> Option<Request> {
    let mut head = Message::<RequestHead>::new();
    head.uri = call.request.path.parse::<Uri>().ok()?;
    head.method = match call.request.verb {
        Verb::Get => Method::GET,
        Verb::Post => Method::POST,
        Verb::Patch => Method::PATCH,
    };
    head.peer_addr = call.peer;
    // The head of an earlier request is used again.
    head.headers.clear();
    for (name, value) in &call.headers {
        head.headers.append(name.clone(), value.clone());
    }
    let mut payload = Payload::None;
    if let Some(body) = &call.request.body {
        let json = HeaderValue::from_static("application/json");
        head.headers.insert(CONTENT_TYPE, json);
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        payload = Payload::from(Bytes::from(body.clone()));
    }
    let (request, _) = Request::from(head).replace_payload(payload);
    (call.admission)(&mut request.extensions_mut());
    Some(request)
}

/// The API for one caller.
struct CallerApi {
    calls: mpsc::UnboundedSender<Call>,
    headers: Vec<(HeaderName, HeaderValue)>,
    peer: Option<SocketAddr>,
    admission: Admission,
}

impl Api for CallerApi {
    fn send(&self, request: ApiRequest) -> BoxFuture<'static, ApiAnswer> {
        let (reply, answer) = oneshot::channel();
        let call = Call {
            request,
            headers: self.headers.clone(),
            peer: self.peer,
            admission: Arc::clone(&self.admission),
            reply,
        };
        let sent = self.calls.send(call).is_ok();
        async move {
            match answer.await {
                Ok(answer) if sent => answer,
                Ok(_) | Err(_) => failed(StatusCode::SERVICE_UNAVAILABLE),
            }
        }
        .in_current_span()
        .boxed()
    }
}

/// Whether a page of a foreign origin sent the message: a browser names the origin, and neither the service's own nor one
/// of those that the operator allows is foreign.
pub(super) fn is_foreign(headers: &HeaderMap, allowed: &[String]) -> bool {
    let mut origins = headers.get_all(ORIGIN);
    let Some(origin) = origins.next() else {
        return false;
    };
    let (Ok(origin), None) = (origin.to_str(), origins.next()) else {
        return true;
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_own = origin
        .split_once("://")
        .is_some_and(|(_, place)| Some(place) == host);
    !is_own && !allowed.iter().any(|allowed| allowed == origin)
}

/// The header `User-Agent`.
pub(super) fn user_agent(request: &HttpRequest) -> Option<String> {
    let value = request.headers().get(USER_AGENT)?;
    Some(value.to_str().ok()?.to_owned())
}

/// Answers a message, of at most `limit` bytes.
pub(super) async fn answer(
    request: &HttpRequest,
    body: Vec<u8>,
    limit: usize,
    catalog: Arc<Catalog>,
    caller: Caller,
) -> HttpResponse {
    let mut message = http::Request::new(Full::new(Bytes::from(body)));
    *message.method_mut() = http::Method::POST;
    for (name, value) in request.headers() {
        let name = http::HeaderName::from_bytes(name.as_str().as_bytes());
        let value = http::HeaderValue::from_bytes(value.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value) {
            message.headers_mut().append(name, value);
        }
    }
    // The answer is always JSON, also for a client that does not ask for it; secrets are no business of a library.
    let answered = http::HeaderValue::from_static("application/json, text/event-stream");
    message.headers_mut().insert(http::header::ACCEPT, answered);
    for secret in [
        http::header::AUTHORIZATION,
        http::HeaderName::from_static("x-api-key"),
    ] {
        message.headers_mut().remove(secret);
    }
    message.extensions_mut().insert(caller);
    // The guard of the API has checked host and origin.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(None)
        .disable_allowed_hosts()
        .with_max_request_body_bytes(limit);
    #[cfg(not(feature = "mcp-fixtures"))]
    let server = move || Ok(McpServer::new(Arc::clone(&catalog)));
    #[cfg(feature = "mcp-fixtures")]
    let server = move || {
        let _ = McpServer::new(Arc::clone(&catalog));
        Ok(crate::mcp::Fixtures)
    };
    let service = StreamableHttpService::new(server, Arc::new(NeverSessionManager::default()), config);
    let (head, body) = service.handle(message).await.into_parts();
    let collected: Result<_, Infallible> = body.collect().await;
    let body = collected.map(|body| body.to_bytes()).unwrap_or_default();
    let status = StatusCode::from_u16(head.status.as_u16()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = HttpResponse::build(status);
    let media_type = head.headers.get(http::header::CONTENT_TYPE);
    if let Some(media_type) = media_type.and_then(|value| value.to_str().ok()) {
        response.content_type(media_type);
    }
    response.body(body)
}
