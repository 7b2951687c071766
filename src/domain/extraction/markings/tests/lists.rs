//! Lists, explanations of the levels, and sentences about them.

use super::*;

/// How FIRST explains the levels.
const FIRST: &str = "\
a. TLP:RED = For the eyes and ears of individual recipients only, no further disclosure. Sources may use TLP:RED when \
information cannot be effectively acted upon without significant risk for the privacy, reputation, or operations of the \
organizations involved. Recipients may therefore not share TLP:RED information with anyone else. In the context of a \
meeting, for example, TLP:RED information is limited to those present at the meeting.
b. TLP:AMBER = Limited disclosure, recipients can only spread this on a need-to-know basis within their organization and \
its clients. Note that TLP:AMBER+STRICT restricts sharing to the organization only. Sources may use TLP:AMBER when \
information requires support to be effectively acted upon, yet carries risk to privacy, reputation, or operations if \
shared outside of the organizations involved. Recipients may share TLP:AMBER information with members of their own \
organization and its clients, but only on a need-to-know basis to protect their organization and its clients and prevent \
further harm. Note: if the source wants to restrict sharing to the organization only, they must specify TLP:AMBER+STRICT.
c. TLP:GREEN = Limited disclosure, recipients can spread this within their community. Sources may use TLP:GREEN when \
information is useful to increase awareness within their wider community. Recipients may share TLP:GREEN information with \
peers and partner organizations within their community, but not via publicly accessible channels. TLP:GREEN information \
may not be shared outside of the community. Note: when \u{201c}community\u{201d} is not defined, assume the \
cybersecurity/defense community.
d. TLP:CLEAR = Recipients can spread this to the world, there is no limit on disclosure. Sources may use TLP:CLEAR when \
information carries minimal or no foreseeable risk of misuse, in accordance with applicable rules and procedures for \
public release. Subject to standard copyright rules, TLP:CLEAR information may be shared without restriction.";

