//! Who gets a permit, and who waits.

use std::time::Duration;

use test_support::until;
use uuid::Uuid;

use super::*;

fn tenant() -> Tenant {
    Some(Uuid::new_v4())
}

/// Takes a permit that must be granted without waiting.
async fn at_once(shares: &Shares, tenant: Tenant) -> Option<Share> {
    tokio::time::timeout(Duration::from_secs(5), shares.take_own(tenant))
        .await
        .expect("it waits")
}

/// Waits for a permit and releases it at once; returns whether it got one.
fn waiting(shares: &Shares, tenant: Tenant) -> tokio::task::JoinHandle<bool> {
    let shares = shares.clone();
    tokio::spawn(async move { shares.take(tenant).await.is_some() })
}

async fn until_waiting(shares: &Shares, count: usize) {
    until(|| shares.waiting() == count).await;
}

#[tokio::test]
async fn a_workspace_alone_leaves_a_place_for_the_next_one() {
    let shares = Shares::new(4, 1, 0);
    let (loud, quiet) = (tenant(), tenant());
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(at_once(&shares, loud).await.unwrap());
    }
    assert!(at_once(&shares, loud).await.is_none(), "it has all but one");
    let place = at_once(&shares, quiet).await;
    assert!(place.is_some());
    held.pop();
    assert!(
        at_once(&shares, loud).await.is_none(),
        "with another one present its share is two"
    );
    held.pop();
    assert!(at_once(&shares, loud).await.is_some());
    drop(place);
    held.push(at_once(&shares, loud).await.unwrap());
    held.push(at_once(&shares, loud).await.unwrap());
    assert_eq!((held.len(), shares.free()), (3, 1));
}

#[tokio::test]
async fn work_of_no_workspace_takes_every_place() {
    let shares = Shares::new(2, 1, 0);
    let held = [at_once(&shares, None).await, at_once(&shares, None).await];
    assert!(held.iter().all(Option::is_some));
    assert!(at_once(&shares, None).await.is_none());
    // A single permit can't be reserved.
    let one = Shares::new(1, 1, 0);
    assert!(at_once(&one, tenant()).await.is_some());
}

#[tokio::test]
async fn who_is_below_its_share_waits_for_the_next_place_and_gets_it_before_the_others() {
    let shares = Shares::new(4, 1, 100);
    let (loud, second, quiet) = (tenant(), tenant(), tenant());
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(at_once(&shares, loud).await.unwrap());
    }
    held.push(at_once(&shares, second).await.unwrap());
    let more = waiting(&shares, loud);
    until_waiting(&shares, 1).await;
    let own = {
        let shares = shares.clone();
        tokio::spawn(async move { shares.take_own(quiet).await })
    };
    until_waiting(&shares, 2).await;
    held.remove(0);
    let place = own.await.unwrap();
    assert!(place.is_some(), "the place went to another one");
    assert_eq!(shares.waiting(), 1);
    assert!(
        !more.is_finished(),
        "with three present the share of four places is one"
    );
    held.clear();
    drop(place);
    assert!(more.await.unwrap());
}

#[tokio::test]
async fn the_line_is_shared_out_too() {
    let shares = Shares::new(1, 0, 4);
    let (loud, quiet) = (tenant(), tenant());
    let held = shares.take(loud).await;
    let line: Vec<_> = (0..3).map(|_| waiting(&shares, loud)).collect();
    until_waiting(&shares, 3).await;
    assert!(
        shares.take(loud).await.is_none(),
        "one place in the line is left to others"
    );
    let first = waiting(&shares, quiet);
    until_waiting(&shares, 4).await;
    // The queue is full. The second waiter of the quiet workspace is within its share, so the last of the busy one is
    // removed.
    let second = waiting(&shares, quiet);
    let gone = || line.iter().filter(|task| task.is_finished()).count();
    until(|| gone() > 0).await;
    assert_eq!((gone(), shares.waiting()), (1, 4));
    assert!(shares.take(quiet).await.is_none(), "its share of the line is two");
    drop(held);
    assert!(first.await.unwrap() && second.await.unwrap());
    let mut served = 0;
    for task in line {
        served += u32::from(task.await.unwrap());
    }
    assert_eq!((served, shares.free(), shares.waiting()), (2, 1, 0));
}

#[tokio::test]
async fn who_goes_away_leaves_the_line_and_is_forgotten() {
    let shares = Shares::new(1, 0, 10);
    let held = shares.take(tenant()).await;
    let waiters: Vec<_> = (0..5).map(|_| waiting(&shares, tenant())).collect();
    until_waiting(&shares, 5).await;
    waiters.iter().for_each(tokio::task::JoinHandle::abort);
    until_waiting(&shares, 0).await;
    drop(held);
    assert_eq!(shares.free(), 1);
    assert!(shares.state.lock().present.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_that_comes_and_goes_leaves_every_place_free() {
    let shares = Shares::new(5, 1, 50);
    let parties: Vec<Tenant> = (0..4).map(|_| tenant()).chain([None]).collect();
    let tasks: Vec<_> = (0..2000usize)
        .map(|n| {
            let (shares, tenant) = (shares.clone(), parties[n % parties.len()]);
            tokio::spawn(async move {
                let place = if n % 3 == 0 {
                    shares.take_own(tenant).await
                } else {
                    shares.take(tenant).await
                };
                if n % 7 == 0 {
                    tokio::task::yield_now().await;
                }
                drop(place);
            })
        })
        .collect();
    for (n, task) in tasks.into_iter().enumerate() {
        if n % 11 == 0 {
            task.abort();
        }
        task.await.ok();
    }
    until_waiting(&shares, 0).await;
    assert_eq!(shares.free(), 5);
    assert!(shares.state.lock().present.is_empty());
}
