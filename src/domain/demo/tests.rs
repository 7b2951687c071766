use chrono::DateTime;
use uuid::Uuid;

use super::*;
use crate::domain::permission::Tier;

fn read(text: &str) -> Result<DemoQuery, RefusedQuery> {
    DemoQuery::try_from(text.to_owned())
}

#[test]
fn a_question_has_one_to_three_hundred_characters() {
    let full = "é".repeat(MAX_QUERY);
    assert_eq!(read(&format!("  {full} ")), Ok(DemoQuery(full.clone())));
    for bad in ["", "  ", "a\0b", &format!("{full}x")] {
        assert!(matches!(read(bad), Err(RefusedQuery::Malformed(_))), "{bad:?}");
    }
}

#[test]
fn personal_data_is_refused_by_kind_and_not_repeated() {
    for (text, kind) in [
        ("who is jane.doe@example.org", "email"),
        ("mail to Jane <jane+cti@mail.example.co.uk>", "email"),
        ("JANE@EXAMPLE.COM", "email"),
        ("ｊａｎｅ＠example.com", "email"),
        ("jane@exam\u{200b}ple.com", "email"),
        ("ssn 078-05-1120", "ssn"),
        ("who is 123-45-6789", "ssn"),
        ("call +1 212 555 0123", "phone"),
        ("call +12125550123", "phone"),
        ("(212) 555-0123", "phone"),
        ("212-555-0123", "phone"),
        ("212.555.0123", "phone"),
        ("1-212-555-0123", "phone"),
        ("+49 30 901820", "phone"),
        ("+49 (0)30 901820", "phone"),
        ("0049 30 901820", "phone"),
        ("+44 20 7946 0958", "phone"),
        ("+33 1 23 45 67 89", "phone"),
        ("+81-3-1234-5678", "phone"),
        ("+91 98765 43210", "phone"),
        ("tel:+43-1-5123456", "phone"),
        ("phone 030/901820", "phone"),
        ("011 44 20 7946 0958", "phone"),
        ("4111 1111 1111 1111", "card"),
        ("4111-1111-1111-1111", "card"),
        ("4111111111111111", "card"),
        ("card 5500000000000004 stolen", "card"),
        ("378282246310005", "card"),
        ("3782 822463 10005", "card"),
        ("4222222222222", "card"),
        ("6011 0009 9013 9424", "card"),
        ("4111.1111.1111.1111", "card"),
        ("4111  1111  1111  1111", "card"),
    ] {
        let refused = read(text).expect_err(text);
        let RefusedQuery::PersonalData(kinds) = &refused else {
            panic!("{text}: {refused:?}")
        };
        assert!(kinds.contains(&kind), "{text}: {kinds:?}");
        assert!(
            !format!("{refused:?} {}", refused.rule()).contains(text),
            "{text}"
        );
    }
}

#[test]
fn questions_of_the_trade_are_not_personal_data() {
    for text in [
        "CVE-2021-44228 and CVE-2023-34362",
        "192.0.2.45 203.0.113.0/24 2001:db8::1",
        "T1059.001 T1078 TA0001 S0154 G0007 M1032",
        "d41d8cd98f00b204e9800998ecf8427e",
        "275a021bbfb6489e54d471899f7db9d1663fc695ec2fe2a2c4538aabf651fd0f",
        "APT28 APT29 FIN7 UNC2452 between 2015-01-01 and 2024-12-31",
        "ports 80, 443, 8080 8443 3389",
        "MS17-010 KB4012598 Exchange 15.2.1118.7",
        "AS64496 BTC 1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
        "jane[at]example[.]org",
        "@exploit_db on social media",
        "hxxps://files.example.net/a/2024/10/11/12.exe",
        "uuid 550e8400-e29b-41d4-a716-446655440000",
        "version 10.0.19041.1 build 22000.194",
        "M/D 12/31/2023 23:59:59 UTC",
        "1700000000 epoch",
    ] {
        assert!(read(text).is_ok(), "{text}: {:?}", read(text));
    }
}

#[test]
fn the_public_never_sees_more_than_green() {
    let workspace = Workspace {
        id: Uuid::nil(),
        name: "Public demo".into(),
        tier: Tier::Pilot,
        tlp_ceiling: Tlp::Red,
        elevated_clearance: true,
        red_export_grant: true,
        features: Vec::new(),
        created_at: DateTime::UNIX_EPOCH,
        is_operator: false,
    };
    let demo = PublicDemo::new(workspace, true);
    let clearance = demo.workspace().clearance();
    let seen = Tlp::ALL.iter().filter(|tlp| clearance.permits(**tlp));
    assert_eq!(seen.collect::<Vec<_>>(), [&Tlp::White, &Tlp::Green]);
    assert!(!demo.workspace().red_export_grant);
}