#[test]
fn forms_without_a_tick_and_explanations_state_none() {
    check(&[
        ("TLP: ☐ CLEAR ☐ GREEN ☐ AMBER ☐ RED", None),
        ("TLP: [ ] RED [ ] AMBER [ ] GREEN [ ] CLEAR", None),
        ("TLP: [ ] RED [ ] AMBER", None),
        ("TLP: ☐ GREEN", None),
        ("☐ TLP:RED ☐ TLP:AMBER ☐ TLP:GREEN ☐ TLP:CLEAR", None),
        ("TLP:\n- [ ] CLEAR\n- [ ] GREEN\n- [ ] AMBER\n- [ ] RED", None),
        ("TLP: CLEAR | GREEN | AMBER | RED", None),
        ("TLP: CLEAR - GREEN - AMBER - RED", None),
        ("TLP: CLEAR; GREEN; AMBER; RED", None),
        ("TLP: CLEAR · GREEN · AMBER · RED", None),
        ("TLP: <CLEAR|GREEN|AMBER|RED>", None),
        ("TLP: {CLEAR, GREEN, AMBER, AMBER+STRICT, RED}", None),
        ("TLP: RED | AMBER | GREEN | CLEAR", None),
        ("TLP: RED AMBER GREEN CLEAR", None),
        ("TLP: Red, amber, green or clear", None),
        ("tlp: clear | green | amber | red", None),
        ("TLP:\nCLEAR\nGREEN\nAMBER\nRED\n", None),
        ("TLP: 🔴 RED 🟠 AMBER 🟢 GREEN ⚪ CLEAR", None),
        ("TLP:\n- CLEAR: …\n- GREEN: …", None),
        ("TLP:\n- CLEAR: for the public\n- GREEN: for the community", None),
        (
            "TLP:\n- RED: not for disclosure\n- AMBER: limited disclosure\n- GREEN: community\n- CLEAR: no limit",
            None,
        ),
        (
            "TLP:\n- CLEAR: no limit\n- GREEN: community\n- AMBER: limited disclosure\n- RED: not for disclosure",
            None,
        ),
        (
            "TLP: CLEAR = public, GREEN = community, AMBER = organisation, RED = named persons",
            None,
        ),
        (
            "TLP: CLEAR (public), GREEN (community), AMBER (organisation)",
            None,
        ),
        ("TLP: GREEN (summary), AMBER (body), RED (annex)", None),
        (
            "TLP\nRED\nNot for disclosure\nAMBER\nLimited disclosure\nGREEN\nCommunity\nCLEAR\nNo limit\n",
            None,
        ),
        (
            "TLP 2.0\n\n**RED** For named recipients only.\n\n**AMBER** For the organisation.\n\n**GREEN** For the \
             community.\n\n**CLEAR** For everybody.",
            None,
        ),
        (
            "| TLP | Meaning |\n|---|---|\n| RED | not for disclosure |\n| AMBER | limited disclosure |\n| GREEN | community |\n| CLEAR | public |",
            None,
        ),
        ("| TLP |\n|---|\n| CLEAR |\n| GREEN |\n| AMBER |\n| RED |", None),
        (
            "TLP,Meaning\nRED,not for disclosure\nAMBER,limited disclosure\nGREEN,community\nCLEAR,public\n",
            None,
        ),
        (
            "<dl>TLP:<dt>RED</dt><dd>named</dd><dt>AMBER</dt><dd>own</dd><dt>GREEN</dt><dd>all</dd><dt>CLEAR</dt></dl>",
            None,
        ),
        (
            "<ul>TLP:<li>CLEAR: public</li><li>GREEN: all</li><li>AMBER: own</li><li>RED: named</li></ul>",
            None,
        ),
        (
            "TLP: <select><option>CLEAR</option><option>GREEN</option><option>RED</option></select>",
            None,
        ),
        (
            "TLP:RED, TLP:AMBER, TLP:GREEN and TLP:CLEAR are its levels.",
            None,
        ),
        (
            "The levels are TLP:CLEAR, TLP:GREEN, TLP:AMBER, TLP:AMBER+STRICT and TLP:RED.",
            None,
        ),
        ("TLP: RED, AMBER, GREEN and TLP:CLEAR", None),
        (
            "TLP:RED = not for disclosure\nTLP:AMBER = limited disclosure\nTLP:GREEN = community\nTLP:CLEAR = public",
            None,
        ),
        (
            "TLP:RED: recipients may not share TLP:RED information\nTLP:AMBER: sources may use TLP:AMBER too\n\
             TLP:GREEN: community\nTLP:CLEAR: recipients may share TLP:CLEAR information freely",
            None,
        ),
        (FIRST, None),
        (
            "| TLP:RED | named recipients |\n| TLP:AMBER | own organisation |\n| TLP:GREEN | community |\n| TLP:CLEAR | public |",
            None,
        ),
        (
            "{\"tlp\": {\"enum\": [\"CLEAR\", \"GREEN\", \"AMBER\", \"RED\"]}}",
            None,
        ),
        ("tlp: [clear, green, amber, red]", None),
        ("TLP: WEISS, GRÜN, GELB oder ROT", None),
        ("TLP : blanc / vert / ambre / rouge", None),
        ("TLP：红、黄、绿、白", None),
        ("TLP:红黄绿白", None),
        ("TLP: красный, жёлтый, зелёный и белый", None),
        ("Distribution: CLEAR | GREEN | AMBER | RED (TLP)", None),
        ("Distribution: AMBER, GREEN, CLEAR (TLP 2.0)", None),
        // One of two that would lower.
        ("TLP: CLEAR/GREEN", None),
        ("TLP: GREEN (summary), CLEAR (annex)", None),
        ("TLP: GREEN | Severity: RED", None),
    ]);
}

