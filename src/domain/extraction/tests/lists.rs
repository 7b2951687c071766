//! Lists of CVE ids, hashes over line ends, rows and tags.

use super::*;

fn values(text: &str) -> Vec<String> {
    found(text).into_iter().map(|(_, value)| value).collect()
}

#[test]
fn ids_of_a_list_that_does_not_repeat_what_they_share_are_found() {
    for (text, ids) in [
        (
            "CVE-2021-26855/26857/26858 and CVE-2021-27065.",
            "2021-26855 2021-26857 2021-26858 2021-27065",
        ),
        (
            "CVE-2021-26855 / 26857 / 26858",
            "2021-26855 2021-26857 2021-26858",
        ),
        ("CVE-2021-26855,26857,26858", "2021-26855 2021-26857 2021-26858"),
        ("CVE-2023-27350, 27351", "2023-27350 2023-27351"),
        (
            "CVE-2023-27350, 27351, and 27352 in PaperClip",
            "2023-27350 2023-27351 2023-27352",
        ),
        ("CVE-2023-27350 and 27352 were exploited", "2023-27350 2023-27352"),
        (
            "CVE-2024-21762, -23113 and -23108.",
            "2024-21762 2024-23113 2024-23108",
        ),
        ("CVE-2022-41040/-41082", "2022-41040 2022-41082"),
        ("CVE-2023-46805 & 2024-21887 chained", "2023-46805 2024-21887"),
        ("CVE-2024-(21762,23113)", "2024-21762 2024-23113"),
        ("CVE-2022-{41040, 41082}", "2022-41040 2022-41082"),
        ("漏洞CVE-2021-26855、26857被利用", "2021-26855 2021-26857"),
        ("CVE–2021–26855/26857", "2021-26855 2021-26857"),
        ("CVE-2024-1709 and 1708 are chained", "2024-1709 2024-1708"),
        // What is no item of the list.
        ("CVE-2021-44228 and 15000 servers", "2021-44228"),
        ("CVE-2021-44228, 12,000 hosts", "2021-44228"),
        ("CVE-2021-44228, 12345,000 hosts", "2021-44228"),
        ("CVE-2021-44228 and 2022 was worse", "2021-44228"),
        ("CVE-2021-44228, 45046 Exchange servers", "2021-44228"),
        ("CVE-2014-XXXX, CVE-2014-123 and CVE-20141-001", ""),
        ("In CVE 2014 2015 the years", ""),
    ] {
        let expected: Vec<String> = ids.split_whitespace().map(|id| format!("CVE-{id}")).collect();
        assert_eq!(values(text), expected, "{text}");
    }
}

#[test]
fn a_hash_over_line_ends_is_one_and_a_list_of_hashes_is_several() {
    const A: &str = "44d88612fea8a8f36de82e1278abb02f";
    const B: &str = "9e3669d19b675bd57058fd4664205d2a";
    let whole = format!("{A}{B}");
    let (first, last) = whole.split_at(40);
    for text in [
        format!("SHA-256: {A}\n{B}"),
        format!("SHA256\n{A}\r\n{B}\r\nnext"),
        format!("the hash {A}\n{B} of it"),
        format!("Hash:\n{A}\n{B}"),
        format!("| SHA-256 | {A}<br>{B} | loader |"),
        format!("{first}\n{last}"),
        format!("{first}-\n{last}"),
        format!("> {first}\n> {last}"),
        format!("* sha256: {first}\n  {last}"),
    ] {
        assert_eq!(values(&text), [whole.as_str()], "{text}");
    }
    for text in [
        format!("MD5:\n{A}\n{B}\n"),
        format!("MD5 {A}\n{B}"),
        format!("hashes: {A}\n{B}"),
        format!("- {A}\n- {B}"),
        format!("{A}\n{B}"),
        format!("| {A}<br>{B}<br> |"),
        format!("md5-{A}, 0x{B}").replace("0x", ""),
    ] {
        assert_eq!(values(&text), [A, B], "{text}");
    }
    assert_eq!(values(&format!("{A}\n20480 bytes")), [A]);
    let column = format!(
        "SHA-256 hashes:\n{first}\n{last}\n{last}{}\n{}",
        &first[..16],
        &first[16..]
    );
    assert_eq!(values(&column).len(), 2, "{column}");
}

