use proptest::prelude::*;

use super::*;

mod forms;
mod lists;
mod properties;

const RED: Option<Tlp> = Some(Tlp::Red);
const STRICT: Option<Tlp> = Some(Tlp::AmberPk);
const AMBER: Option<Tlp> = Some(Tlp::Amber);
const GREEN: Option<Tlp> = Some(Tlp::Green);
const WHITE: Option<Tlp> = Some(Tlp::White);

/// Fails with each text that has another marking.
fn check(cases: &[(&str, Option<Tlp>)]) {
    let wrong: Vec<String> = cases
        .iter()
        .map(|(text, want)| (text, tlp_hint(text), want))
        .filter(|(_, found, want)| found != *want)
        .map(|(text, found, want)| format!("{text:?} is {found:?}, not {want:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rules_compile() {
    assert!(PHRASES.iter().all(|(_, regex)| regex.is_some()));
}

#[test]
fn markings_are_read_however_they_are_written() {
    for (text, want) in [
        ("TLP:RED", Tlp::Red),
        ("Marked tlp: red, sorry", Tlp::Red),
        ("[TLP:AMBER+STRICT]", Tlp::AmberPk),
        ("TLP AMBER+STRICT", Tlp::AmberPk),
        ("TLP:AMBER-STRICT", Tlp::AmberPk),
        ("TLP AMBER STRICT", Tlp::AmberPk),
        ("tlp:amber+pk", Tlp::AmberPk),
        ("AMBER+STRICT applies", Tlp::AmberPk),
        ("TLP AMBER, strict handling", Tlp::Amber),
        ("TLP-GREEN", Tlp::Green),
        ("TLP_WHITE", Tlp::White),
        ("TLP v2.0: CLEAR", Tlp::White),
        ("TLP\u{2011}RED", Tlp::Red),
        ("TLP[:]RED", Tlp::Red),
        ("Traffic Light Protocol (TLP): Amber", Tlp::Amber),
        (
            "TLP:GREEN in part, TLP:RED in the annex, TLP:WHITE else",
            Tlp::Red,
        ),
    ] {
        assert_eq!(tlp_hint(text), Some(want), "{text}");
    }
}

/// Layouts of a marking of TLP:RED; `RED` and `TLP` stand for what is varied.
const LAYOUTS: &[&str] = &[
    "TLP:\u{a0}RED",
    "TLP\u{a0}:\u{a0}RED",
    "TLP\u{202f}RED",
    "TLP:\tRED",
    "TLP : RED",
    "TLP – RED",
    "TLP—RED",
    "TLP−RED",
    "<b>TLP:</b> RED",
    "TLP:<span style=\"color:#000\">RED</span>",
    "<p>TLP</p>\n<p>RED</p>",
    "TLP<br/>RED",
    "<td>TLP</td><td>RED</td>",
    "<tlp>RED</tlp>",
    "<meta name=\"tlp\" content=\"RED\">",
    "<marking tlp='RED'/>",
    "TLP:&nbsp;RED",
    "TLP&#58; RED",
    "&lt;b&gt;TLP:&lt;/b&gt; RED",
    "TLP: <!-- marking --> RED",
    "**TLP:** RED",
    "TLP: **RED**",
    "**TLP**: RED",
    "TLP: `RED`",
    "TLP:_RED_",
    "# TLP\n\nRED\n\n# Summary",
    "- TLP\n  - RED",
    "> TLP:\n> RED",
    "[TLP](https://www.first.org/tlp/): RED",
    "[b]TLP:[/b] RED",
    "TLP[1]: RED",
    "TLP (RED)",
    "[TLP RED]",
    "TLP: \"RED\"",
    "TLP: «RED»",
    "TLP 【RED】",
    "TLP:\r\nRED",
    "TLP\nRED",
    "| TLP | RED |",
    "| TLP | Date |\n|-----|------|\n| RED | 2024 |",
    "Date,TLP\n2024-01-01,RED\n",
    "Date\tTLP level\n2024\tRED",
    "Date        TLP\n2024-01-01  RED",
    "<table>\n<tr>\n<th>Date</th>\n<th>TLP</th>\n</tr>\n<tr>\n<td>2024</td>\n<td>RED</td>\n</tr>\n</table>",
    "TLP,RED",
    "TLP;RED",
    "TLP/RED",
    "TLP.RED",
    "TLP=RED",
    "TLP_RED",
    "TLP|RED",
    "TLP~RED",
    "TLP→RED",
    "tlp::RED",
    "TLPRED",
    "TLP2.0:RED",
    "TLP 2.0 RED",
    "TLPv2:RED",
    "TLP-Level: RED",
    "TLP level RED",
    "TLP classification: RED",
    "TLP-Einstufung: RED",
    "TLP of this report: RED",
    "TLP colour: RED",
    "The TLP is RED.",
    "TLP was raised to RED",
    "Distribution: RED (TLP)",
    "Traffic Light Protocol: RED",
    "Traffic-Light-Protocol RED",
    "TLP (Traffic Light Protocol): RED",
    "marked as TLP RED",
    "<td>TLP:RED</td>next",
    "T<b>L</b>P:R<i>E</i>D",
    "{\"tlp\":\"RED\"}",
    "{\"tlp\": {\"level\": \"RED\"}}",
    "{\"tlpLevel\": \"RED\"}",
    "{\"name\": \"tlp\", \"value\": \"RED\"}",
    "\"marking\": \"TLP:\\u00a0RED\"",
    "tlp: RED\ntitle: x",
    "tlp:\n  level: RED",
    "tlp_marking = 'RED'",
    "\u{200b}TLP:RED",
    "TLP\u{200b}:\u{feff}RED",
    "T\u{ad}LP:R\u{ad}ED",
    "TLP\u{2236}RED",
    "TLP\u{fe0f}:RED",
    "ＴＬＰ：ＲＥＤ",
    "𝐓𝐋𝐏: 𝐑𝐄𝐃",
    "T L P : R E D",
    "T.L.P.: RED",
    "tlp%3ARED",
    "tlp=3ARED",
    "ТLР: RЕD",
    "TLP: ROT",
    "TLP: rojo",
    "TLP: ROUGE",
    "TLP:红色",
    "此报告TLP:RED的内容",
    "TLP：赤",
    "TLP: красный",
    "TLP: 🔴",
    "\\textbf{TLP:} RED",
    "This is not TLP:AMBER but TLP:RED.",
    "Do not share! TLP:RED",
];

#[test]
fn layout_does_not_hide_a_marking() {
    for layout in LAYOUTS {
        for text in [
            (*layout).to_owned(),
            format!("Report 12\n\n{layout}\n\nThe host gate.tlp-text.com was seen with 203.0.113.7."),
        ] {
            assert_eq!(tlp_hint(&text), Some(Tlp::Red), "{text:?}");
            for (word, level) in [
                ("AMBER+STRICT", Tlp::AmberPk),
                ("AMBER", Tlp::Amber),
                ("GREEN", Tlp::Green),
            ] {
                let other = text.replace("RED", word);
                let named = other.contains(word) && !other.contains("AMBER but");
                assert!(
                    !named || tlp_hint(&other) == Some(level),
                    "{other:?} {:?}",
                    tlp_hint(&other)
                );
            }
        }
        let small = layout.replace("RED", "red");
        let needs_capitals = ["T L P", "TLP2.0", "Traffic"]
            .iter()
            .any(|start| small.starts_with(start));
        assert!(needs_capitals || tlp_hint(&small) == Some(Tlp::Red), "{small:?}");
    }
}

#[test]
fn ordinary_sentences_state_no_marking() {
    for text in [
        "The TLP is not red.",
        "The TLP isn't red.",
        "This is not TLP:RED.",
        "It is not marked as TLP RED.",
        "It isn't TLP:RED, they said.",
        "There is no TLP:RED information in it.",
        "Only non-TLP:RED data is shared.",
        "The TLP has four levels: red, amber, green and clear.",
        "TLP levels are red, amber, green, clear.",
        "TLP (RED, AMBER, GREEN, CLEAR) is a protocol.",
        "TLP: RED/AMBER/GREEN/WHITE",
        "We follow the TLP. Red teams use it too.",
        "Under TLP, red teams are readers.",
        "TLP red team exercise",
        "The TLP is clear to everybody.",
        "The TLP makes it clear who may read.",
        "See tlp.white.example.com for more.",
        "Ask your TLP contact about the red button.",
        "TLP was red tape to them.",
        "The traffic light turned red.",
        "Traffic light protocols matter; red lights too.",
        "tlp: do not guess",
    ] {
        assert_eq!(tlp_hint(text), None, "{text}");
    }
}

#[test]
fn long_texts_of_separators_are_read_in_no_time() {
    let length = test_support::extent(1 << 14, 1 << 20);
    for unit in [
        " ",
        "\n",
        ":",
        "-",
        "|",
        "*",
        "<",
        "<a",
        "</",
        "[",
        "](",
        "&",
        "&#",
        "%",
        "=",
        "\\",
        "\\a",
        ",",
        "TLP",
        "TLP ",
        "TLP:",
        "TLP|",
        "TLP\n",
        "T L P ",
        "TLP level ",
        "TLP:RED ",
        "TLP:RED,",
        "AMBER ",
        "AMBER+",
        "not ",
        "Traffic Light ",
        "\u{a0}",
        "\u{200b}",
        "\u{301}",
        "红",
        "🔴",
        "a",
        "TLP,x\n",
        "TLP RED x ",
        "TLP:RED one two three ",
        "TLP: ☐ RED ☐ AMBER ",
        "RED: a ",
        "TLP|RED|[ ]\n",
        "☐",
        "[ ] ",
        "[x] ",
        "x ",
        "<input type=checkbox>",
        "Red x <b class=tlp>红| x |",
        "<tr>",
        "&amp;",
    ] {
        let text = unit.repeat(length / unit.len());
        let start = std::time::Instant::now();
        tlp_hint(&text);
        // Slow builds beside other tests included; a quadratic reader would take minutes.
        assert!(start.elapsed().as_secs() < 10, "{unit:?} {:?}", start.elapsed());
    }
}

#[test]
fn parts_of_other_words_are_no_marking() {
    for text in [
        "",
        "HTLP:RED",
        "TLP:REDACTED",
        "TLP:GREENHOUSE",
        "TLP is a protocol. Red teams use it.",
        "TLP\n\nRed team exercise",
        "the red light, amber and green",
        "stlp-green",
        "TLP:PINK",
    ] {
        assert_eq!(tlp_hint(text), None, "{text}");
    }
}

#[test]
fn a_marking_above_the_proposed_one_is_warned_of() {
    let warnings = sensitivity("TLP:RED. APT28 uses X-Agent.", Tlp::Green);
    assert_eq!(
        warnings,
        ["TLP sensitivity: the text states TLP:RED, above the proposed TLP:GREEN"]
    );
    assert!(sensitivity("TLP:AMBER", Tlp::Amber).is_empty());
    assert!(sensitivity("TLP:GREEN", Tlp::Red).is_empty());
    assert_eq!(sensitivity("TLP:AMBER+STRICT", Tlp::Amber).len(), 1);
}

#[test]
fn words_that_ask_for_care_are_warned_of() {
    for text in [
        "Do not share.",
        "Intro. DO NOT SHARE outside the team.",
        "Please do not forward this email.",
        "We ask that you do not share this report with anyone.",
        "Partners agreed: don't distribute further.",
        "This report must not be shared.",
        "These indicators may not be redistributed without approval.",
        "This advisory is not to be published.",
        "Not for public release",
        "Not for distribution",
        "not intended for further distribution",
        "No further dissemination, please.",
        "Confidential",
        "** CONFIDENTIAL **\nSummary",
        "CONFIDENTIAL - incident 42",
        "Strictly confidential: incident 42",
        "This report is strictly confidential and names victims.",
        "This incident information is to be kept confidential.",
        "Please treat this as confidential.",
        "commercial-in-confidence",
        "Classification: Restricted",
        "For internal use only",
        "INTERNAL USE ONLY",
        "[internal only] Notes on the incident",
        "Shared on a need-to-know basis.",
        "strictly need to know",
        "For your eyes only.",
        "FIVE EYES ONLY",
        "RESTRICTED\nSummary of findings",
        "NATO RESTRICTED",
        "OFFICIAL-SENSITIVE",
        "Restricted distribution: CERTs",
        "Distribution is limited to members.",
        "Law Enforcement Sensitive",
        "For official use only (FOUO)",
        "Embargoed until Tuesday.",
        "Provided under NDA.",
        "For named recipients only.",
    ] {
        let warnings = sensitivity(text, Tlp::Green);
        assert!(!warnings.is_empty(), "{text}");
        assert!(
            warnings.iter().all(|warning| warning.starts_with(SENSITIVITY)),
            "{warnings:?}"
        );
    }
}

#[test]
fn ordinary_reports_are_not_warned_of() {
    for text in [
        "They do not share infrastructure with APT28.",
        "The two clusters do not share code or tooling.",
        "While the samples overlap, these families do not share a builder.",
        "The actor stole confidential documents and restricted data.",
        "The flaw affects the confidentiality of data.",
        "The lure was named CONFIDENTIAL.docx and CONFIDENTIAL_2024.pdf.",
        "CVE-2024-1 allows access to restricted areas.",
        "Restricted Admin mode was enabled on the host.",
        "The API is reachable from internal-only networks.",
        "An internal tool is used by the group.",
        "What you need to know about Log4Shell",
        "Defenders need to know which ports are open.",
        "Follow the need-to-know principle when granting access.",
        "The group eyes only financial targets.",
        "Samples were not shared publicly until 2023.",
        "The vendor did not release the code.",
        "Confidential VMs protect memory.",
        "Its distribution relies on phishing mails.",
        "Access is restricted to administrators.",
        "The malware does not copy itself.",
        "Law enforcement seized the servers.",
    ] {
        assert_eq!(sensitivity(text, Tlp::White), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn words_ask_for_a_level_and_no_more() {
    assert!(sensitivity("Do not share.", Tlp::Amber).is_empty());
    assert_eq!(sensitivity("For your eyes only.", Tlp::Amber).len(), 1);
    assert!(sensitivity("For your eyes only.", Tlp::Red).is_empty());
    let warnings = sensitivity("Do not share. do  not share! Not for distribution.", Tlp::Green);
    assert_eq!(
        warnings,
        [
            "TLP sensitivity: the text says \"Do not share\", which asks for TLP:AMBER, above the proposed TLP:GREEN",
            "TLP sensitivity: the text says \"Not for distribution\", which asks for TLP:AMBER, above the proposed TLP:GREEN",
        ]
    );
}

proptest! {
    #[test]
    fn nothing_is_above_red_and_the_count_is_bounded(text in r"(TLP:RED |Do not share\. |Confidential\n|[a-z .]{0,9}|FOUO|NOFORN |LIMDIS |embargoed until |internal use only\.){0,30}") {
        prop_assert!(sensitivity(&text, Tlp::Red).is_empty());
        prop_assert!(sensitivity(&text, Tlp::White).len() <= 1 + MAX_PHRASES);
    }
}
