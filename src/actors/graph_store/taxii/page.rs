//! A page of a collection: a range of the list of additions, whatever the size of the collection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta};
use uuid::Uuid;

use super::reader::{GivenObject, Reader, author_of};
use crate::actors::audit_writer::Append;
use crate::actors::graph_store::GraphCore;
use crate::actors::graph_store::export::ExportLimits;
use crate::actors::worker::{Access, Work};
use crate::clock;
use crate::domain::audit::{AuditEntry, Outcome};
use crate::domain::cursor_seal::CursorSeal;
use crate::domain::error::DomainError;
use crate::domain::principal::{Principal, Workspace};
use crate::domain::stix::export::{self, ExportObject};
use crate::domain::stix::marking::definitions_up_to;
use crate::domain::stix::object::text;
use crate::domain::taxii::asked::ObjectMatch;
use crate::domain::tlp::Tlp;
use crate::store::{DatedAddition, LeavingRows};

/// Most entries that a request looks at, and most of them that it reads the rows of.
const MOST_ENTRIES: usize = 20_000;
const MOST_ROWS: usize = 2_000;
/// Objects of a page beyond which it steps back behind other requests: a pull of a whole collection reads such pages.
const SMALL_PAGE: usize = 100;
/// Longest time that a request waits until what is older than the list is in it, and the pause between two looks.
const FILLING: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(50);

/// What a request answers with, as the audit log names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageOf {
    Objects,
    Manifest,
    Object,
    Versions,
}

/// Reads a page of a collection.
#[derive(Debug)]
pub struct ReadObjects {
    pub by: Principal,
    /// Id or alias of the collection.
    pub collection: String,
    pub asked: AskedPage,
    pub page_of: PageOf,
}

/// Which page is asked for.
#[derive(Debug, Clone, Default)]
pub struct AskedPage {
    pub matches: ObjectMatch,
    /// Only what was added later, in microseconds.
    pub added_after: Option<i64>,
    /// Where an earlier page ended.
    pub next: Option<String>,
    pub limit: usize,
}

/// Where a page of named objects begins: behind a date, and behind so many objects of the next one. An object and its older
/// versions, or those of another one, may share a date.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begin {
    pub after: i64,
    pub skip: usize,
}

impl Begin {
    /// Behind so many objects of a date.
    pub fn behind(date: i64, count: usize) -> Self {
        Self {
            after: date.saturating_sub(1),
            skip: count,
        }
    }

    pub fn seal(self, seal: &CursorSeal) -> String {
        let skip = u32::try_from(self.skip).unwrap_or(u32::MAX);
        let bytes = [&self.after.to_be_bytes()[..], &skip.to_be_bytes()[..]].concat();
        seal.seal(&bytes)
    }
}

/// A page of a collection.
#[derive(Debug, Default)]
pub struct ObjectPage {
    /// In the order of their dates.
    pub objects: Vec<GivenObject>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
    /// The date up to which the list was read, if nothing of it is on the page and more follows.
    pub read_to: Option<i64>,
    /// Objects that may not leave.
    pub held_back: u64,
}

impl PageOf {
    /// Whether the path of the request names an object.
    fn names_an_object(self) -> bool {
        matches!(self, Self::Object | Self::Versions)
    }

    fn action(self) -> &'static str {
        match self {
            Self::Objects => "taxii.objects",
            Self::Manifest => "taxii.manifest",
            Self::Object => "taxii.object",
            Self::Versions => "taxii.versions",
        }
    }
}

impl Work for ReadObjects {
    type Core = GraphCore;
    type Reply = ObjectPage;
    const NAME: &'static str = "read_objects";
    const ACCESS: Access = Access::Read;

    fn tenant(&self) -> Uuid {
        self.by.workspace.id
    }

    fn is_bulk(&self) -> bool {
        self.asked.limit > SMALL_PAGE
    }

    async fn run(self, core: Arc<GraphCore>) -> Result<Self::Reply, DomainError> {
        let (by, asked) = (&self.by, &self.asked);
        let view = core.collection_named(by, &self.collection).await?;
        if !view.can_read {
            return Err(DomainError::Forbidden("this collection can't be read".into()));
        }
        let limits = core.limits_of(by).await?;
        let up_to = Self::list_end(&core, by.workspace.id, &limits).await?;
        let reader = Reader::new(&core, by, limits, (&view.contents, &asked.matches));
        let page = match asked.matches.ids.is_empty() {
            true => core.page(reader, asked, up_to).await?,
            false => core.named_page(reader, asked, up_to).await?,
        };
        if page.objects.is_empty() && self.page_of.names_an_object() {
            self.require_object(&core, up_to).await?;
        }
        let action = self.page_of.action();
        let entry = AuditEntry::by(by, action, "collection", Outcome::Success, clock::now())
            .on(view.id)
            .with("objects", page.objects.len() as u64)
            .with("held_back", page.held_back);
        core.graph.audit().call(Append(entry)).await?;
        Ok(page)
    }
}

