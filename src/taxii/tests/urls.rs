use reqwest::Url;

use super::*;
use crate::taxii::CollectionUrlError;

#[tokio::test]
async fn the_url_of_a_page() {
    for (given, expected) in [
        (
            OBJECTS,
            "https://feed.example/api/collections/c1/objects/?limit=100",
        ),
        // A trailing slash is neither added nor removed.
        (
            "https://f.example/c/objects",
            "https://f.example/c/objects?limit=100",
        ),
        (
            "https://f.example/collections/c1/",
            "https://f.example/collections/c1/objects/?limit=100",
        ),
        (
            "https://f.example/collections/c1",
            "https://f.example/collections/c1/objects/?limit=100",
        ),
        (
            "https://f.example/any/proxy#part",
            "https://f.example/any/proxy?limit=100",
        ),
        (
            "https://f.example/o/?match[type]=indicator,malware&&x=a+b%2F&limit=7&added_after=2024-01-01T00:00:00Z",
            "https://f.example/o/?match[type]=indicator,malware&x=a+b%2F&added_after=2024-01-01T00%3A00%3A00Z&limit=7",
        ),
    ] {
        let server = Server::script(vec![page("{}")]);
        let mut pull = pull_with(&server, given, PullCursor::default(), PullSettings::default());
        pull.next_page().await.unwrap();
        assert_eq!(server.asked()[0].url.as_str(), expected);
    }
}

#[test]
fn urls_that_are_no_collection() {
    use CollectionUrlError::{AddedAfter, Limit, List, Manifest, Next};
    for (url, error) in [
        ("https://f.example/objects/?next=x", Next),
        ("https://f.example/objects/?n%65xt=x", Next),
        ("https://f.example/objects/?limit=0", Limit),
        ("https://f.example/objects/?limit=-1", Limit),
        ("https://f.example/objects/?limit=ten", Limit),
        ("https://f.example/objects/?limit=1&limit=2", Limit),
        ("https://f.example/objects/?added_after=yesterday", AddedAfter),
        ("https://f.example/objects/?added_after=", AddedAfter),
        ("https://f.example/api/collections/", List),
        ("https://f.example/api/collections/c1/manifest/", Manifest),
    ] {
        assert_eq!(
            CollectionUrl::parse(&Url::parse(url).unwrap()),
            Err(error),
            "{url}"
        );
    }
}

#[tokio::test]
async fn an_offset_in_the_start_may_be_unescaped() {
    let url = "https://f.example/objects/?added_after=2024-01-01T00:00:00+01:00";
    let server = Server::script(vec![page("{}")]);
    let mut pull = pull_with(&server, url, PullCursor::default(), PullSettings::default());
    pull.next_page().await.unwrap();
    assert_eq!(
        server.params("added_after"),
        [Some("2024-01-01T00:00:00+01:00".to_owned())]
    );
}

#[tokio::test]
async fn the_first_pull_begins_at_the_urls_date_and_the_next_at_the_cursor() {
    let url = format!("{OBJECTS}?added_after=2024-01-01T00:00:00Z");
    let last = "2024-02-01T00:00:00.000000Z";
    let server = Server::script(vec![dated(&envelope(&["a"], ""), last, last), page("{}")]);
    let mut pull = pull_with(&server, &url, PullCursor::default(), PullSettings::default());
    let (_, cursor) = read_all(&mut pull).await.unwrap();
    let mut pull = pull_with(&server, &url, cursor, PullSettings::default());
    read_all(&mut pull).await.unwrap();
    let asked = server.params("added_after");
    let expected = ["2024-01-01T00:00:00Z", "2024-01-31T23:59:59.000000Z"];
    assert_eq!(asked, expected.map(|date| Some(date.to_owned())));
}

#[tokio::test]
async fn parameters_stay_the_same_and_a_token_arrives_as_it_was_sent() {
    let token = "2023-11-16 22:40:05|23070925 +&=#/%20é\"";
    let last = "2024-02-01T00:00:00.000000Z";
    let json = serde_json::to_string(token).unwrap();
    let first = dated(
        &envelope(&["a"], &format!(r#","more":true,"next":{json}"#)),
        last,
        last,
    );
    let server = Server::script(vec![
        first,
        dated(&envelope(&["b"], r#","more":false"#), last, last),
    ]);
    let cursor = PullCursor {
        added_after: Some("2024-01-31T00:00:00.5+02:00".into()),
        unfinished: None,
    };
    let url = format!("{OBJECTS}?match[type]=indicator");
    let mut pull = pull_with(&server, &url, cursor, PullSettings::default());
    let (names, cursor) = read_all(&mut pull).await.unwrap();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(cursor.added_after(), Some("2024-01-31T23:59:59.000000Z"));
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    for request in &asked {
        assert_eq!(request.accept, TAXII);
        assert_eq!(request.param("match[type]").as_deref(), Some("indicator"));
        assert_eq!(
            request.param("added_after").as_deref(),
            Some("2024-01-31T00:00:00.5+02:00")
        );
        assert_eq!(request.param("limit").as_deref(), Some("100"));
    }
    assert_eq!(asked[0].param("next"), None);
    assert_eq!(asked[1].param("next").as_deref(), Some(token));
}
