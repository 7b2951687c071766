//! Page sizes: pages that are too large, and instants that are larger than a page.

use super::*;

const EARLY: &str = "2024-01-01T00:00:00.000001Z";
const LATE: &str = "2024-01-02T00:00:00.000001Z";
const BEFORE_LATE: &str = "2024-01-02T00:00:00.000000Z";

fn too_large() -> Reply {
    Err(OutboundError::TooLarge { cap_bytes: 524_288 })
}

/// A server without page tokens, with `early` objects of one instant and one later object. It delivers at most `cap`.
fn instants(early: usize, cap: usize) -> Server {
    Server::new(move |asked| {
        let limit: usize = asked.param("limit").unwrap().parse().unwrap();
        let after = asked.param("added_after").unwrap_or_default();
        let all: Vec<(String, &str)> = (0..early)
            .map(|number| (format!("n{number}"), EARLY))
            .chain([("late".to_owned(), LATE)])
            .filter(|(_, date)| *date > after.as_str())
            .collect();
        let shown = &all[..all.len().min(limit).min(cap)];
        let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
        let more = shown.len() < all.len();
        match (shown.first(), shown.last()) {
            (Some(first), Some(last)) => {
                dated(&envelope(&names, &format!(r#","more":{more}"#)), first.1, last.1)
            }
            _ => page("{}"),
        }
    })
}

#[tokio::test]
async fn an_instant_larger_than_a_page_is_read_with_larger_pages() {
    let server = instants(350, usize::MAX);
    let (mut names, cursor) = read_all(&mut fresh(&server)).await.unwrap();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 351);
    assert_eq!(cursor.added_after(), Some(BEFORE_LATE));
    let limits: Vec<String> = server.params("limit").into_iter().flatten().collect();
    assert_eq!(limits, ["100", "100", "200", "400"]);
    assert_eq!(
        server.params("added_after")[1].as_deref(),
        Some("2024-01-01T00:00:00.000000Z")
    );
    let (names, _) = read_all(&mut pull_of(&server, cursor)).await.unwrap();
    assert_eq!(names, ["late"]);
}

#[tokio::test]
async fn an_instant_larger_than_any_page_is_explained() {
    let settings = PullSettings {
        page_objects: 10,
        max_page_objects: 80,
        ..PullSettings::default()
    };
    for url in [OBJECTS.to_owned(), format!("{OBJECTS}?limit=10")] {
        for cap in [10, 1_000] {
            let server = instants(500, cap);
            let mut pull = pull_with(&server, &url, PullCursor::default(), settings);
            let error = read_all(&mut pull).await.unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("more than 10 objects were added at the same instant"),
                "{error}"
            );
            assert!(server.asked().len() <= 6);
        }
    }
    // The larger page is refused, or too large.
    for refusal in [answer(400, &[], ""), too_large()] {
        let early = dated(&envelope(&["a"], r#","more":true"#), EARLY, EARLY);
        let server = Server::script(vec![
            early.as_ref().map(copy).map_err(Clone::clone),
            early,
            refusal,
        ]);
        assert!(matches!(
            read_all(&mut fresh(&server)).await,
            Err(PullError::Stuck(_))
        ));
    }
}

#[tokio::test]
async fn a_page_that_is_too_large_is_asked_for_in_smaller_ones() {
    let server = Server::new(|asked| {
        let limit: usize = asked.param("limit").unwrap().parse().unwrap();
        let from: usize = asked.param("next").map_or(0, |next| next.parse().unwrap());
        let shown: Vec<String> = (from..(from + limit).min(200))
            .map(|number| format!("n{number}"))
            .collect();
        // Object 150 is so large that it fits with 20 others only.
        if limit > 20 && shown.contains(&"n150".to_owned()) {
            return too_large();
        }
        let names: Vec<&str> = shown.iter().map(String::as_str).collect();
        let rest = format!(r#","more":{},"next":"{}""#, from + limit < 200, from + limit);
        dated(&envelope(&names, &rest), EARLY, LATE)
    });
    let (mut names, cursor) = read_all(&mut fresh(&server)).await.unwrap();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 200);
    assert_eq!(cursor.added_after(), Some(BEFORE_LATE));
    // The parameters of one run of tokens stay the same.
    let mut limit = String::new();
    for asked in server.asked() {
        if asked.param("next").is_none() {
            limit = asked.param("limit").unwrap();
        }
        assert_eq!(asked.param("limit").unwrap(), limit);
    }
    assert_eq!(limit, "12");
}

#[tokio::test]
async fn an_object_that_is_too_large_and_a_given_limit_fail() {
    let server = Server::script(vec![too_large()]);
    let error = fresh(&server).next_page().await.unwrap_err();
    assert_eq!(
        error,
        PullError::TooLarge {
            cap_bytes: 524_288,
            objects: 1
        }
    );
    assert_eq!(server.asked().len(), 7);
    let url = format!("{OBJECTS}?limit=50");
    let mut pull = pull_with(&server, &url, PullCursor::default(), PullSettings::default());
    assert_eq!(
        pull.next_page().await.unwrap_err().to_string(),
        "the collection's page of 50 objects is larger than the limit of 524288 bytes"
    );
}

#[tokio::test]
async fn a_resumed_run_keeps_the_size_of_its_pages() {
    let numbered = |next: u32| page(&envelope(&["a"], &format!(r#","more":true,"next":"{next}""#)));
    let server = Server::script(vec![numbered(1), numbered(2), page("{}")]);
    let mut pull = fresh(&server);
    pull.next_page().await.unwrap();
    let cursor = pull.next_page().await.unwrap().unwrap().cursor;
    let settings = PullSettings {
        page_objects: 10,
        ..PullSettings::default()
    };
    let mut pull = pull_with(&server, OBJECTS, cursor, settings);
    pull.next_page().await.unwrap();
    assert_eq!(server.params("limit")[2].as_deref(), Some("100"));
}
