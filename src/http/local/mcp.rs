//! `POST /mcp`: the memory for agents, over the Model Context Protocol.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::error::LocalError;
use super::guard::{Admitted, FOREIGN_PAGE};
use super::{LocalState, address_of, guarded_resource, openapi};
use crate::config::local::LocalSettings;
use crate::domain::error::DomainError;
use crate::http::body::{self, Body};
use crate::http::mcp::{self, Admission, InProcessApi};
use crate::local::MemoryManager;
use crate::mcp::{CallLog, CallRecord, Caller, Catalog, Service};

/// The tools with the bounds that the settings of the moment allow.
static CATALOG: LazyLock<Mutex<Option<KnownCatalog>>> = LazyLock::new(Mutex::default);

/// A catalog, and the settings that it was made with.
type KnownCatalog = (Arc<LocalSettings>, Arc<Catalog>);

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(guarded_resource("/mcp").route(web::post().to(answer)));
}

fn catalog(settings: Arc<LocalSettings>) -> Option<Arc<Catalog>> {
    let mut known = CATALOG.lock();
    if let Some((of, catalog)) = &*known
        && Arc::ptr_eq(of, &settings)
    {
        return Some(Arc::clone(catalog));
    }
    let document = openapi::current(&settings, true)?;
    let catalog = Arc::new(Catalog::new(Service::Local, &document));
    *known = Some((settings, Arc::clone(&catalog)));
    Some(catalog)
}

async fn answer(
    request: HttpRequest,
    state: web::Data<LocalState>,
    api: web::Data<InProcessApi>,
    payload: Body,
) -> Result<HttpResponse, LocalError> {
    if mcp::is_foreign(request.headers(), &[]) {
        return Err(LocalError::Message(StatusCode::FORBIDDEN, FOREIGN_PAGE));
    }
    let settings = state.settings();
    let limit = settings.web.body_limit;
    let read = body::read_counted(payload, limit, &state.bodies, None, Ok::<_, LocalError>);
    let (message, _load) = read.await?;
    let catalog = catalog(settings).ok_or_else(|| {
        DomainError::internal("the request failed unexpectedly", "the API can't be described")
    })?;
    let admission: Admission = Arc::new(|data| {
        data.insert(Admitted);
    });
    let caller = Caller {
        api: api.of(&request, admission),
        permissions: Vec::new(),
        user_agent: mcp::user_agent(&request),
        log: Arc::new(LocalLog {
            memory: state.memory.clone(),
            from: address_of(&request),
        }),
    };
    Ok(mcp::answer(&request, message, limit, catalog, caller).await)
}

struct LocalLog {
    memory: MemoryManager,
    from: IpAddr,
}

impl CallLog for LocalLog {
    fn record(&self, call: CallRecord) -> BoxFuture<'static, Result<(), DomainError>> {
        let (memory, from) = (self.memory.clone(), self.from);
        async move {
            let recorded = memory
                .record_call(&call.action, call.client.as_deref(), call.outcome, from)
                .await;
            recorded.map_err(|error| {
                DomainError::internal("the call could not be written to the log", error.to_string())
            })
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::local::LocalFlags;

    #[test]
    fn tools_are_requests_of_this_api() {
        let settings = LocalSettings::load(None, &LocalFlags::default()).unwrap().0;
        let document = openapi::current(&settings, true).unwrap();
        Catalog::new(Service::Local, &document).check(&document);
    }
}
