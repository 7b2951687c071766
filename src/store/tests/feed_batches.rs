//! Batches of feeds: runs that died, commits that meet a change, and what retention leaves behind.

use std::sync::Arc;

use std::time::Duration;

use chrono::{Datelike, TimeDelta};

use super::feeds::{MARKING, feed, object, register};
use super::*;
use crate::domain::error::DomainError;
use crate::domain::feed::stage::{StagedPage, Stager};
use crate::domain::feed::{BatchState, Change, FeedItem, InputKind, ItemStatus, Redistribution};
use crate::store::feeds::batches::UPSERT;
use crate::store::feeds::rows::FeedPulseRow;
use crate::store::{
    ItemDecision, NewFeedBatch, PageWrite, PullStart, ReceivedPage, Review, StixIngestOutcome, StixOrigin,
};

const TOOL: &str = "tool--00000000-0000-4000-8000-000000000001";
const AMBER: &str = "marking-definition--f88d31f6-486f-44da-b317-01333bde0b82";
const RED: &str = "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed";

/// A workspace with one feed.
struct Scene {
    store: Store,
    ws: Uuid,
    feed: Uuid,
}

impl Scene {
    async fn new(url: &str) -> Self {
        let (store, ws) = (open(url).await, Uuid::new_v4());
        let feed = feed("Feed", Redistribution::Allowed);
        register(&store, ws, &feed).await;
        Self {
            store,
            ws,
            feed: feed.id,
        }
    }

    async fn begin(&self, batch: Uuid, resumed: bool, now: DateTime<Utc>) -> Result<PullStart, DomainError> {
        let new = NewFeedBatch {
            id: batch,
            feed: Some(self.feed),
            user: Uuid::new_v4(),
            input_kind: InputKind::TaxiiPull,
            default_tlp: Tlp::Amber,
            now,
        };
        let audit = entry(self.ws, "feed.pull");
        self.store.begin_pull(self.ws, &new, resumed, &audit).await
    }

    /// Stages a page, which is the last one.
    async fn stage(&self, batch: Uuid, run: i64, objects: Vec<Value>) -> Result<(), DomainError> {
        let write = PageWrite {
            batch,
            run,
            page: page(objects),
            received: None,
            cursor: Some("{}".into()),
            last: Some(entry(self.ws, "feed.pull_done")),
            highest: Tlp::Red,
            now: clock::now(),
        };
        self.store.stage_page(self.ws, &write).await
    }

    /// A batch in review with these objects.
    async fn pulled(&self, objects: Vec<Value>) -> Uuid {
        let batch = Uuid::now_v7();
        let begun = self.begin(batch, false, clock::now()).await.unwrap();
        self.stage(batch, begun.run, objects).await.unwrap();
        batch
    }

    async fn decide(&self, batch: Uuid, place: usize, status: Option<ItemStatus>, level: Option<Tlp>) {
        let items = self.items(batch).await;
        let decision = ItemDecision::of(status, level).unwrap();
        let audit = entry(self.ws, "feed.item_change");
        self.store
            .decide_item(
                self.ws,
                (batch, items[place].id),
                decision,
                Tlp::Red,
                (clock::now(), &audit),
            )
            .await
            .unwrap();
    }

    async fn items(&self, batch: Uuid) -> Vec<FeedItem> {
        let all = (None, 100);
        self.store
            .feed_items(self.ws, batch, all, None, Tlp::Red)
            .await
            .unwrap()
    }

    /// All items of the batch as a commit finds them.
    async fn review(&self, batch: Uuid) -> (Review, Vec<Value>) {
        let ids: Vec<_> = self.items(batch).await.iter().map(|item| item.id).collect();
        let chosen = (Some(ids.as_slice()), 100);
        let choice = self
            .store
            .items_to_commit(self.ws, batch, chosen, Tlp::Red)
            .await
            .unwrap();
        let review = Review {
            batch,
            items: choice.items.iter().map(|chosen| chosen.item.clone()).collect(),
        };
        let texts = choice
            .items
            .iter()
            .map(|item| &item.object)
            .chain(&choice.support);
        let objects = texts.map(|text| serde_json::from_str(text).unwrap()).collect();
        (review, objects)
    }