#[test]
fn of_two_levels_the_stricter_counts() {
    check(&[
        ("TLP: AMBER/RED", RED),
        ("TLP: RED/AMBER", RED),
        ("TLP: AMBER or RED", RED),
        ("TLP: AMBER – RED", RED),
        ("TLP: AMBER, RED", RED),
        ("TLP: GREEN (summary), RED (annex)", RED),
        ("TLP: RED (annex), GREEN (summary)", RED),
        ("TLP: GREEN for the summary, RED for the annex", RED),
        ("TLP: GREEN for the summary and RED for the annex", RED),
        ("TLP: AMBER/RED for the annex", RED),
        ("TLP:\n- GREEN: summary\n- RED: annex", RED),
        ("TLP: GREEN | RED", RED),
        ("TLP: AMBER/AMBER+STRICT", STRICT),
        ("TLP: AMBER+STRICT (body), GREEN (summary)", STRICT),
        ("tlp: green (summary), red (annex)", RED),
        ("tlp: amber/red", RED),
        ("TLP: Green / Amber", AMBER),
        ("TLP changed from GREEN to RED", RED),
        ("{\"tlp\": [\"GREEN\", \"RED\"]}", RED),
        ("TLP: GRÜN (Zusammenfassung), ROT (Anhang)", RED),
        ("TLP : vert (résumé), rouge (annexe)", RED),
        ("TLP：绿、红", RED),
        ("TLP:GREEN in part, TLP:RED in the annex, TLP:CLEAR else", RED),
        ("Distribution: AMBER/RED (TLP)", RED),
        ("Distribution: RED (TLP 2.0)", RED),
        ("Distribution: RED (TLP v2.0)", RED),
        ("Distribution: RED (TLP version 2.0)", RED),
        ("Distribution: GREEN (TLP 1.0)", GREEN),
    ]);
}

#[test]
fn what_follows_a_marking_does_not_hide_it() {
    for (marking, want) in [
        ("TLP:RED", RED),
        ("TLP: AMBER+STRICT", STRICT),
        ("TLP: AMBER", AMBER),
        ("TLP:GREEN", GREEN),
        ("**TLP:** GREEN", GREEN),
        ("TLP:CLEAR", WHITE),
        ("| TLP | RED |", RED),
        ("<b>TLP:</b> GREEN", GREEN),
        ("[x] TLP:AMBER", AMBER),
    ] {
        for behind in [
            "\n\nTLP:\n- RED: not for disclosure\n- AMBER: limited\n- GREEN: community\n- CLEAR: no limit\n",
            "\n\nTLP levels\nRED: named\nAMBER: own\nGREEN: all\nCLEAR: public\n",
            "\n\nTLP: CLEAR | GREEN | AMBER | RED\n",
            "\nCLEAR | GREEN | AMBER | RED\n",
            "\nRED, AMBER, GREEN, CLEAR\n",
            "\n\nTLP: ☐ CLEAR ☐ GREEN ☐ AMBER ☐ RED\n",
            "\n\nTLP:RED – not for disclosure\nTLP:AMBER – limited disclosure\nTLP:GREEN – community\nTLP:CLEAR – public\n",
            "\n\nThe report is short.\n\nTLP:RED\nNot for disclosure\nTLP:AMBER\nLimited\nTLP:GREEN\nCommunity\nTLP:CLEAR\nNo limit\n",
            "\n\nThe report is short.\n\nTLP:CLEAR – public\nTLP:GREEN – community\nTLP:AMBER – limited disclosure\nTLP:RED – not for disclosure\n",
            " – Report 12\n\nTLP:CLEAR – public\nTLP:GREEN – community\nTLP:AMBER – limited disclosure\nTLP:RED – not for disclosure\n",
            " – Report 12\n\nLevels\nCLEAR – public\nGREEN – all\nAMBER – own\nRED – named\n",
            ": Report 12\nRED: named\nAMBER: own\nGREEN: all\nCLEAR: public\n",
            "\n\nThe levels of TLP are RED, AMBER, GREEN and CLEAR.\n",
            "\n\nTLP 2.0 has TLP:RED, TLP:AMBER, TLP:GREEN and TLP:CLEAR.\n",
            "\n\n| TLP | Meaning |\n|---|---|\n| RED | not for disclosure |\n| AMBER | limited disclosure |\n| GREEN | community |\n| CLEAR | public |\n",
            "\n\n| Host | State |\n|---|---|\n| a | GREEN |\n| b | YELLOW |\n| c | WHITE |\n",
            "\n\nSeverity\nGREEN: low\nYELLOW: middle\nRED: high\n",
            "\nSeverity: RED\n",
            "\n\nRed Menshen and Yellow Garuda were seen.\n",
            "\n\nThe red team, a white paper and green hosts.\n",
            "\n\n- [x] Green: checked\n- [ ] Red: open\n",
            "\n\n- [x] read\n- [ ] sent\n",
            " Yellow Cockatoo report",
            ", sent in May. Red hosts were amber before.",
            "\n\nSee name, TLP, and type.\nThey are red, white, and blue.\n",
        ] {
            let text = format!("{marking}{behind}");
            assert_eq!(tlp_hint(&text), want, "{text:?}");
        }
    }
}

