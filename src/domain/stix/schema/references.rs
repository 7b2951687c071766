//! Finds every reference in an object, at any depth, with its position.

use serde_json::Value;

use super::report::pointer_segment;

/// A position in an object, as borrowed parts; formatted only if there is something to report.
#[derive(Default)]
pub(super) struct Path<'a>(Vec<Step<'a>>);

#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

impl Path<'_> {
    pub(super) fn to_pointer(&self) -> String {
        let part = |step: &Step<'_>| match step {
            Step::Name(name) => format!("/{}", pointer_segment(name)),
            Step::Index(index) => format!("/{index}"),
        };
        self.0.iter().map(part).collect()
    }

    /// The name of the property that holds the value, ignoring list indexes.
    pub(super) fn property(&self) -> &str {
        let name = |step: &Step<'_>| matches!(step, Step::Name(_));
        match self.0.iter().rev().find(|step| name(step)) {
            Some(Step::Name(name)) => name,
            Some(Step::Index(_)) | None => "",
        }
    }

    pub(super) fn starts_with(&self, first: &str) -> bool {
        matches!(self.0.first(), Some(Step::Name(name)) if *name == first)
    }
}

/// Section 3.1: the name of a property holding an identifier ends in `_ref`, of one holding a list in `_refs`.
pub(super) fn for_each_reference<'a>(object: &'a Value, visit: &mut impl FnMut(&Path<'a>, &'a str)) {
    walk(object, false, &mut Path::default(), visit);
}

fn walk<'a>(
    value: &'a Value,
    reference: bool,
    path: &mut Path<'a>,
    visit: &mut impl FnMut(&Path<'a>, &'a str),
) {
    match value {
        Value::String(target) if reference => visit(path, target),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.0.push(Step::Index(index));
                walk(item, reference, path, visit);
                path.0.pop();
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                path.0.push(Step::Name(name));
                walk(
                    member,
                    name.ends_with("_ref") || name.ends_with("_refs"),
                    path,
                    visit,
                );
                path.0.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
