//! Values beside words of other scripts, which may be attached to them.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use test_support::extent;

use super::*;

const SHA256: &str = "a875bed89364302fb6f5a5a783899015d4e285f54a9a9660a97654d33c0f428f";
const SHA512: &str = "cc805d5fab1fd71a4ab352a9c533e65fb2d5b885518f4e565e68847223b8e6b85cb48f3afad842726d99239c9e36505c64b0dc9a061d9e507d833277ada336ab";

/// A value of each kind, as a text has it and as it is found.
const VALUES: &[(EntityKind, &str, &str)] = &[
    (EntityKind::Ipv4, "198.51.100.7", "198.51.100.7"),
    (EntityKind::Ipv4, "203.0.113[.]250", "203.0.113.250"),
    (EntityKind::Ipv6, "2001:db8::6", "2001:db8::6"),
    (EntityKind::Cidr, "203.0.113.0/25", "203.0.113.0/25"),
    (
        EntityKind::Md5,
        "44d88612fea8a8f36de82e1278abb02f",
        "44d88612fea8a8f36de82e1278abb02f",
    ),
    (
        EntityKind::Sha1,
        "f395856ce81f2b7382dee72602f798b642f14140",
        "f395856ce81f2b7382dee72602f798b642f14140",
    ),
    (EntityKind::Sha256, SHA256, SHA256),
    (EntityKind::Sha512, SHA512, SHA512),
    (EntityKind::Cve, "CVE-2024-21762", "CVE-2024-21762"),
    (EntityKind::Cve, "cve-2014-1001", "CVE-2014-1001"),
    (EntityKind::Domain, "evil-lang-case.com", "evil-lang-case.com"),
    (
        EntityKind::Domain,
        "gate7.evil-lang-case[.]org",
        "gate7.evil-lang-case.org",
    ),
    (
        EntityKind::Url,
        "https://evil-lang-case.com/a.bin",
        "https://evil-lang-case.com/a.bin",
    ),
    (
        EntityKind::Url,
        "hxxp://198.51.100[.]9:8080/g?a=1",
        "http://198.51.100.9:8080/g?a=1",
    ),
    (
        EntityKind::Url,
        "https://evil-lang-case.com",
        "https://evil-lang-case.com",
    ),
    (
        EntityKind::Email,
        "kit@evil-lang-case.com",
        "kit@evil-lang-case.com",
    ),
    (EntityKind::AttckTechnique, "T1059.001", "T1059.001"),
    (EntityKind::AttckTechnique, "T1027", "T1027"),
    (EntityKind::AttckTactic, "TA0001", "TA0001"),
    (EntityKind::FileName, "dropper.exe", "dropper.exe"),
    (
        EntityKind::FilePath,
        "C:\\Windows\\Temp\\a.exe",
        "C:\\Windows\\Temp\\a.exe",
    ),
    (EntityKind::FilePath, "/tmp/.brant/x", "/tmp/.brant/x"),
    (
        EntityKind::RegistryKey,
        "HKCU\\Software\\Brant\\Run",
        "HKEY_CURRENT_USER\\Software\\Brant\\Run",
    ),
    (EntityKind::Asn, "AS64496", "AS64496"),
    (
        EntityKind::Bitcoin,
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    ),
    (
        EntityKind::Bitcoin,
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
    ),
    (EntityKind::Malware, "Emotet", "Emotet"),
    (EntityKind::Actor, "APT41", "APT41"),
    (EntityKind::Tool, "Cobalt Strike", "Cobalt Strike"),
];

/// Words of ten languages, and the marks between them.
const LANGUAGES: &[(&[&str], &[&str])] = &[
    (
        &[
            "攻击者使用",
            "样本哈希为",
            "回连",
            "下载地址",
            "该木马由",
            "组织使用",
            "端口",
            "并利用",
            "漏洞",
            "被执行",
        ],
        &["，", "。", "、", "：", "（", "）", "；", "《"],
    ),
    (
        &[
            "攻撃者は",
            "を配布し",
            "サーバー",
            "に接続した",
            "を悪用",
            "マルウェア",
            "ファイルを",
            "から",
            "まで",
        ],
        &["、", "。", "「", "」", "・", "（", "）"],
    ),
    (
        &[
            "공격자는",
            "을",
            "를",
            "서버",
            "에서",
            "연결했다",
            "취약점",
            "악성코드",
            "은",
            "와",
        ],
        &[", ", ". ", " "],
    ),
    (
        &["ผู้โจมตีใช้", "เซิร์ฟเวอร์", "และเชื่อมต่อกับ", "มัลแวร์", "ไฟล์ที่", "ช่องโหว่"],
        &[" "],
    ),
    (
        &[
            "استخدم المهاجمون",
            "الخادم",
            "البرنامج",
            "عبر",
            "ثم",
            "الثغرة",
            "وملف",
        ],
        &["، ", "؛ ", ". ", "؟ "],
    ),
    (
        &[
            "злоумышленники",
            "сервер",
            "использует",
            "через",
            "уязвимость",
            "файл",
            "атака на",
        ],
        &[", ", ". ", " — ", " «", "» "],
    ),
    (
        &[
            "зловмисники",
            "сервер",
            "використали",
            "через",
            "вразливість",
            "та",
            "їхній",
        ],
        &[", ", ". ", " "],
    ),
    (
        &["התוקפים", "השתמשו", "בשרת", "דרך", "הקובץ", "ואז"],
        &[", ", ". ", " "],
    ),
    (
        &["हमलावर", "सर्वर", "का उपयोग", "के माध्यम से", "फ़ाइल", "और"],
        &["। ", ", ", " "],
    ),
    (
        &[
            "οι επιτιθέμενοι",
            "διακομιστής",
            "μέσω",
            "αρχείο",
            "ευπάθεια",
            "και",
        ],
        &[", ", ". ", " "],
    ),
];

