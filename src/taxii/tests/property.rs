//! Whatever the collection, the server's style and the interruptions: every object is delivered at least once, and the
//! cursor never claims more than was delivered. A pull of a collection without later dates repeats the latest instant
//! and leaves the cursor alone.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use chrono::TimeDelta;
use proptest::prelude::*;
use test_support::extent;

use super::model::{Dates, Model, Paging, Style};
use super::*;
use crate::taxii::date::AddedAt;

/// More pages than a run can have.
const MAX_ROUNDS: usize = 5_000;

/// What happens at a page.
#[derive(Debug, Clone, Copy)]
enum Event {
    Nothing,
    /// The server adds objects, so many microseconds after the ones before.
    Adds(usize, i64),
    /// The answer is lost after the server has made it.
    LosesAnswer,
    /// The request never arrives.
    LosesRequest,
    /// The process dies after the page is durable, before its cursor is.
    DiesBeforeCursor,
    /// The process dies once the cursor is durable, while the next request is under way.
    DiesAfterRequest,
    /// The server restarts.
    ServerForgets,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(Event::Nothing),
        1 => (1usize..6, 0i64..2).prop_map(|(count, later)| Event::Adds(count, later)),
        1 => Just(Event::LosesAnswer),
        1 => Just(Event::LosesRequest),
        1 => Just(Event::DiesBeforeCursor),
        1 => Just(Event::DiesAfterRequest),
        1 => Just(Event::ServerForgets),
    ]
}

fn style() -> impl Strategy<Value = Style> {
    let paging = prop_oneof![
        Just(Paging::Offset),
        Just(Paging::PageNumber),
        Just(Paging::Overlap),
        Just(Paging::Shared),
        Just(Paging::Date),
    ];
    let dates = prop_oneof![
        3 => Just(Dates::Headers),
        1 => Just(Dates::Manifest),
        1 => Just(Dates::AbsurdHeaders),
        1 => Just(Dates::Nowhere),
    ];
    let flags = (any::<bool>(), any::<bool>());
    (paging, dates, 1usize..8, flags).prop_map(|(paging, dates, cap, (inclusive, whole_seconds))| {
        // Without tokens the server must tell dates, and deliver pages that hold an instant.
        let by_date = paging == Paging::Date;
        let dates = if by_date && dates == Dates::Nowhere {
            Dates::Headers
        } else {
            dates
        };
        Style {
            paging,
            dates,
            cap: if by_date { 1_000 } else { cap },
            inclusive,
            whole_seconds,
        }
    })
}

/// Batches of objects of one instant: how many, and how many microseconds after the batch before.
fn batches() -> impl Strategy<Value = Vec<(usize, i64)>> {
    let gap = prop_oneof![Just(1), 1i64..2_000, 1i64..3_000_000, Just(1_000_000)];
    proptest::collection::vec((1usize..12, gap), 0..8)
}

/// A run of pulls against a model.
struct World {
    model: Arc<Mutex<Model>>,
    server: Server,
    /// The next answer to lose, and whether the server makes it.
    loses: Arc<Mutex<Option<bool>>>,
    settings: PullSettings,
    /// What is durable.
    delivered: BTreeSet<String>,
    cursor: PullCursor,
}

impl World {
    fn new(style: Style, batches: &[(usize, i64)], page_objects: u32) -> Self {
        let mut model = Model::new(style);
        for (count, gap) in batches {
            model.add(*count, TimeDelta::microseconds(*gap));
        }
        let (model, loses) = (Arc::new(Mutex::new(model)), Arc::new(Mutex::new(None)));
        let (its_model, its_loses) = (Arc::clone(&model), Arc::clone(&loses));
        let server = Server::new(move |asked| {
            let lost: Option<bool> = its_loses.lock().unwrap().take();
            if lost == Some(false) {
                return Err(OutboundError::Timeout { ms: 8000 });
            }
            let reply = its_model.lock().unwrap().reply(asked);
            if lost.is_some() {
                Err(OutboundError::Timeout { ms: 8000 })
            } else {
                reply
            }
        });
        let settings = PullSettings {
            page_objects,
            ..PullSettings::default()
        };
        World {
            model,
            server,
            loses,
            settings,
            delivered: BTreeSet::new(),
            cursor: PullCursor::default(),
        }
    }

    fn add(&self, count: usize, micros_later: i64) {
        let later = TimeDelta::microseconds(micros_later);
        self.model.lock().unwrap().add(count, later);
    }

