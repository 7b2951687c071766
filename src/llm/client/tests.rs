use super::*;

#[test]
fn retry_after_is_seconds_or_a_date() {
    let header = |value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, value.parse().unwrap());
        retry_after(&headers)
    };
    assert_eq!(header("7"), Some(Duration::from_secs(7)));
    assert_eq!(header("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
    let soon = (clock::now() + chrono::Duration::seconds(90)).format("%a, %d %b %Y %H:%M:%S GMT");
    let wait = header(&soon.to_string()).unwrap();
    assert!((80..=90).contains(&wait.as_secs()), "{wait:?}");
    assert_eq!(header("later"), None);
    assert_eq!(retry_after(&HeaderMap::new()), None);
}

#[test]
fn pauses_grow_to_a_ceiling() {
    for tries in 0..40 {
        assert!(backoff(tries) <= MAX_PAUSE);
    }
    assert!(backoff(0) <= FIRST_PAUSE);
}

#[test]
fn completions_are_told_from_other_json() {
    let done = br#"{"choices":[{"message":{"content":"x"},"finish_reason":"length"}]}"#;
    assert_eq!(
        completion(done),
        Some(Completion {
            content: "x".into(),
            cut_off: true
        })
    );
    let refusal = br#"{"choices":[{"message":{"refusal":"no","content":null}}]}"#;
    assert_eq!(completion(refusal).unwrap().content, "");
    for other in [&b"{}"[..], b"{\"choices\":[]}", b"<html>", b""] {
        assert_eq!(completion(other), None);
    }
}

#[test]
fn what_holds_for_one_question_only_is_no_outage() {
    for (error, outage) in [
        (LlmError::Status(400), false),
        (LlmError::Status(413), false),
        (LlmError::Status(422), false),
        (LlmError::Unusable(String::new()), false),
        (LlmError::Status(401), true),
        (LlmError::Status(404), true),
        (LlmError::Status(429), true),
        (LlmError::Status(503), true),
        (LlmError::Slow(1), true),
        (LlmError::Unreachable, true),
        (LlmError::Refused(Rule::LinkLocalAddress), true),
    ] {
        assert_eq!(error.is_outage(), outage, "{error}");
    }
}