fn pick<T: Copy>(random: &mut StdRng, of: &[T]) -> T {
    of[random.random_range(0..of.len())]
}

/// Words of a language, cut anywhere.
fn words(random: &mut StdRng, words: &[&str]) -> String {
    let mut text = String::new();
    for _ in 0..random.random_range(1..=3) {
        let word: Vec<char> = pick(random, words).chars().collect();
        let (from, to) = (
            random.random_range(0..word.len()),
            random.random_range(1..=word.len()),
        );
        text.extend(word.get(from.min(to - 1)..to).unwrap_or_default());
    }
    text.trim().to_owned()
}

#[test]
fn values_attached_to_words_of_any_script_are_found_and_none_besides() {
    let mut random = StdRng::seed_from_u64(16);
    for _ in 0..extent(1_000, 10_000) {
        let (mut text, mut expected) = (String::new(), Vec::new());
        for _ in 0..random.random_range(1..=6) {
            let (language, marks) = pick(&mut random, LANGUAGES);
            let (kind, spelled, value) = pick(&mut random, VALUES);
            text.push_str(&words(&mut random, language));
            match random.random_range(0..3) {
                0 => {}
                1 => text.push(' '),
                _ => text.push_str(pick(&mut random, marks)),
            }
            text.push_str(spelled);
            match random.random_range(0..3) {
                0 => {}
                1 => text.push(' '),
                _ => text.push_str(pick(&mut random, marks)),
            }
            expected.push((kind, value.to_owned()));
            text.push_str(&words(&mut random, language));
            text.push_str(pick(&mut random, &["", " ", "\n"]));
        }
        assert_eq!(found(&text), expected, "{text}");
    }
}

#[test]
fn each_kind_is_found_attached_on_both_sides() {
    for (kind, spelled, value) in VALUES {
        for (words, _) in LANGUAGES {
            let text = format!("{}{spelled}{}", words[1], words[2]);
            assert_eq!(found(&text), [(*kind, (*value).to_owned())], "{text}");
        }
    }
}

#[test]
fn a_url_or_path_ends_where_its_sentence_goes_on() {
    for (text, value) in [
        (
            "下载地址https://evil-lang-case.com/a.bin，家族",
            "https://evil-lang-case.com/a.bin",
        ),
        (
            "网址（https://evil-lang-case.com/x）。邮箱",
            "https://evil-lang-case.com/x",
        ),
        (
            "访问https://evil-lang-case.com/下载后",
            "https://evil-lang-case.com/",
        ),
        (
            "见 https://evil-lang-case.com/该地址已封锁。",
            "https://evil-lang-case.com/",
        ),
        (
            "https://evil-lang-case.com/aを開く",
            "https://evil-lang-case.com/a",
        ),
        ("https://evil-lang-case.comを開く", "https://evil-lang-case.com"),
        ("https://evil-lang-case.com：8080", "https://evil-lang-case.com"),
        (
            "انظر https://evil-lang-case.com/a، ثم",
            "https://evil-lang-case.com/a",
        ),
        (
            "см. https://evil-lang-case.com/a», и",
            "https://evil-lang-case.com/a",
        ),
        ("“https://evil-lang-case.com/a”，", "https://evil-lang-case.com/a"),
        ("C:\\Temp\\a.exe被执行", "C:\\Temp\\a.exe"),
        ("C:\\Temp\\a.exe，然后", "C:\\Temp\\a.exe"),
        ("/tmp/x.sh被执行", "/tmp/x.sh"),
        ("HKLM\\Software\\Brant键", "HKEY_LOCAL_MACHINE\\Software\\Brant"),
    ] {
        let values: Vec<String> = found(text).into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, [value], "{text}");
    }
}

#[test]
fn letters_of_other_scripts_belong_to_names_that_have_them() {
    for (text, kind, value) in [
        (
            "see https://ja.wikipedia.org/wiki/マルウェア for more",
            EntityKind::Url,
            "https://ja.wikipedia.org/wiki/マルウェア",
        ),
        (
            "https://ru.wikipedia.org/wiki/Троян",
            EntityKind::Url,
            "https://ru.wikipedia.org/wiki/Троян",
        ),
        (
            "https://th.wikipedia.org/wiki/ไวรัส?x=1",
            EntityKind::Url,
            "https://th.wikipedia.org/wiki/ไวรัส?x=1",
        ),
        (
            "(https://de.wikipedia.org/wiki/Schädling)",
            EntityKind::Url,
            "https://de.wikipedia.org/wiki/Schädling",
        ),
        (
            "https://пример.рф/путь/x",
            EntityKind::Url,
            "https://xn--e1afmkfd.xn--p1ai/путь/x",
        ),
        (
            "сайт пример.рф закрыт",
            EntityKind::Domain,
            "xn--e1afmkfd.xn--p1ai",
        ),
        ("узел1.рф", EntityKind::Domain, "xn--1-itbfr1b.xn--p1ai"),
        (
            "файл отчёт2023.docx открыт",
            EntityKind::FileName,
            "отчёт2023.docx",
        ),
        (
            "C:\\用户\\桌面\\a.exe",
            EntityKind::FilePath,
            "C:\\用户\\桌面\\a.exe",
        ),
        (
            "C:\\Users\\user用户\\a.exe",
            EntityKind::FilePath,
            "C:\\Users\\user用户\\a.exe",
        ),
        (
            "die Seite bücher-brant.com",
            EntityKind::Domain,
            "xn--bcher-brant-thb.com",
        ),
    ] {
        assert_eq!(found(text), [(kind, value.to_owned())], "{text}");
    }
}