    fn pull(&self) -> Pull<Server> {
        // As it comes back from the store.
        let json = serde_json::to_string(&self.cursor).unwrap();
        let cursor = serde_json::from_str(&json).unwrap();
        pull_with(&self.server, OBJECTS, cursor, self.settings)
    }

    /// Reads to the end; one event before each page. Returns what came.
    async fn read(&mut self, events: &mut impl Iterator<Item = Event>) -> Vec<String> {
        let mut came = Vec::new();
        let mut pull = self.pull();
        for _ in 0..MAX_ROUNDS {
            let event = events.next().unwrap_or(Event::Nothing);
            match event {
                Event::Adds(count, later) => self.add(count, later),
                Event::LosesAnswer | Event::DiesAfterRequest => *self.loses.lock().unwrap() = Some(true),
                Event::LosesRequest => *self.loses.lock().unwrap() = Some(false),
                Event::ServerForgets => self.model.lock().unwrap().forget_tokens(),
                Event::Nothing | Event::DiesBeforeCursor => {}
            }
            let page = match pull.next_page().await {
                Ok(page) => page,
                // A process that is alive may ask the same pull again; one that died begins a new one.
                Err(PullError::Timeout { .. }) if !matches!(event, Event::DiesAfterRequest) => continue,
                // A token that was refused twice ends a pull, too.
                Err(PullError::Timeout { .. } | PullError::Status { .. }) => {
                    pull = self.pull();
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let Some(page) = page else { return came };
            came.extend(names(&page));
            self.delivered.extend(names(&page));
            if matches!(event, Event::DiesBeforeCursor) {
                pull = self.pull();
            } else {
                self.cursor = page.cursor;
            }
            self.check_cursor();
            if !self.cursor.is_unfinished() && page.last {
                return came;
            }
        }
        panic!("no end after {MAX_ROUNDS} pages");
    }

    /// The cursor claims nothing that is not durable.
    fn check_cursor(&self) {
        let model = self.model.lock().unwrap();
        if let Some(date) = self.cursor.added_after() {
            for name in model.up_to(date) {
                assert!(
                    self.delivered.contains(name),
                    "{name} is before {date}, but was not delivered"
                );
            }
        }
    }

    /// Pulls when nothing has a later date than what was delivered: exactly what is behind the cursor comes, once more.
    async fn read_again(&mut self) {
        let before = self.cursor.clone();
        let came = self.read(&mut std::iter::empty()).await;
        assert_eq!(self.cursor, before);
        let model = self.model.lock().unwrap();
        let behind = model.after(self.cursor.added_after());
        let behind: BTreeSet<String> = behind.into_iter().map(|(name, _)| name).collect();
        let names: BTreeSet<String> = came.iter().cloned().collect();
        assert_eq!(names, behind);
        if !matches!(model.style.paging, Paging::Overlap | Paging::Date) {
            assert_eq!(came.len(), names.len());
        }
    }

    /// The cursor is before the latest instant, but by no more than the step that its date shows.
    fn check_distance(&self) {
        let model = self.model.lock().unwrap();
        let Some(cursor) = self.cursor.added_after() else {
            assert_eq!(model.style.dates, Dates::Nowhere);
            return;
        };
        let cursor = AddedAt::parse(cursor).unwrap().at;
        let (last, step) = model.last_instant();
        assert!(cursor < last && cursor >= last - step, "{cursor} {last}");
    }

    fn check_complete(&self) {
        for name in self.model.lock().unwrap().names() {
            assert!(self.delivered.contains(name), "{name} was not delivered");
        }
    }
}

fn run(style: Style, batches: &[(usize, i64)], page_objects: u32, events: Vec<Event>, late: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(style, batches, page_objects);
        world.read(&mut events.into_iter()).await;
        // What was added during the first pull, and more.
        world.add(3, 1);
        world.read(&mut std::iter::empty()).await;
        world.check_complete();
        world.check_distance();
        // A bulk load with one date goes on after the pull has ended.
        world.add(late, 0);
        for _ in 0..3 {
            world.read_again().await;
            world.check_complete();
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent(128, 512)))]

    #[test]
    fn nothing_is_skipped(
        style in style(),
        batches in batches(),
        page_objects in 1u32..10,
        events in proptest::collection::vec(event(), 0..24),
        late in 0usize..12,
    ) {
        run(style, &batches, page_objects, events, late);
    }
}
