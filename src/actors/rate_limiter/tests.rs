use std::net::Ipv4Addr;

use futures_util::FutureExt;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn request(counted: RateKey, limit: u32) -> TakeRequest {
    let limits = vec![(limit, HOUR)];
    TakeRequest { counted, limits }
}

fn address(n: u32) -> RateKey {
    RateKey::Address("demo", Network::of(Ipv4Addr::from(n + (10 << 24)).into()))
}

#[test]
fn each_caller_counts_down_is_refused_and_admitted_again() {
    let (mut limiter, start) = (RateLimiter::default(), Instant::now());
    for counted in [
        RateKey::Workspace(Uuid::from_u128(1)),
        RateKey::Workspace(Uuid::from_u128(2)),
        RateKey::KeyHolder,
        address(1),
        address(2),
        RateKey::Address("pilot", Network::of(Ipv4Addr::new(10, 0, 0, 1).into())),
    ] {
        let states = [(); 3].map(|()| limiter.take(&request(counted, 2), start));
        assert_eq!(states.map(|state| state.remaining), [1, 0, 0], "{counted:?}");
        assert_eq!(states.map(|state| state.allowed), [true, true, false]);
        assert_eq!(states[2].reset, HOUR);
    }
    let later = start + HOUR;
    assert!(limiter.take(&request(address(1), 2), later).allowed);
    limiter.sweep(later + HOUR);
    assert!(limiter.known.is_empty());
}

#[test]
fn a_flood_of_addresses_pushes_out_neither_workspaces_nor_locks() {
    let (mut limiter, now) = (RateLimiter::default(), Instant::now());
    let workspace = RateKey::Workspace(Uuid::from_u128(1));
    limiter.take(&request(workspace, 1), now);
    let lock = || "somebody".to_owned();
    for _ in 0..5 {
        let LoginGate::Open(line) = limiter.logins.begin(lock(), now) else {
            panic!("locked too early");
        };
        let place = line.place().now_or_never().unwrap().unwrap();
        limiter.logins.end(EndLogin { place, failed: true }, now);
    }
    for n in 0..150_000 {
        limiter.take(&request(address(n), 1), now);
    }
    assert!(
        limiter.take(&request(address(0), 1), now).allowed,
        "the flood has pushed out its own first address"
    );
    assert!(!limiter.take(&request(workspace, 1), now).allowed);
    assert!(matches!(limiter.logins.begin(lock(), now), LoginGate::Locked(_)));
}
