use chrono::DateTime;
use uuid::Uuid;

use super::*;
use crate::domain::permission::Tier;

fn read(text: &str) -> Result<DemoQuery, DemoQueryError> {
    DemoQuery::try_from(text.to_owned())
}

#[test]
fn a_question_has_one_to_three_hundred_characters() {
    let full = "é".repeat(MAX_QUERY);
    assert_eq!(read(&format!("  {full} ")), Ok(DemoQuery(full.clone())));
    for bad in ["", "  ", "a\0b", &format!("{full}x")] {
        assert!(matches!(read(bad), Err(DemoQueryError::Malformed(_))), "{bad:?}");
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
        ("4111\u{a0}1111\u{a0}1111\u{a0}1111", "card"),
        ("4111\t1111\t1111\t1111", "card"),
        ("4111 1111\n1111 1111", "card"),
        ("4111\u{2011}1111\u{2011}1111\u{2011}1111", "card"),
        ("4111 - 1111 - 1111 - 1111", "card"),
        ("4111/1111/1111/1111", "card"),
        ("4111\u{202a}111111111111", "card"),
        ("٤١١١١١١١١١١١١١١١", "card"),
        ("𝟜𝟙𝟙𝟙 𝟙𝟙𝟙𝟙 𝟙𝟙𝟙𝟙 𝟙𝟙𝟙𝟙", "card"),
        ("CC4111111111111111", "card"),
        ("%B4111111111111111^DOE/JANE^2512101?", "card"),
        ("2200000000000004", "card"),
        ("078\u{2013}05\u{2013}1120", "ssn"),
        ("078\u{200e}-05-1120", "ssn"),
        ("SSN078-05-1120", "ssn"),
        ("SSN#078-05-1120", "ssn"),
        ("ss# 078051120", "ssn"),
        ("078-05-1120:hunter2", "ssn"),
        ("1,078-05-1120,x", "ssn"),
        ("078-05-1120=", "ssn"),
        ("`078-05-1120`", "ssn"),
        ("078 - 05 - 1120", "ssn"),
        ("078.05.1120", "ssn"),
        ("+49\u{a0}30\u{a0}901820", "phone"),
        ("+49\u{200e}30901820", "phone"),
        ("+٤٩٣٠٩٠١٨٢٠", "phone"),
        ("Tel.+4930901820", "phone"),
        ("тел.+74951234567", "phone"),
        ("00 49 30 901820", "phone"),
        ("004930901820", "phone"),
        ("+49_30_901820", "phone"),
        ("++12125550123", "phone"),
        ("wa.me/+4930901820", "phone"),
        ("(212)5550123", "phone"),
        ("1(212)555-0123", "phone"),
        ("212 - 555 - 0123", "phone"),
        ("212/555-0123", "phone"),
        ("212-555-0123x12", "phone"),
        ("212-555-0123ext12", "phone"),
        ("(212)\n555-0123", "phone"),
        ("212\u{2011}555\u{2011}0123", "phone"),
        ("_jane.doe@gmail.com_", "email"),
        ("jane.doe.@gmail.com", "email"),
        ("jane..doe@gmail.com", "email"),
        ("ftp://jane.doe@gmail.com", "email"),
        ("jane%40example.com", "email"),
        ("jane&#64;example.com", "email"),
        ("jane&#x40;example.com", "email"),
        ("jane @ example.com", "email"),
        ("jane@ example.com", "email"),
        ("jane@example。com", "email"),
        ("jane@corp.local", "email"),
        ("jane@192.0.2.1", "email"),
        ("jane\u{200e}@gmail.com", "email"),
        ("jané@bücher.example", "email"),
    ] {
        let refused = read(text).expect_err(text);
        let DemoQueryError::PersonalData(kinds) = &refused else {
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
        "62.210.123.12 62.210.123.13",
        "45.9.148.35 45.9.148.37 45.9.148.99",
        "51.222.13.55 51.222.13.56 51.222.13.57",
        "5060 5061 5222 8443 9443",
        "5000 5001 5002 5003 5004",
        "ports 22 23 80 443 445 3389 8080",
        "443 445 3389 and 443 80 8080",
        "800-53 800-171 2020-1234",
        "NIST SP 800-207 2020-2023",
        "event ids 4624 4625 4648 4672 4688 4698 4720",
        "001122334455 0011.2233.4455 005056123456 00:50:56:12:34:56",
        "0011223344556677",
        "serial 0091234567890123",
        "hash prefix 00123456789",
        "+185.220.101.1 + 45.133.1.12",
        "+1000000000",
        "mobile in 2023 2024",
        "fax 2023-2024",
        "hotline 24/7 2024",
        "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16",
        "3fa85f64-5717-4562-b3fc-2c963f66afa6",
        "follow @exploit_db",
        "user[at]evil[.]example",
        "2024-01-31 2024-02-28",
        "TA0043 M1017 DS0029 CWE-79 CAPEC-66",
        "100% of 2,147,483,647",
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
        suspended: false,
    };
    let demo = PublicDemo::new(workspace, Uuid::nil(), true);
    let clearance = demo.workspace().clearance();
    let seen = Tlp::ALL.iter().filter(|tlp| clearance.permits(**tlp));
    assert_eq!(seen.collect::<Vec<_>>(), [&Tlp::White, &Tlp::Green]);
    assert!(!demo.workspace().red_export_grant);
}
