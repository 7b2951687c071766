//! Forms and lists of any layout, and texts of their pieces.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

/// Pieces of markings, forms, lists and what stands around them.
const PIECES: &[&str] = &[
    "TLP",
    "TLP:",
    "TLP: ",
    "tlp: ",
    "TLP:RED",
    "TLP:GREEN ",
    "TLP:CLEAR ",
    "TLP RED x ",
    "TLP level ",
    "RED",
    "RED ",
    "RED, ",
    "red ",
    "Red ",
    "AMBER+",
    "AMBER ",
    "GREEN: ",
    "CLEAR (",
    "white",
    "AMBER+STRICT ",
    " ",
    "  ",
    "\n",
    "\n\n",
    ", ",
    "; ",
    "/",
    "|",
    "| x |",
    "- ",
    "☐ ",
    "☒ ",
    "☐",
    "[ ] ",
    "[",
    "(",
    "[x] ",
    "x ",
    "✓",
    ": ",
    "= ",
    " – ",
    ")",
    " and ",
    "not ",
    "a ",
    "one two three four five six ",
    "1. ",
    "team ",
    "<td>",
    "</td>",
    "<tr>",
    "<li>",
    "<input type=checkbox>",
    "<option selected>",
    "<b class=tlp>",
    "TLP|RED\n",
    "TLP,RED\n",
    "TLP|[ ]|",
    "RED|",
    "TLP,a\n",
    "T L P ",
    "R E D ",
    "红",
    "🔴",
    "\u{f0a8}",
    "\u{a0}",
    "&nbsp;",
];
const BOXES: &[(&str, &str)] = &[
    ("☐", "☒"),
    ("☐", "☑"),
    ("☐", "✓"),
    ("[ ]", "[x]"),
    ("[ ]", "[X]"),
    ("[ ]", "✔"),
    ("( )", "(x)"),
    ("○", "●"),
];
const HEADS: &[&str] = &[
    "TLP: ",
    "tlp: ",
    "TLP:\n- ",
    "**TLP:** ",
    "TLP\n\n",
    "| TLP | ",
    "<b>TLP:</b> ",
    "Traffic Light Protocol (TLP): ",
];
/// What only a form follows.
const QUESTIONS: &[&str] = &[
    "TLP (tick one):\n",
    "TLP level of this report:\n* ",
    "Which TLP applies?\n\n",
];
const BETWEEN: &[&str] = &[
    " ",
    "\n",
    "\n- ",
    "\n\n* ",
    " | ",
    ", ",
    "; ",
    " / ",
    "\t",
    "<br>",
    "</li><li>",
];
const GLOSSES: &[&str] = &["", " (for some)", ": for some", " – for some of them"];
const NAMES: [[&str; 5]; 3] = [
    ["CLEAR", "GREEN", "AMBER", "AMBER+STRICT", "RED"],
    ["clear", "green", "amber", "amber+strict", "red"],
    ["Weiß", "Grün", "Gelb", "Gelb+Strict", "Rot"],
];

prop_compose! {
    /// Levels in any order, with the place of one of them.
    fn levels()(
        order in Just(Tlp::ALL.to_vec()).prop_shuffle(),
        count in 2..=5_usize,
        place in any::<prop::sample::Index>(),
    ) -> (Vec<Tlp>, usize) {
        (order.into_iter().take(count).collect(), place.index(count))
    }
}

fn name(level: Tlp, names: &[&'static str; 5]) -> &'static str {
    names[usize::from(level.rank())]
}

proptest! {
    #[test]
    fn of_any_form_the_ticked_level_is_the_marking(
        (levels, place) in levels(),
        (empty, tick) in prop::sample::select(BOXES),
        head in prop::sample::select([HEADS, QUESTIONS].concat()),
        between in prop::sample::select(BETWEEN),
        gloss in prop::sample::select(GLOSSES),
        names in prop::sample::select(&NAMES[..]),
        leads in any::<bool>(),
    ) {
        let form = |ticked: Option<usize>| {
            let line = |(at, level): (usize, &Tlp)| {
                let mark = if ticked == Some(at) { tick } else { empty };
                let name = name(*level, &names);
                if leads { format!("{mark} {name}{gloss}") } else { format!("{name}{gloss} {mark}") }
            };
            let lines: Vec<String> = levels.iter().enumerate().map(line).collect();
            format!("Report 12\n\n{head}{}\n\nIt was seen in May.", lines.join(between))
        };
        let ticked = form(Some(place));
        prop_assert_eq!(tlp_hint(&ticked), Some(levels[place]), "{}", ticked);
        let unticked = form(None);
        prop_assert_eq!(tlp_hint(&unticked), None, "{}", unticked);
    }

    #[test]
    fn lists_never_lower_a_text(
        (levels, _) in levels(),
        head in prop::sample::select(HEADS),
        between in prop::sample::select(BETWEEN),
        gloss in prop::sample::select(GLOSSES),
        names in prop::sample::select(&NAMES[..]),
    ) {
        let lines: Vec<String> = levels.iter().map(|level| format!("{}{gloss}", name(*level, &names))).collect();
        let text = format!("Report 12\n\n{head}{}\n\nIt was seen in May.", lines.join(between));
        let found = tlp_hint(&text);
        prop_assert!(found.is_none_or(|level| level >= Tlp::Amber), "{found:?} {text}");
        let is_divided = between != " " || !gloss.ends_with(char::is_alphabetic);
        if levels.len() == 2 && is_divided && !head.ends_with("\n\n") {
            let strictest = levels.iter().copied().max().filter(|level| *level >= Tlp::Amber);
            prop_assert_eq!(found, strictest, "{}", text);
        }
    }

    #[test]
    fn nothing_that_follows_a_line_of_its_own_hides_a_marking(
        level in prop::sample::select(&Tlp::ALL[1..]),
        head in prop::sample::select(&["TLP:", "TLP: ", "**TLP:** ", "TLP ", "| TLP | ", "<b>TLP:</b> "][..]),
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40),
    ) {
        // Without CLEAR they are no explanation of all levels.
        let behind = pieces.concat().replace("TLP:CLEAR", "TLP:GREEN");
        let text = format!("{head}{}\n\nReport 12\n\n{behind}", name(level, &NAMES[0]));
        prop_assert!(tlp_hint(&text) >= Some(level), "{:?} {text:?}", tlp_hint(&text));
    }

    #[test]
    fn pieces_in_any_order_are_read_in_no_time(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 1..12),
    ) {
        let unit = pieces.concat();
        let text = unit.repeat(test_support::extent(1 << 10, 1 << 15) / unit.len());
        let start = std::time::Instant::now();
        tlp_hint(&text);
        prop_assert!(start.elapsed().as_secs() < 10, "{unit:?} {:?}", start.elapsed());
    }
}

#[test]
fn a_long_text_of_pieces_is_read_in_no_time() {
    let mut random = StdRng::seed_from_u64(7);
    let length = test_support::extent(1 << 14, 1 << 20);
    let mut text = String::with_capacity(length);
    while text.len() < length {
        // Some of them often in a row.
        let count = if random.random_range(0..50) == 0 { 1000 } else { 1 };
        text.push_str(&PIECES[random.random_range(0..PIECES.len())].repeat(count));
    }
    let start = std::time::Instant::now();
    tlp_hint(&text);
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}
