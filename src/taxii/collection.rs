//! The URL of a collection's objects, and the URLs of its pages.

use std::fmt::Write;

use reqwest::Url;
use thiserror::Error;

use super::date::AddedAt;

/// Why a URL can't be registered as a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CollectionUrlError {
    #[error("the collection's URL must not contain `next`: a page token belongs to one pull")]
    Next,
    #[error("`limit` in the collection's URL must be given once, as a whole number from 1")]
    Limit,
    #[error(
        "`added_after` in the collection's URL must be given once, as a date-time such as 2024-01-31T00:00:00Z"
    )]
    AddedAfter,
    #[error("the URL names a list of collections: give the objects URL of one, .../collections/ID/objects/")]
    List,
    #[error("the URL names a manifest: give the objects URL of the collection, .../collections/ID/objects/")]
    Manifest,
}

/// The URL of a collection's objects (TAXII 2.1 section 5.4), as registered.
///
/// A trailing slash is kept or left away as given. The URL of the collection itself, `.../collections/ID/`, gets
/// `objects/` appended. Parameters such as `match[type]` are sent with every page. `limit` is the size of the pages,
/// before any setting. `added_after` is where the first pull begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionUrl {
    /// Without query and fragment.
    objects: Url,
    /// The registered parameters, as they were written.
    kept: String,
    pub(super) limit: Option<u32>,
    pub(super) added_after: Option<String>,
}

/// The parameters of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageQuery<'a> {
    pub added_after: Option<&'a str>,
    pub limit: u32,
    pub next: Option<&'a str>,
}

impl CollectionUrl {
    /// Checks and normalises a URL. Which schemes and hosts it may name is for the policy of the HTTP client to say.
    ///
    /// # Errors
    /// [`CollectionUrlError`] names the rule that the URL breaks.
    pub fn parse(url: &Url) -> Result<Self, CollectionUrlError> {
        let mut objects = url.clone();
        objects.set_query(None);
        objects.set_fragment(None);
        append_objects(&mut objects)?;

        let mut this = CollectionUrl {
            objects,
            kept: String::new(),
            limit: None,
            added_after: None,
        };
        // `query_pairs` leaves out empty pairs too, so the two run in step.
        let written = url
            .query()
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty());
        for (written, (name, value)) in written.zip(url.query_pairs()) {
            match name.as_ref() {
                "next" => return Err(CollectionUrlError::Next),
                "limit" if this.limit.is_some() => return Err(CollectionUrlError::Limit),
                "limit" => this.limit = Some(page_size(&value)?),
                "added_after" if this.added_after.is_some() => return Err(CollectionUrlError::AddedAfter),
                "added_after" => this.added_after = Some(start(&value)?),
                _ => push_pair(&mut this.kept, written),
            }
        }
        Ok(this)
    }

    /// The URL of a page.
    pub(super) fn page(&self, query: &PageQuery<'_>) -> Url {
        self.with(self.objects.clone(), query, None)
    }

    /// The URL of the manifest (section 5.3), restricted to one object. `None` if the objects are not served at
    /// `.../objects/`, or if the registered parameters already select objects by id.
    pub(super) fn manifest(&self, query: &PageQuery<'_>, id: &str) -> Option<Url> {
        if self.kept.contains("match[id]") || self.kept.contains("match%5Bid%5D") {
            return None;
        }
        let (path, slash) = match self.objects.path().strip_suffix('/') {
            Some(path) => (path, "/"),
            None => (self.objects.path(), ""),
        };
        let path = format!("{}/manifest{slash}", path.strip_suffix("/objects")?);
        let mut manifest = self.objects.clone();
        manifest.set_path(&path);
        Some(self.with(manifest, query, Some(id)))
    }

    fn with(&self, mut url: Url, query: &PageQuery<'_>, id: Option<&str>) -> Url {
        let mut text = self.kept.clone();
        let limit = query.limit.to_string();
        let own = [
            ("added_after", query.added_after),
            ("limit", Some(limit.as_str())),
            ("next", query.next),
            ("match[id]", id),
        ];
        for (name, value) in own {
            if let Some(value) = value {
                push_pair(&mut text, name);
                text.push('=');
                encode(&mut text, value);
            }
        }
        url.set_query(Some(&text));
        url
    }
}

/// Appends `objects/` to the path of a collection, and refuses paths that can't be a collection's objects.
fn append_objects(url: &mut Url) -> Result<(), CollectionUrlError> {
    let path = url.path().trim_end_matches('/').to_owned();
    let mut parents = path.rsplit('/');
    match (parents.next(), parents.next(), parents.next()) {
        (Some("collections"), ..) => Err(CollectionUrlError::List),
        (Some("manifest"), _, Some("collections")) => Err(CollectionUrlError::Manifest),
        (_, Some("collections"), _) => {
            url.set_path(&format!("{path}/objects/"));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn page_size(value: &str) -> Result<u32, CollectionUrlError> {
    value
        .parse()
        .ok()
        .filter(|limit| *limit > 0)
        .ok_or(CollectionUrlError::Limit)
}

/// A `+` before an offset arrives as a space if it was not escaped.
fn start(value: &str) -> Result<String, CollectionUrlError> {
    AddedAt::parse(value)
        .or_else(|| AddedAt::parse(&value.replace(' ', "+")))
        .map(|date| date.text)
        .ok_or(CollectionUrlError::AddedAfter)
}

fn push_pair(query: &mut String, pair: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(pair);
}

/// Escapes all but the unreserved characters (RFC 3986 section 2.3).
fn encode(query: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            let _ = write!(query, "%{byte:02X}");
        }
    }
}