#[test]
fn sentences_with_levels_state_none() {
    check(&[
        ("TLP WHITE PAPER", None),
        ("TLP White Paper on sharing", None),
        ("A TLP WHITE LIST of hosts", None),
        ("TLP GREEN LIGHT", None),
        (
            "The TLP standard has name, TLP, and type.\nThe flag is red, white, and blue.",
            None,
        ),
        ("Columns: name, TLP, owner\nred, white, blue", None),
        ("name, TLP, and type\nred, white, and blue", None),
        ("Fields: name, TLP, type.\n\nFlags are red, white, blue.", None),
        ("name; TLP; and type\nred; white; and blue", None),
        ("We compare TLP with red, amber, green and white flags.", None),
        ("TLP can be red, amber, green or clear.", None),
        ("The TLP of a text is red, amber, green or clear.", None),
        ("There are four TLP colours: red, amber, green, white.", None),
        (
            "TLP uses the colours of a traffic light: red, amber and green.",
            None,
        ),
        ("Our TLP contact wears red, white and blue.", None),
        ("Read about TLP in the white paper.", None),
        ("TLP helps. Green and white teams agree.", None),
        ("TLP makes clear who may read, red tape or not.", None),
        ("The TLP is clear and red is its strictest level.", None),
        ("TLP, the Traffic Light Protocol, is white noise to some.", None),
        ("Das TLP kennt rot, gelb, grün und weiß.", None),
        ("Le TLP est rouge, ambre, vert ou blanc.", None),
        ("TLP es rojo, ámbar, verde o blanco.", None),
        (
            "Notes on TLP\n\n- [ ] read the red book\n- [x] paint the door white",
            None,
        ),
        ("TLP training: [x] done", None),
        ("Ask for TLP ☐ yes ☐ no", None),
        ("TLP:\n☐ yes\n☒ no, the door is white", None),
    ]);
}

#[test]
fn sentences_that_state_a_marking_are_read() {
    check(&[
        ("The TLP of this report is Red.", RED),
        ("The TLP of this report is Red until Friday.", RED),
        ("The TLP of the annex is Amber.", AMBER),
        ("Die TLP-Einstufung dieses Berichts ist Rot.", RED),
        ("The TLP of this report is RED.", RED),
        ("TLP of this report: Green", GREEN),
        ("The TLP contact is Red Menshen.", None),
        ("The TLP of this report is White.", None),
        ("TLP:GREEN list of hosts", GREEN),
        ("TLP:GREEN report on malware", GREEN),
        ("TLP: GREEN, not RED", GREEN),
        ("TLP:CLEAR (formerly WHITE)", WHITE),
        ("TLP: ☐ RED", RED),
        ("TLP: [x] GREEN", GREEN),
        ("tlp: [x] green", GREEN),
        ("TLP:\n● RED", RED),
        ("TLP:\n● GREEN", GREEN),
        ("TLP:GREEN ✓", GREEN),
        ("- [x] TLP:GREEN report sent\n- [ ] TLP:RED report sent", RED),
        ("TLP:RED [ ] read", RED),
        // The parts of a report and reports in a table have a marking each.
        (
            "TLP:CLEAR – Summary\nA short one.\nTLP:GREEN – Hosts\nThree.\nTLP:AMBER – Victims\nTwo.\nTLP:RED – Names\nOne.",
            RED,
        ),
        (
            "| TLP | Report |\n|---|---|\n| CLEAR | a |\n| GREEN | b |\n| AMBER | c |\n| RED | d |",
            RED,
        ),
    ]);
}
