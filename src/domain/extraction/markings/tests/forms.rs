//! Forms: which of the levels is ticked.

use super::*;

#[test]
fn the_ticked_level_of_a_form_is_the_marking() {
    check(&[
        ("TLP: ☐ CLEAR ☐ GREEN ☐ AMBER ☒ RED", RED),
        ("TLP: ☐ RED ☐ AMBER ☒ GREEN ☐ CLEAR", GREEN),
        ("TLP: ☐ RED ☐ AMBER ☐ GREEN ☑ CLEAR", WHITE),
        ("TLP: [ ] CLEAR [ ] GREEN [x] AMBER", AMBER),
        ("TLP: [ ] CLEAR [ ] GREEN [X] AMBER+STRICT [ ] RED", STRICT),
        ("TLP: [x] RED [ ] AMBER", RED),
        ("TLP: [ ] RED [x] AMBER", AMBER),
        ("TLP: ( ) RED (x) AMBER ( ) GREEN ( ) WHITE", AMBER),
        ("TLP: [] RED [] AMBER [✓] GREEN", GREEN),
        ("TLP: [_] RED [_] AMBER [X] GREEN", GREEN),
        ("TLP: ☐ RED ✔ AMBER ☐ GREEN ☐ CLEAR", AMBER),
        ("TLP: ○ RED ● AMBER ○ GREEN ○ CLEAR", AMBER),
        ("TLP: ❌ RED ✅ AMBER ❌ GREEN", AMBER),
        ("TLP: ☐ RED ✗ AMBER ☐ GREEN", AMBER),
        ("TLP: \u{f0a8} RED \u{f0fe} AMBER \u{f0a8} GREEN", AMBER),
        ("TLP: ☐ RED | ☒ AMBER | ☐ GREEN | ☐ CLEAR", AMBER),
        ("TLP: ☐ RED, ☒ AMBER, ☐ GREEN, ☐ CLEAR", AMBER),
        ("TLP:☐RED☒AMBER☐GREEN☐CLEAR", AMBER),
        ("TLP: ☐ 🔴 RED ☒ 🟠 AMBER ☐ 🟢 GREEN ☐ ⚪ CLEAR", AMBER),
        ("TLP: ☒ RED ☒ AMBER ☐ GREEN", RED),
        ("TLP: ☐ CLEAR ☐ GREEN ☒ AMBER ☐ AMBER+STRICT ☐ RED", AMBER),
        ("tlp: ☐ clear ☐ green ☐ amber ☒ red", RED),
        ("tlp: [ ] red [x] green [ ] clear", GREEN),
        // Behind the level.
        ("TLP: CLEAR [ ] GREEN [x] AMBER [ ] RED [ ]", GREEN),
        ("TLP: CLEAR ☐ GREEN ☐ AMBER ☐ RED ☒", RED),
        ("TLP: RED ☐, AMBER ☒, GREEN ☐, CLEAR ☐", AMBER),
        ("TLP: RED (x) AMBER ( ) GREEN ( )", RED),
        // A single tick.
        ("TLP: CLEAR | GREEN | ✓ AMBER | RED", AMBER),
        ("TLP: CLEAR | GREEN ✓ | AMBER | RED", GREEN),
        ("TLP: CLEAR / GREEN / AMBER / [x] RED", RED),
        // Of either: the stricter one.
        ("TLP: CLEAR GREEN ✓ AMBER RED", AMBER),
        // With explanations.
        (
            "TLP: ☐ CLEAR (public) ☐ GREEN (community) ☒ AMBER (organisation) ☐ RED (named persons)",
            AMBER,
        ),
        (
            "TLP: ☐ RED for named persons ☒ AMBER for the organisation ☐ GREEN for the community",
            AMBER,
        ),
        (
            "TLP: [ ] RED - not for disclosure, restricted to participants [x] GREEN - limited to the community",
            GREEN,
        ),
        // Over lines.
        ("TLP:\n☐ CLEAR\n☐ GREEN\n☒ AMBER\n☐ RED\n", AMBER),
        (
            "TLP:\n\n- [ ] CLEAR\n- [ ] GREEN\n- [x] AMBER\n- [ ] RED\n",
            AMBER,
        ),
        ("TLP\n* [x] RED\n* [ ] AMBER\n* [ ] GREEN\n* [ ] CLEAR", RED),
        ("TLP: ☐ CLEAR\n     ☐ GREEN\n     ☒ AMBER\n     ☐ RED", AMBER),
        ("TLP: CLEAR ☐\n     GREEN ☐\n     AMBER ☐\n     RED ☒", RED),
        ("TLP\nCLEAR\nGREEN\nAMBER ✓\nRED\n", AMBER),
        ("TLP\nRED: [ ]\nAMBER: [x]\nGREEN: [ ]\n", AMBER),
        (
            "## TLP\n\n- [ ] **CLEAR**: no limit\n- [x] **GREEN**: the community\n- [ ] **AMBER**: the \
             organisation\n- [ ] **RED**: named persons\n",
            GREEN,
        ),
        (
            "Please choose the TLP of this report:\n[ ] CLEAR\n[x] GREEN\n[ ] AMBER\n[ ] RED",
            GREEN,
        ),
        (
            "Traffic Light Protocol (TLP), tick one:\n[ ] RED\n[X] AMBER\n[ ] GREEN",
            AMBER,
        ),
        (
            "TLP marking (mark with an [x]):\n1. [ ] RED\n2. [x] AMBER\n3. [ ] GREEN",
            AMBER,
        ),
        // With TLP at each level.
        ("☐ TLP:RED ☒ TLP:AMBER ☐ TLP:GREEN ☐ TLP:CLEAR", AMBER),
        (
            "[ ] TLP:RED\n[x] TLP:AMBER+STRICT\n[ ] TLP:AMBER\n[ ] TLP:GREEN\n[ ] TLP:CLEAR",
            STRICT,
        ),
        (
            "- [ ] TLP:RED\n- [ ] TLP:AMBER\n- [x] TLP:GREEN\n- [ ] TLP:CLEAR",
            GREEN,
        ),
        ("[x] TLP:RED [ ] TLP:AMBER", RED),
        ("TLP:CLEAR [ ]  TLP:GREEN [x]  TLP:AMBER [ ]  TLP:RED [ ]", GREEN),
        (
            "☐ TLP:CLEAR – public\n☐ TLP:GREEN – community\n☒ TLP:AMBER – organisation\n☐ TLP:RED – named persons",
            AMBER,
        ),
        // Other languages.
        ("TLP: ☐ WEISS ☐ GRÜN ☒ GELB ☐ ROT", AMBER),
        ("TLP : ☐ blanc ☐ vert ☐ ambre ☒ rouge", RED),
        ("TLP: [ ] blanco [x] verde [ ] ámbar [ ] rojo", GREEN),
        ("TLP：☐白 ☐绿 ☒黄 ☐红", AMBER),
        ("TLP: ☐ белый ☐ зелёный ☐ жёлтый ☒ красный", RED),
    ]);
}