    async fn commit(
        &self,
        (review, objects): (Review, Vec<Value>),
    ) -> Result<StixIngestOutcome, DomainError> {
        let mut plan = ingest::plan(objects.into(), defaults(Tlp::Green), Markings::new());
        review.mark(&mut plan);
        let origin = StixOrigin {
            feed: Some(self.feed),
            review: Some(review),
            ..origin(&self.store, self.ws).await
        };
        let audit = entry(self.ws, "feed.commit");
        self.store
            .ingest_stix(self.ws, &plan, &origin, clock::now(), |_, _| audit.clone())
            .await
    }

    async fn state(&self, batch: Uuid) -> BatchState {
        let found = self.store.feed_batch(self.ws, batch, Tlp::Red).await.unwrap();
        found.unwrap().status
    }

    async fn tlp_of_tool(&self) -> i64 {
        let query = "SELECT VALUE tlp_rank FROM node";
        let ranks: Vec<i64> = self.store.db.query(query).await.unwrap().take(0).unwrap();
        assert_eq!(ranks.len(), 1);
        ranks[0]
    }
}

fn defaults(tlp: Tlp) -> StixDefaults {
    StixDefaults {
        tlp,
        confidence: 0.5,
        now: DateTime::<Utc>::UNIX_EPOCH,
    }
}

fn page(objects: Vec<Value>) -> StagedPage {
    let stager = Stager {
        markings: Markings::new(),
        default_tlp: Tlp::Green,
        warninglists: Arc::default(),
    };
    stager.page(ingest::plan(
        objects.into(),
        defaults(Tlp::Green),
        Markings::new(),
    ))
}

fn tool(year: u32, markings: &[&str]) -> Value {
    let mut tool = object(TOOL, year, json!({"name": "Tool"}));
    if !markings.is_empty() {
        tool["object_marking_refs"] = json!(markings);
    }
    tool
}

#[test]
fn a_run_that_died_is_ended_with_its_entry_and_what_it_does_late_is_refused() {
    run_on_each(|url| async move {
        let scene = Scene::new(&url).await;
        let (batch, begun) = (Uuid::now_v7(), clock::now());
        let first = scene.begin(batch, false, begun).await.unwrap();
        let other = Uuid::now_v7();
        let busy = scene.begin(other, false, begun + TimeDelta::seconds(59)).await;
        let busy = busy.unwrap_err().to_string();
        assert!(
            busy.contains("is being pulled") && !busy.contains(&batch.to_string()),
            "{busy}"
        );

        let later = begun + TimeDelta::seconds(61);
        let second = scene.begin(batch, true, later).await.unwrap();
        let interrupted = second.interrupted.unwrap();
        assert_eq!(interrupted.action, "feed.pull_failed");
        let audited = rows(&scene.store.db, "audit_entry").await.join("\n");
        assert!(audited.contains(&interrupted.id.to_string()), "{audited}");

        let late = scene.stage(batch, first.run, vec![tool(2021, &[])]).await;
        assert!(late.unwrap_err().to_string().contains("taken over"));
        let audit = entry(scene.ws, "feed.pull_failed");
        let (run, now) = (Some(first.run), clock::now());
        let ended = scene
            .store
            .fail_pull(scene.ws, (batch, run), "late", now, &audit)
            .await;
        assert!(!ended.unwrap(), "the run under way is another one");
        assert_eq!(scene.state(batch).await, BatchState::Pulling);
        scene
            .stage(batch, second.run, vec![tool(2021, &[])])
            .await
            .unwrap();
        assert_eq!(scene.items(batch).await.len(), 1);
        let none = scene
            .store
            .abandoned_pulls(later + TimeDelta::days(1))
            .await
            .unwrap();
        assert!(none.is_empty(), "{none:?}");
    });
}