impl ReadObjects {
    /// Fails if the collection does not hold the named object at all, in whatever version and whenever it was added.
    async fn require_object(&self, core: &GraphCore, up_to: i64) -> Result<(), DomainError> {
        let view = core.collection_named(&self.by, &self.collection).await?;
        let asked = AskedPage {
            matches: ObjectMatch {
                ids: self.asked.matches.ids.clone(),
                ..ObjectMatch::default()
            },
            limit: 1,
            ..AskedPage::default()
        };
        let limits = core.limits_of(&self.by).await?;
        let reader = Reader::new(core, &self.by, limits, (&view.contents, &asked.matches));
        match core.named_page(reader, &asked, up_to).await?.objects.is_empty() {
            true => Err(DomainError::NotFound("object")),
            false => Ok(()),
        }
    }

    /// The end of the list of additions. Has the list kept up to date where it is not.
    ///
    /// # Errors
    /// `Busy` while what is older than the list is entered into it, if that takes long.
    async fn list_end(core: &Arc<GraphCore>, ws: Uuid, limits: &ExportLimits) -> Result<i64, DomainError> {
        let mut state = core.graph.store.additions_state(ws).await?;
        let mut blocked = limits.blocked.clone();
        blocked.sort_unstable();
        let leaving = LeavingRows {
            highest: limits.highest,
            blocked,
        };
        let is_empty = state.end == Some(0);
        let is_kept = state.end.is_some() && state.noted.as_ref() == Some(&leaving) && !state.adds_again;
        if !is_kept && !is_empty && core.keeping_lists.lock().insert(ws) {
            tokio::spawn(Arc::clone(core).keep_list(ws, leaving));
        }
        let until = Instant::now() + FILLING;
        while state.end.is_none() && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
            state = core.graph.store.additions_state(ws).await?;
        }
        let end = state.end.ok_or(DomainError::Busy {
            actor: "the list of additions",
        })?;
        core.shown_end(ws, end).await
    }
}

impl GraphCore {
    /// The end of the list as far as the search index knows of the writes: what an object refers to is found there, and one
    /// whose target is not found yet would be left out for ever.
    async fn shown_end(&self, ws: Uuid, end: i64) -> Result<i64, DomainError> {
        self.graph.index_of(ws).await?;
        let shown = self.graph.state(ws).wait_until_visible().await?;
        let next = self.graph.store.first_date_after(ws, shown).await?;
        Ok(next.map_or(end, |first| end.min(first.saturating_sub(1))))
    }

    /// Brings the list of additions of a workspace up to date: what is older than the list, and what could not leave before
    /// and can now. One task at a time for each workspace; what is interrupted, the next request begins again.
    async fn keep_list(self: Arc<Self>, ws: Uuid, leaving: LeavingRows) {
        let kept = async {
            self.fill_list(ws).await?;
            let state = self.graph.state(ws);
            {
                let _turn = self.graph.turn(ws, &state).await?;
                self.graph.store.note_leaving(ws, &leaving).await?;
            }
            let mut is_done = false;
            while !is_done {
                let _turn = self.graph.turn(ws, &state).await?;
                is_done = self.graph.store.add_again(ws).await?;
            }
            Ok::<(), DomainError>(())
        };
        if let Err(error) = kept.await {
            tracing::warn!(workspace = %ws, ?error, "keeping the list of additions was interrupted");
        }
        self.keeping_lists.lock().remove(&ws);
    }

    /// Enters what is older than the list of additions of a workspace into it.
    pub(in crate::actors::graph_store) async fn fill_list(&self, ws: Uuid) -> Result<(), DomainError> {
        let state = self.graph.state(ws);
        let mut is_done = false;
        while !is_done {
            let _turn = self.graph.turn(ws, &state).await?;
            is_done = self.graph.store.fill_additions(ws).await?;
        }
        Ok(())
    }

    pub(super) fn list_seal(&self, ws: Uuid) -> CursorSeal {
        self.graph.store.id_secret().seal("additions", ws)
    }

