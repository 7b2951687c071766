use proptest::prelude::*;
use test_support::extent;

use super::*;

/// The only hit of a text: its kind and its words.
fn only(text: &str) -> (PiiKind, &str) {
    let hits = find(text);
    assert_eq!(hits.len(), 1, "{text}: {hits:?}");
    (hits[0].kind, &text[hits[0].span.clone()])
}

#[test]
fn e_mail_addresses() {
    for (text, want) in [
        ("Contact jane.doe@example.com.", "jane.doe@example.com"),
        (
            "<mailto:o'brien+x@mail.example.co.uk>",
            "o'brien+x@mail.example.co.uk",
        ),
        ("von jürgen@müller.de gesendet", "jürgen@müller.de"),
        ("1234567@qq.com wrote", "1234567@qq.com"),
        ("a@b.org", "a@b.org"),
        ("see https://x.com/?u=jane.doe@gmail.com", "jane.doe@gmail.com"),
        (
            "mail jane.doe@gmail\u{200b}.com now",
            "jane.doe@gmail\u{200b}.com",
        ),
        ("jane.doe\u{ff20}gmail.com", "jane.doe\u{ff20}gmail.com"),
    ] {
        assert_eq!(only(text), (PiiKind::Email, want));
    }
    for text in [
        "jane[at]example[.]com",
        "https://user:secret@example.com/path",
        "git@github.com:owner/name.git",
        "npm lodash@4.17.21",
        "icon@2x.png",
        "user@localhost",
        "@example.com",
        "a@@b.com",
        "..@example.com",
    ] {
        assert!(find(text).is_empty(), "{text}: {:?}", find(text));
    }
}

#[test]
fn telephone_numbers() {
    for (text, want) in [
        ("call +49 30 901820 today", "+49 30 901820"),
        ("+1 (212) 555-0123", "+1 (212) 555-0123"),
        ("(+44 20 7946 0958)", "+44 20 7946 0958"),
        ("+33.1.23.45.67.89", "+33.1.23.45.67.89"),
        ("WhatsApp: +380501234567.", "+380501234567"),
        ("(212) 555-0123", "(212) 555-0123"),
        ("dial 1-800-555-0199 now", "1-800-555-0199"),
        ("212-555-0123", "212-555-0123"),
        ("phone number: 030 9018200", "030 9018200"),
        ("Tel. 0049 30 901820", "0049 30 901820"),
        ("his mobile is 0170/1234567", "0170/1234567"),
    ] {
        assert_eq!(only(text), (PiiKind::Phone, want), "{text}");
    }
}

#[test]
fn cards() {
    for (text, want) in [
        ("card 4111 1111 1111 1111, exp 12/27", "4111 1111 1111 1111"),
        ("5500-0000-0000-0004", "5500-0000-0000-0004"),
        ("4111111111111111", "4111111111111111"),
        ("amex 3782 822463 10005", "3782 822463 10005"),
        ("378282246310005", "378282246310005"),
        ("diners 3056 930902 5904", "3056 930902 5904"),
        ("2223003122003222", "2223003122003222"),
        ("ports 80 4111 1111 1111 1111", "4111 1111 1111 1111"),
    ] {
        assert_eq!(only(text), (PiiKind::Card, want), "{text}");
    }
    for text in [
        "4111 1111 1111 1112",
        "1111111111111117",
        "4444444444444444",
        "4111 1111-1111 1111",
        "4111 1111 1111 1111 4111 1111",
        "0x4111111111111111",
        "a4111111111111111",
        "id-4111111111111111",
        "4111111111111111abcd",
        "41111111 11111111",
    ] {
        assert!(find(text).is_empty(), "{text}: {:?}", find(text));
    }
}

#[test]
fn bank_accounts() {
    for (text, want) in [
        (
            "pay to DE89 3704 0044 0532 0130 00 now",
            "DE89 3704 0044 0532 0130 00",
        ),
        ("DE89370400440532013000", "DE89370400440532013000"),
        ("IBAN:GB82WEST12345698765432", "GB82WEST12345698765432"),
        ("FR1420041010050500013M02606.", "FR1420041010050500013M02606"),
        ("NO93 8601 1117 947", "NO93 8601 1117 947"),
    ] {
        assert_eq!(only(text), (PiiKind::Iban, want), "{text}");
    }
    for text in [
        "DE89370400440532013001",
        "DE893704004405320130001",
        "XDE89370400440532013000",
        "ZZ89370400440532013000",
        "DE8937040044053201300",
        "DE",
    ] {
        assert!(find(text).is_empty(), "{text}: {:?}", find(text));
    }
}

#[test]
fn social_security_numbers() {
    for (text, want) in [
        ("SSN 078-05-1120", "078-05-1120"),
        ("leaked: 123-45-6789, …", "123-45-6789"),
        ("Social Security Number: 123 45 6789", "123 45 6789"),
        ("ssn: 123456789", "123456789"),
    ] {
        assert_eq!(only(text), (PiiKind::Ssn, want), "{text}");
    }
    for text in [
        "000-12-3456",
        "666-12-3456",
        "900-12-3456",
        "123-00-4567",
        "123-45-0000",
        "123456789",
        "123 45 6789",
        "1123-45-6789",
        "123-45-67890",
        "x-123-45-6789",
    ] {
        assert!(find(text).is_empty(), "{text}: {:?}", find(text));
    }
}