/// A page that takes longer than the pause between two signs of life is staged all the same.
#[test]
fn the_last_page_is_staged_beside_signs_of_life() {
    run_on_each(|url| async move {
        let scene = Scene::new(&url).await;
        let batch = Uuid::now_v7();
        let begun = scene.begin(batch, false, clock::now()).await.unwrap();
        let id = |number| format!("tool--00000000-0000-4000-8000-{number:012}");
        let objects = (0..100).map(|number| object(&id(number), 2021, json!({"name": "Tool"})));
        let objects = objects.collect();
        let staged = scene.stage(batch, begun.run, objects);
        let alive = async {
            loop {
                scene
                    .store
                    .keep_pull_alive(scene.ws, batch, clock::now())
                    .await
                    .ok();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            staged = staged => staged.unwrap(),
            () = alive => {}
        }
        assert_eq!(scene.state(batch).await, BatchState::Review);
        assert_eq!(scene.items(batch).await.len(), 100);
        // On a busy machine the last sign outlives all attempts to remove it, and the sweep does that.
        let later = clock::now() + TimeDelta::days(1);
        let audit = entry(scene.ws, "feed.pull_failed");
        for (ws, batch) in scene.store.abandoned_pulls(later).await.unwrap() {
            let ended = scene.store.fail_pull(ws, (batch, None), "late", later, &audit);
            assert!(!ended.await.unwrap());
        }
        assert_eq!(scene.state(batch).await, BatchState::Review);
        assert!(rows(&scene.store.db, "feed_pulse").await.is_empty());
    });
}

/// A process that dies after staging the last page leaves a sign of life behind. The sweep removes it.
#[test]
fn a_sign_of_life_of_a_batch_in_review_is_swept_away() {
    run_on_each(|url| async move {
        let scene = Scene::new(&url).await;
        let batch = scene.pulled(vec![tool(2021, &[])]).await;
        assert!(rows(&scene.store.db, "feed_pulse").await.is_empty());
        let pulse = FeedPulseRow::new(scene.ws, batch, clock::now());
        let tx = scene.store.begin().await.unwrap();
        let left = tx.write(UPSERT, vec![pulse]).await;
        tx.finish(left).await.unwrap();
        let later = clock::now() + TimeDelta::days(1);
        let abandoned = scene.store.abandoned_pulls(later).await.unwrap();
        assert_eq!(abandoned, [(scene.ws, batch)]);
        let audit = entry(scene.ws, "feed.pull_failed");
        let ended = scene
            .store
            .fail_pull(scene.ws, (batch, None), "late", later, &audit);
        assert!(!ended.await.unwrap());
        assert_eq!(scene.state(batch).await, BatchState::Review);
        assert!(scene.store.abandoned_pulls(later).await.unwrap().is_empty());
    });
}

#[test]
fn a_reviewers_marking_counts_for_its_version_only() {
    run_on_each(|url| async move {
        let scene = Scene::new(&url).await;
        let batch = scene.pulled(vec![tool(2021, &[])]).await;
        scene
            .decide(batch, 0, Some(ItemStatus::Accepted), Some(Tlp::White))
            .await;
        let begun = scene.begin(Uuid::now_v7(), false, clock::now()).await.unwrap();
        let newer = begun.feed.running_batch_id.unwrap();
        scene
            .stage(newer, begun.run, vec![tool(2022, &[AMBER])])
            .await
            .unwrap();

        // Both versions in one commit, as if they were in one batch: the newer one states AMBER.
        let (mut review, mut objects) = scene.review(newer).await;
        let (older, older_objects) = scene.review(batch).await;
        objects.extend(older_objects);
        let mut plan = ingest::plan(objects.into(), defaults(Tlp::Green), Markings::new());
        review.items.extend(older.items);
        review.mark(&mut plan);
        assert_eq!(plan.nodes.len(), 1);
        assert_eq!(plan.nodes[0].tlp, Tlp::Amber);
    });
}

/// A batch that both versions are in, as two pages of one pull leave it.
async fn two_pages(scene: &Scene, pages: [Value; 2]) -> Uuid {
    let batch = Uuid::now_v7();
    let begun = scene.begin(batch, false, clock::now()).await.unwrap();
    let [first, second] = pages;
    let mut write = PageWrite {
        batch,
        run: begun.run,
        page: page(vec![first]),
        received: Some(ReceivedPage { unreadable: 0 }),
        cursor: Some("{}".into()),
        last: None,
        highest: Tlp::Red,
        now: clock::now(),
    };
    scene.store.stage_page(scene.ws, &write).await.unwrap();
    write.page = page(vec![second]);
    write.last = Some(entry(scene.ws, "feed.pull_done"));
    scene.store.stage_page(scene.ws, &write).await.unwrap();
    batch
}

/// A newer version that states no marking keeps that of an older one, whether the older one is staged, stored, or
/// committed along with it.
#[test]
fn of_two_versions_that_are_committed_together_a_silent_one_keeps_the_marking() {
    run_on_each(|url| async move {
        let scene = Scene::new(&url).await;
        let batch = two_pages(&scene, [tool(2021, &[RED]), tool(2022, &[])]).await;
        let items = scene.items(batch).await;
        assert_eq!(items.len(), 2);
        let newer = &items[1];
        assert_eq!((newer.proposed_tlp, newer.modified.year()), (Tlp::Red, 2022));
        assert_eq!(
            newer.warnings,
            ["states no marking: TLP:RED of an earlier version is proposed"]
        );
        let (review, objects) = scene.review(batch).await;
        let outcome = scene.commit((review, objects)).await.unwrap();
        assert_eq!(outcome.reviewed.committed, 2);
        assert_eq!(scene.tlp_of_tool().await, i64::from(Tlp::Red.rank()));
    });
}

#[test]
fn a_reviewers_marking_of_the_older_version_holds_for_a_silent_newer_one() {
    for (of_newer, want) in [(None, Tlp::Red), (Some(Tlp::Green), Tlp::Green)] {
        run_on_each(move |url| async move {
            let scene = Scene::new(&url).await;
            let batch = two_pages(&scene, [tool(2021, &[]), tool(2022, &[])]).await;
            let of_year =
                |items: &[FeedItem], year| items.iter().position(|item| item.modified.year() == year);
            let items = scene.items(batch).await;
            let (older, newer) = (of_year(&items, 2021).unwrap(), of_year(&items, 2022).unwrap());
            if of_newer.is_some() {
                scene.decide(batch, newer, None, of_newer).await;
            }
            scene.decide(batch, older, None, Some(Tlp::Red)).await;
            let chosen = scene.review(batch).await;
            let outcome = scene.commit(chosen).await.unwrap();
            let warnings = outcome.silent.into_warnings();
            assert_eq!(warnings.len(), usize::from(of_newer.is_none()), "{warnings:?}");
            assert_eq!(scene.tlp_of_tool().await, i64::from(want.rank()));
        });
    }
}

/// A stricter marking of a known version is no repetition, and counts once it is committed.
#[test]
fn the_same_version_with_a_stricter_marking_is_staged_and_raises_the_node() {
    run_on_each(|url| async move {
        let scene = Scene::new(&url).await;
        let green = scene.pulled(vec![tool(2021, &[])]).await;
        let chosen = scene.review(green).await;
        scene.commit(chosen).await.unwrap();
        assert_eq!(scene.tlp_of_tool().await, i64::from(Tlp::Green.rank()));
        let red = scene.pulled(vec![tool(2021, &[RED])]).await;
        let items = scene.items(red).await;
        assert_eq!(
            (items.len(), items[0].change, items[0].proposed_tlp),
            (1, Change::Update, Tlp::Red)
        );
        let again = scene.pulled(vec![tool(2021, &[RED])]).await;
        assert!(scene.items(again).await.is_empty(), "it is known by now");
        let chosen = scene.review(red).await;
        let outcome = scene.commit(chosen).await.unwrap();
        assert_eq!(outcome.result.nodes_updated, 1);
        assert_eq!(scene.tlp_of_tool().await, i64::from(Tlp::Red.rank()));
        let weaker = scene.pulled(vec![tool(2021, &[AMBER])]).await;
        assert!(
            scene.items(weaker).await.is_empty(),
            "a weaker one says nothing new"
        );
    });
}

#[test]
fn a_commit_never_writes_less_than_the_object_states() {
    run_on_each(|url| async move {
        let scene = Scene::new(&url).await;
        let batch = scene.pulled(vec![tool(2021, &[RED])]).await;
        let (mut review, objects) = scene.review(batch).await;
        assert_eq!(review.items[0].tlp, Tlp::Red);
        let mut plan = ingest::plan(objects.into(), defaults(Tlp::Green), Markings::new());
        // A decision that was made before the object turned out to state more.
        review.items[0].resolved_tlp = Some(Tlp::Green);
        review.mark(&mut plan);
        assert_eq!(plan.nodes[0].tlp, Tlp::Red);
    });
}

#[test]
fn a_reviewers_marking_is_written() {
    run_on_each(|url| async move {
        let scene = Scene::new(&url).await;
        let batch = scene.pulled(vec![tool(2021, &[])]).await;
        scene
            .decide(batch, 0, Some(ItemStatus::Accepted), Some(Tlp::Amber))
            .await;
        let chosen = scene.review(batch).await;
        scene.commit(chosen).await.unwrap();
        assert_eq!(scene.tlp_of_tool().await, i64::from(Tlp::Amber.rank()));
        assert_eq!(scene.state(batch).await, BatchState::Committed);
    });
}

#[test]
fn a_commit_that_meets_a_decision_writes_nothing() {
    run_on_each(|url| async move {
        let scene = Scene::new(&url).await;
        let batch = scene.pulled(vec![tool(2021, &[])]).await;
        let chosen = scene.review(batch).await;
        scene.decide(batch, 0, Some(ItemStatus::Rejected), None).await;
        let error = scene.commit(chosen).await.unwrap_err();
        assert!(matches!(error, DomainError::Conflict(_)), "{error:?}");
        assert!(rows(&scene.store.db, "node").await.is_empty());
        assert_eq!(scene.items(batch).await[0].status, ItemStatus::Rejected);
    });
}

#[test]
fn a_feed_survives_the_sweep_of_a_batch_whose_items_waited_for_a_marking() {
    run_on_each(|url| async move {
        let scene = Scene::new(&url).await;
        let batch = scene.pulled(vec![tool(2021, &[MARKING])]).await;
        scene.decide(batch, 0, Some(ItemStatus::Rejected), None).await;
        let failed = Uuid::now_v7();
        let begun = scene.begin(failed, false, clock::now()).await.unwrap();
        let audit = entry(scene.ws, "feed.pull_failed");
        let (run, now) = (Some(begun.run), clock::now());
        let ended = scene
            .store
            .fail_pull(scene.ws, (failed, run), "gone", now, &audit)
            .await;
        assert!(ended.unwrap());

        let later = clock::now() + TimeDelta::seconds(1);
        assert_eq!(
            scene.store.sweep_feed_batches(later).await.unwrap(),
            2,
            "failed ones too"
        );
        assert!(rows(&scene.store.db, "feed_item").await.is_empty());
        let waiting = scene.store.waiting_markings(scene.ws, scene.feed).await.unwrap();
        assert_eq!(waiting, [MARKING]);
        let renewed = scene
            .store
            .renew_waiting(scene.ws, scene.feed, MARKING, later)
            .await
            .unwrap();
        assert!(renewed.entries.is_empty() && !renewed.more);
        assert!(rows(&scene.store.db, "feed_waiting").await.is_empty());
        scene.pulled(vec![tool(2022, &[])]).await;
    });
}