    async fn page(
        &self,
        mut reader: Reader<'_>,
        asked: &AskedPage,
        up_to: i64,
    ) -> Result<ObjectPage, DomainError> {
        let workspace = reader.workspace;
        let (ws, highest) = (workspace.id, workspace.clearance().highest());
        let seal = self.list_seal(ws);
        let after = asked.begin(&seal)?;
        let mut page = ObjectPage {
            objects: standing_objects(workspace, &asked.matches, after)?,
            ..ObjectPage::default()
        };
        let levels = Tlp::ALL.into_iter().filter(|level| *level <= highest);
        let store = &self.graph.store;
        let mut list = store.addition_reader(ws, levels, (after, up_to));
        let (mut looked_at, mut rows, mut is_at_end) = (0, 0, false);
        let mut read_to = after;
        // One more than asked for: only an object that is given tells that there are more.
        while page.objects.len() <= asked.limit && !is_at_end && looked_at < MOST_ENTRIES && rows < MOST_ROWS
        {
            let mut entries: Vec<DatedAddition> = Vec::new();
            while entries.len() <= asked.limit - page.objects.len() && looked_at < MOST_ENTRIES {
                let Some(entry) = list.next().await? else {
                    is_at_end = true;
                    break;
                };
                looked_at += 1;
                read_to = entry.date;
                entries.extend(Some(entry).filter(|entry| reader.admits_entry(entry)));
            }
            rows += entries.len();
            let given = reader.objects(&entries).await?;
            page.objects.extend(given.objects);
            page.held_back += given.held;
        }
        if page.objects.len() > asked.limit {
            page.objects.truncate(asked.limit);
            read_to = page.objects.last().map_or(read_to, |last| last.date);
        } else if is_at_end {
            return Ok(page);
        }
        page.next = Some(seal.seal(&read_to.to_be_bytes()));
        page.read_to = Some(read_to);
        Ok(page)
    }
}

impl AskedPage {
    /// Where a page of named objects begins.
    pub(super) fn begin_of_named(&self, seal: &CursorSeal) -> Result<Begin, DomainError> {
        let opened = self.next.as_deref().and_then(|text| seal.open(text));
        let bytes = opened.and_then(|bytes| <[u8; 12]>::try_from(bytes).ok());
        let Some([a, b, c, d, e, f, g, h, skip @ ..]) = bytes else {
            let after = self.begin(seal)?;
            return Ok(Begin { after, skip: 0 });
        };
        let after = i64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let skip = usize::try_from(u32::from_be_bytes(skip)).unwrap_or(usize::MAX);
        // A date that is asked for beside it leaves out more.
        match self.added_after {
            Some(asked) if asked > after => Ok(Begin {
                after: asked,
                skip: 0,
            }),
            Some(_) | None => Ok(Begin { after, skip }),
        }
    }

    /// The date behind which the page begins.
    pub(super) fn begin(&self, seal: &CursorSeal) -> Result<i64, DomainError> {
        let rule = "must be the `next` of an earlier answer";
        let next = match &self.next {
            None => i64::MIN,
            Some(text) => {
                let opened = seal.open(text).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
                let bytes = opened.ok_or_else(|| DomainError::invalid("next", rule))?;
                i64::from_be_bytes(bytes)
            }
        };
        Ok(next.max(self.added_after.unwrap_or(i64::MIN)))
    }
}

/// What every collection begins with: the definitions of the markings that the reader may see, and the identity of the
/// workspace, which objects made here refer to. Their dates are before all others.
pub(super) fn standing_objects(
    workspace: &Workspace,
    asked: &ObjectMatch,
    after: i64,
) -> Result<Vec<GivenObject>, DomainError> {
    let begin = workspace.created_at.checked_sub_signed(TimeDelta::seconds(1));
    let begin = begin.unwrap_or(DateTime::UNIX_EPOCH).timestamp_micros();
    let definitions = definitions_up_to(workspace.clearance().highest()).into_iter();
    let author = ExportObject::of_definition(author_of(workspace));
    let author = export::single(author, |_| false).ok();
    let all = definitions.chain(author);
    let dated = (begin..).zip(all).filter(|(date, object)| {
        let part = |name| {
            object
                .as_object()
                .and_then(|object| text(object, name))
                .unwrap_or_default()
        };
        let is_named = asked.ids.is_empty() || asked.ids.iter().any(|id| id == part("id"));
        let is_version = || asked.versions.admits_only(part("created").parse().ok());
        *date > after && is_named && asked.admits_type(part("type")) && is_version()
    });
    dated
        .map(|(date, object)| GivenObject::new(date, &object))
        .collect()
}