#[test]
fn labelled_dates_of_birth() {
    for (text, want) in [
        ("DOB: 12/03/1980", "12/03/1980"),
        ("born on 1980-03-12 in Kyiv", "1980-03-12"),
        ("Date of birth: March 12, 1980", "March 12, 1980"),
        ("geboren am 12.03.1980.", "12.03.1980"),
        ("born 12 March 1980", "12 March 1980"),
    ] {
        assert_eq!(only(text), (PiiKind::BirthDate, want), "{text}");
    }
    for text in [
        "12/03/1980",
        "born in 2014 as a gang",
        "stubborn 12/03/1980",
        "born 1.2.3",
        "observed 2024-03-12",
    ] {
        assert!(find(text).is_empty(), "{text}: {:?}", find(text));
    }
}

#[test]
fn what_reports_are_full_of_is_none_of_it() {
    for text in [
        "md5 44d88612fea8aa8f36de82e1278abb02",
        "12345678901234567890123456789012",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "192.168.100.200:8080 and 10.0.0.0/8",
        "2001:db8:1234:5678:1234:5678:1234:5678",
        "CVE-2021-44228, CVE-2024-1234567",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "ports 80, 443, 8080, 4444, 31337 and 21 22 23 25 53",
        "2024-03-01T10:20:30+02:00",
        "2024-03-01 10:20:30 +0200",
        "1709287200 1709287200123 1709287200123456",
        "AS13335 AS1234567890",
        "T1059.001, TA0001, G0007, S0154",
        "550e8400-e29b-41d4-a716-446655440000",
        "12345678-1234-1234-1234-123456789012",
        "build 10.0.19041.1234",
        "status 1234567890123456789 on the platform",
        "S-1-5-21-3623811015-3361044348-30300820-1013",
        "{D27CDB6E-AE6D-11cf-96B8-444553540000}",
        "0x00007ff712345678",
        "stole 1,234,567,890 USD",
        "grew by +100 000 000 records",
        "KB5034441 KB 5034441",
        "GMT+0200 UTC+05:30",
        "4141 4141 4141 4141 4141 4141 4242 4242",
        "Telegram bot 1234567890:AAE-token",
        "phone 2024-03-01",
        "the phone at 192.168.100.200",
        "HKLM\\Software\\4111111111111111",
        "CVSS:3.1/AV:N/AC:L 9.8",
    ] {
        assert!(find(text).is_empty(), "{text}: {:?}", find(text));
    }
}

#[test]
fn a_redacted_text_shows_marks() {
    let text = "Jané (jane@example.com, +49 30 901820) paid with 4111 1111 1111 1111 from DE89370400440532013000; \
                SSN 123-45-6789, DOB 12/03/1980. IP 8.8.4.4.";
    let (plain, hits) = redact(text);
    assert_eq!(
        plain,
        "Jané ([EMAIL], [PHONE]) paid with [CARD] from [IBAN]; SSN [SSN], DOB [BIRTH_DATE]. IP 8.8.4.4."
    );
    let kinds: Vec<_> = hits.iter().map(|hit| hit.kind).collect();
    assert_eq!(kinds, PiiKind::ALL);
    assert_eq!(redact("nothing here"), ("nothing here".to_owned(), Vec::new()));
}

#[test]
fn time_is_linear() {
    for part in [
        "4111 1111 ",
        "+49 30 ",
        "a@",
        "DE89 3704 ",
        "1-2 ",
        "phone ",
        "((((",
        "x.x@x.x.x.",
    ] {
        let text = part.repeat(extent(10_000, 100_000));
        let since = std::time::Instant::now();
        find(&text);
        assert!(since.elapsed().as_secs() < 20, "{part:?} {:?}", since.elapsed());
    }
}

proptest! {
    #[test]
    fn any_text_may_be_read(text in r"(\PC|[0-9+() @.-]|phone |ssn |born |DE89 |\n){0,80}") {
        let (plain, hits) = redact(&text);
        prop_assert!(hits.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start));
        prop_assert!(hits.iter().all(|hit| text.get(hit.span.clone()).is_some()));
        prop_assert_eq!(hits.is_empty(), plain == text);
    }
}

#[test]
fn values_behind_an_equals_sign_and_in_small_letters() {
    for (text, kind) in [
        ("card=4111111111111111", PiiKind::Card),
        ("tel=+4915112345678", PiiKind::Phone),
        ("ssn=219-09-9999", PiiKind::Ssn),
        ("de89370400440532013000", PiiKind::Iban),
        ("iban: de89 3704 0044 0532 0130 00", PiiKind::Iban),
        ("card \u{ff14}111111111111111", PiiKind::Card),
    ] {
        assert_eq!(only(text).0, kind, "{text}");
        assert!(!redact(text).0.contains("111111"), "{text}");
    }
}