#[test]
fn forms_in_tables_are_read() {
    check(&[
        ("| TLP | ☐ CLEAR | ☐ GREEN | ☒ AMBER | ☐ RED |", AMBER),
        (
            "| TLP | |\n|---|---|\n| CLEAR | |\n| GREEN | |\n| AMBER | x |\n| RED | |",
            AMBER,
        ),
        (
            "| TLP | |\n|-----|---|\n| RED | [ ] |\n| AMBER | [ ] |\n| GREEN | [x] |\n| CLEAR | [ ] |",
            GREEN,
        ),
        (
            "| | TLP |\n|---|---|\n| [ ] | RED |\n| [x] | AMBER |\n| [ ] | GREEN |\n| [ ] | CLEAR |",
            AMBER,
        ),
        (
            "| TLP | CLEAR | GREEN | AMBER | RED |\n|---|---|---|---|---|\n| Report 12 | | | x | |",
            AMBER,
        ),
        (
            "| TLP | CLEAR | GREEN | AMBER | RED |\n|---|---|---|---|---|\n|  | ☐ | ☒ | ☐ | ☐ |",
            GREEN,
        ),
        (
            "| Report | Title | TLP |\n|---|---|---|\n| 12 | The long title of a report on malware | ☐ CLEAR ☐ GREEN ☒ AMBER ☐ RED |",
            AMBER,
        ),
        ("| Date | TLP |\n|---|---|\n| 2024 | AMBER/RED |", RED),
        (
            "| TLP | Sharing |\n|---|---|\n| ☐ RED | named |\n| ☒ AMBER | organisation |",
            AMBER,
        ),
        (
            "<table><tr><td>TLP</td><td>☐ CLEAR</td><td>☐ GREEN</td><td>☒ AMBER</td><td>☐ RED</td></tr></table>",
            AMBER,
        ),
        (
            "<table>\n<tr><th>TLP</th><th>CLEAR</th><th>GREEN</th><th>AMBER</th><th>RED</th></tr>\n\
             <tr><td></td><td></td><td>X</td><td></td><td></td></tr>\n</table>",
            GREEN,
        ),
        (
            "<table><tr><th>TLP</th><th></th></tr><tr><td>RED</td><td>&#9744;</td></tr><tr><td>AMBER</td>\
             <td>&#9746;</td></tr><tr><td>GREEN</td><td>&#9744;</td></tr></table>",
            AMBER,
        ),
        (
            "<p>TLP:</p><ul><li>☐ RED</li><li>☒ AMBER</li><li>☐ GREEN</li><li>☐ CLEAR</li></ul>",
            AMBER,
        ),
        (
            "TLP: <input type=\"radio\" name=\"t\"> RED <input type=\"radio\" name=\"t\" checked> AMBER \
             <input type=\"radio\" name=\"t\"/> GREEN",
            AMBER,
        ),
        (
            "TLP: <select><option>CLEAR</option><option selected>GREEN</option><option>RED</option></select>",
            GREEN,
        ),
        ("TLP: <b>☐</b> RED <b>☒</b> AMBER <b>☐</b> GREEN", AMBER),
        (
            "| | TLP:RED | TLP:AMBER | TLP:GREEN | TLP:CLEAR |\n|---|---|---|---|---|\n| Report | | x | | |",
            AMBER,
        ),
        // A task list with markings is no form.
        (
            "| Task | TLP | Done |\n|---|---|---|\n| a | RED | [ ] |\n| b | AMBER | [x] |",
            RED,
        ),
        (
            "| Report | TLP |\n|---|---|\n| a | GREEN |\n| b | RED |\n| c | AMBER |\n| d | CLEAR |",
            RED,
        ),
    ]);
}