#[test]
fn a_url_ends_at_its_field_and_a_host_with_a_path_is_a_url() {
    for (text, expected) in [
        (
            "2026-01-02,https://evil.com/x,Malicious,high",
            vec!["https://evil.com/x"],
        ),
        (
            "url,https://evil.com/g,Malicious group",
            vec!["https://evil.com/g"],
        ),
        ("https://evil.com/y;malicious;high", vec!["https://evil.com/y"]),
        (
            "https://evil.com/z|198.51.100.9|loader",
            vec!["https://evil.com/z", "198.51.100.9"],
        ),
        (
            "<https://evil.com/l&gt; &lt;https://evil.com/m&gt;",
            vec!["https://evil.com/l", "https://evil.com/m"],
        ),
        ("\"https://evil.com/a&quot;", vec!["https://evil.com/a"]),
        (
            "{\"u\":\"https:\\/\\/evil.com\\/a\\/b\"}",
            vec!["https://evil.com/a/b"],
        ),
        (
            "https://news.com/0,2987,3230--1,00.html",
            vec!["https://news.com/0,2987,3230--1,00.html"],
        ),
        ("see https://evil.com/a;b=1 now", vec!["https://evil.com/a;b=1"]),
        ("Get evil.com/test/bingo.php now", vec!["evil.com/test/bingo.php"]),
        ("evil.com/a,evil.org/b", vec!["evil.com/a", "evil.org/b"]),
        (
            "evil.com/evil.org and 45.77.10.3/45.77.10.4",
            vec!["evil.com", "evil.org", "45.77.10.3", "45.77.10.4"],
        ),
        (
            "evil.com/ and src=//cdn.evil.com/j.js",
            vec!["evil.com", "cdn.evil.com"],
        ),
        (
            "45.77.10.3:8443/gate.php and 45.77.10.0/24",
            vec!["45.77.10.3:8443/gate.php", "45.77.10.0/24"],
        ),
        ("[2001:db8::6]:443", vec!["2001:db8::6"]),
        ("GET /gate.php HTTP/1.1", vec![]),
        (
            "- attack.t1218.011\n- attack.defense_evasion\n- cve.2021.44228",
            vec!["T1218.011", "CVE-2021-44228"],
        ),
        ("C:\\Users\\x\\.ssh\\id_rsa", vec!["C:\\Users\\x\\.ssh\\id_rsa"]),
    ] {
        assert_eq!(values(text), expected, "{text}");
    }
}

#[test]
fn a_file_or_address_also_states_the_id_or_hash_in_its_name() {
    let hash = "a875bed89364302fb6f5a5a783899015d4e285f54a9a9660a97654d33c0f428f";
    for (text, expected) in [
        (
            "the file CVE_2014_1001.py runs".to_owned(),
            vec!["CVE_2014_1001.py", "CVE-2014-1001"],
        ),
        (
            "exploit-CVE-2014-1001.tar.gz".to_owned(),
            vec!["exploit-CVE-2014-1001.tar.gz", "CVE-2014-1001"],
        ),
        (
            "https://nvd.nist.gov/vuln/detail/CVE-2014-1001".to_owned(),
            vec!["https://nvd.nist.gov/vuln/detail/CVE-2014-1001", "CVE-2014-1001"],
        ),
        (
            format!("https://www.virustotal.com/gui/file/{hash}/detection"),
            vec!["", hash],
        ),
        (format!("https://evil.com/file/{hash}/x"), vec![""]),
    ] {
        let entities = entities_of(&text).entities;
        assert_eq!(entities.len(), expected.len(), "{text}: {entities:?}");
        for (entity, name) in entities.iter().zip(&expected) {
            assert!(name.is_empty() || entity.name == *name, "{text}: {}", entity.name);
        }
    }
}
