//! Objects, manifests and versions (sections 5.3, 5.4, 5.6 and 5.8).

use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::value::RawValue;

use super::asked::asked_page;
use super::caller::Caller;
use super::collections::STIX;
use super::error::TaxiiError;
use super::{answer, hand_in, resource};
use crate::actors::graph_store::{AskedPage, GivenObject, ObjectPage, PageOf, ReadObjects};
use crate::http::AppState;
use crate::http::hosted::HELD_BACK;

const FIRST: HeaderName = HeaderName::from_static("x-taxii-date-added-first");
const LAST: HeaderName = HeaderName::from_static("x-taxii-date-added-last");

/// A page: an envelope, a manifest or the versions of an object.
#[derive(Serialize)]
struct Page<'a> {
    /// Said of every page that holds something: some clients take no value for true.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    objects: Vec<Listed<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    versions: Vec<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Listed<'a> {
    Object(&'a RawValue),
    Record(Record<'a>),
}

/// A record of a manifest.
#[derive(Serialize)]
struct Record<'a> {
    id: &'a str,
    date_added: String,
    version: String,
    media_type: &'static str,
}

pub(super) fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(resource("/taxii2/{root}/collections/{collection}/manifest/").route(web::get().to(manifest)));
    cfg.service(
        resource("/taxii2/{root}/collections/{collection}/objects/")
            .route(web::get().to(objects))
            .route(web::post().to(hand_in::take)),
    );
    cfg.service(
        resource("/taxii2/{root}/collections/{collection}/objects/{object}/")
            .route(web::get().to(object))
            .route(web::delete().to(hand_in::retract)),
    );
    cfg.service(
        resource("/taxii2/{root}/collections/{collection}/objects/{object}/versions/")
            .route(web::get().to(versions)),
    );
}

async fn objects(
    caller: Caller,
    request: HttpRequest,
    state: web::Data<AppState>,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, TaxiiError> {
    let asked = asked_page(&request, &["id", "type", "version", "spec_version"])?;
    let page = read(caller, &state, path.into_inner().1, asked, PageOf::Objects).await?;
    Ok(paged(&page, |page| Page {
        objects: page
            .objects
            .iter()
            .map(|given| Listed::Object(&given.json))
            .collect(),
        ..Page::of(page)
    }))
}

async fn manifest(
    caller: Caller,
    request: HttpRequest,
    state: web::Data<AppState>,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, TaxiiError> {
    let asked = asked_page(&request, &["id", "type", "version", "spec_version"])?;
    let page = read(caller, &state, path.into_inner().1, asked, PageOf::Manifest).await?;
    Ok(paged(&page, |page| Page {
        objects: page
            .objects
            .iter()
            .map(|given| Listed::Record(Record::of(given)))
            .collect(),
        ..Page::of(page)
    }))
}

async fn object(
    caller: Caller,
    request: HttpRequest,
    state: web::Data<AppState>,
    path: web::Path<(String, String, String)>,
) -> Result<HttpResponse, TaxiiError> {
    let (_, collection, id) = path.into_inner();
    let mut asked = asked_page(&request, &["version", "spec_version"])?;
    asked.matches.ids = vec![id];
    let page = read(caller, &state, collection, asked, PageOf::Object).await?;
    Ok(paged(&page, |page| Page {
        objects: page
            .objects
            .iter()
            .map(|given| Listed::Object(&given.json))
            .collect(),
        ..Page::of(page)
    }))
}

async fn versions(
    caller: Caller,
    request: HttpRequest,
    state: web::Data<AppState>,
    path: web::Path<(String, String, String)>,
) -> Result<HttpResponse, TaxiiError> {
    let (_, collection, id) = path.into_inner();
    let mut asked = asked_page(&request, &["spec_version"])?;
    asked.matches.ids = vec![id];
    asked.matches.versions.all = true;
    let page = read(caller, &state, collection, asked, PageOf::Versions).await?;
    Ok(paged(&page, |page| Page {
        versions: page.objects.iter().map(version_of).collect(),
        ..Page::of(page)
    }))
}

async fn read(
    caller: Caller,
    state: &AppState,
    collection: String,
    asked: AskedPage,
    page_of: PageOf,
) -> Result<ObjectPage, TaxiiError> {
    let by = caller.by;
    let message = ReadObjects {
        by,
        collection,
        asked,
        page_of,
    };
    Ok(state.graph.call(message).await?)
}

impl<'a> Page<'a> {
    fn of(page: &'a ObjectPage) -> Self {
        Self {
            more: (!page.objects.is_empty() || page.next.is_some()).then_some(page.next.is_some()),
            next: page.next.as_deref(),
            objects: Vec::new(),
            versions: Vec::new(),
        }
    }
}

impl<'a> Record<'a> {
    fn of(given: &'a GivenObject) -> Self {
        Self {
            id: &given.id,
            date_added: date_text(given.date),
            version: version_of(given),
            media_type: STIX,
        }
    }
}

/// The time of a version: of an object without one, when it was made or added (section 5.3.1).
fn version_of(given: &GivenObject) -> String {
    given.version.clone().unwrap_or_else(|| date_text(given.date))
}

fn date_text(micros: i64) -> String {
    let date = DateTime::<Utc>::from_timestamp_micros(micros).unwrap_or_default();
    date.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// The answer, with the dates of its first and last object and the number of objects that may not leave.
fn paged<'p>(page: &'p ObjectPage, body: impl FnOnce(&'p ObjectPage) -> Page<'p>) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    let dates = page.objects.first().zip(page.objects.last());
    let dates = dates.map(|(first, last)| (first.date, last.date));
    // A client that goes on by dates gets past a page of nothing.
    let dates = dates.or_else(|| page.read_to.map(|date| (date, date)));
    if let Some((first, last)) = dates {
        for (name, date) in [(FIRST, first), (LAST, last)] {
            if let Ok(value) = HeaderValue::try_from(date_text(date)) {
                response.insert_header((name, value));
            }
        }
    }
    if page.held_back > 0 {
        response.insert_header((HELD_BACK, page.held_back));
    }
    answer(response, &body(page))
}
