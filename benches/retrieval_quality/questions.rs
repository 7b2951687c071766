//! Reads the files of questions, and fills in what they name.
//!
//! A section begins with `[title] path`; see `path.rs`. Each other line is one way to put the question. `{T}` is the
//! name of what it names, `{T:lower}` the name in lower case, `{T:id}` the ATT&CK id, `{T:alias}` another name. Lines
//! with `#` are comments. A question is asked about several objects that have a right answer; the next way to put it
//! takes the next ones, so that all have their turn and every run asks the same.

use crate::Fallible;
use crate::graph::{Graph, Object};
use crate::path::{Path, kinds};

/// Objects that one way to put a question is asked about, at most.
const OBJECTS: usize = 6;

/// One question, with the STIX ids of its right answers.
pub struct Question {
    pub title: String,
    pub text: String,
    pub answers: Vec<String>,
    /// True if nobody who works on the understanding of questions has read it.
    pub unseen: bool,
}

struct Section {
    title: String,
    path: Path,
    ways: Vec<String>,
}

/// The questions of a part: of its file, and of the one that is not looked at.
pub fn of(part: &str, graph: &Graph) -> Fallible<Vec<Question>> {
    let (seen, unseen) = match part {
        "relational" => (
            include_str!("questions/relational.txt"),
            include_str!("questions/unseen/relational.txt"),
        ),
        "two-step" => (
            include_str!("questions/two_step.txt"),
            include_str!("questions/unseen/two_step.txt"),
        ),
        "time" => (
            include_str!("questions/time.txt"),
            include_str!("questions/unseen/time.txt"),
        ),
        "context" => (
            include_str!("questions/context.txt"),
            include_str!("questions/unseen/context.txt"),
        ),
        "ordinary" => (
            include_str!("questions/ordinary.txt"),
            include_str!("questions/unseen/ordinary.txt"),
        ),
        other => return Err(format!("{other} has no questions").into()),
    };
    let read = if part == "ordinary" { ordinary } else { relational };
    let mut questions = read(seen, graph, false)?;
    questions.extend(read(unseen, graph, true)?);
    Ok(questions)
}

/// Reads lines of an ATT&CK id and the text that should find it.
fn ordinary(text: &str, graph: &Graph, unseen: bool) -> Fallible<Vec<Question>> {
    let question = |line: &str| -> Fallible<Question> {
        let (id, text) = line.split_once(' ').ok_or("a line is without a question")?;
        let mut objects = graph.objects.iter();
        let found = objects.find(|(_, object)| object.id == id);
        let (answer, _) = found.ok_or_else(|| format!("nothing valid has the id {id}"))?;
        Ok(Question {
            title: "ordinary".to_owned(),
            text: text.to_owned(),
            answers: vec![answer.clone()],
            unseen,
        })
    };
    lines(text).map(question).collect()
}

fn relational(text: &str, graph: &Graph, unseen: bool) -> Fallible<Vec<Question>> {
    let mut questions = Vec::new();
    for section in sections(text)? {
        let Some(letter) = section.path.letter() else {
            let answers = section.path.answers(graph, None);
            let answers: Vec<String> = answers.into_iter().map(str::to_owned).collect();
            if answers.is_empty() {
                return Err(format!("{} has no right answer", section.title).into());
            }
            questions.extend(section.ways.iter().map(|text| Question {
                title: section.title.clone(),
                text: text.clone(),
                answers: answers.clone(),
                unseen,
            }));
            continue;
        };
        for (nth, way) in section.ways.iter().enumerate() {
            let asked = about_several(&section, letter, way, nth, graph);
            if asked.is_empty() {
                return Err(format!("{}: there is nothing to ask about", section.title).into());
            }
            questions.extend(asked.into_iter().map(|(text, answers)| Question {
                title: section.title.clone(),
                text,
                answers,
                unseen,
            }));
        }
    }
    Ok(questions)
}

/// The texts for the `nth` way to put a question, with their right answers.
fn about_several(
    section: &Section,
    letter: char,
    way: &str,
    nth: usize,
    graph: &Graph,
) -> Vec<(String, Vec<String>)> {
    let kinds = kinds(letter).unwrap_or_default();
    let candidates: Vec<(String, Vec<String>)> = graph
        .objects
        .iter()
        .filter(|(_, object)| kinds.contains(&object.kind.as_str()))
        .filter_map(|(id, object)| {
            let answers = section.path.answers(graph, Some(id));
            let text = filled(way, letter, object, nth)?;
            (!answers.is_empty()).then(|| (text, answers.into_iter().map(str::to_owned).collect()))
        })
        .collect();
    let turn = (nth * OBJECTS) % candidates.len().max(1);
    candidates
        .iter()
        .cycle()
        .skip(turn)
        .take(OBJECTS.min(candidates.len()))
        .cloned()
        .collect()
}

/// The text with the names of the object; `None` if it needs an alias and there is none.
fn filled(way: &str, letter: char, object: &Object, nth: usize) -> Option<String> {
    let slot = |form: &str| format!("{{{letter}{form}}}");
    let mut text = way
        .replace(&slot(""), &object.name)
        .replace(&slot(":lower"), &object.name.to_lowercase())
        .replace(&slot(":id"), &object.id);
    let slot = slot(":alias");
    if text.contains(&slot) {
        // "BlackEnergy (Group)" is a note of the catalogue rather than a name.
        let names: Vec<&String> = object
            .aliases
            .iter()
            .filter(|alias| !alias.contains('('))
            .collect();
        let alias = names.get(nth % names.len().max(1))?;
        text = text.replace(&slot, alias);
    }
    Some(text)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn sections(text: &str) -> Fallible<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    for line in lines(text) {
        if let Some((title, path)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            sections.push(Section {
                title: title.to_owned(),
                path: Path::parse(path)?,
                ways: Vec::new(),
            });
        } else {
            let section = sections
                .last_mut()
                .ok_or("a question is before the first title")?;
            section.ways.push(line.to_owned());
        }
    }
    Ok(sections)
}
