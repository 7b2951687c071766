//! Fields that are lists.

use serde_json::{Value, json};

use super::{Fields, Source, issue, no_object, plural, with};
use crate::http::local::error::Issue;
use crate::http::local::input::{Input, Object};

impl Fields<'_> {
    /// A required list of objects; `read` takes the fields of each. The issues of an entry are its own: they don't fail
    /// the request.
    pub(in crate::http::local) fn list<T>(
        &mut self,
        name: &str,
        min: usize,
        max: usize,
        mut read: impl FnMut(&mut Fields<'_>) -> T,
    ) -> Vec<Result<T, Vec<Issue>>> {
        self.note(name, || {
            let item = Fields::describe(&mut read);
            json!({"type": "array", "minItems": min, "maxItems": max, "items": item})
        });
        let Some(value) = self.required(name) else {
            return Vec::new();
        };
        let Some((items, count)) = value.entries(max) else {
            self.broken(name, "list_type", "Input should be a valid list", value, None);
            return Vec::new();
        };
        if count < min {
            let msg = format!(
                "List should have at least {min} item{} after validation, not {count}",
                plural(min)
            );
            let ctx = json!({"field_type": "List", "min_length": min, "actual_length": count});
            self.broken(name, "too_short", msg, value, Some(ctx));
        } else if count > max {
            let msg = format!(
                "List should have at most {max} item{} after validation, not {count}",
                plural(max)
            );
            let ctx = json!({"field_type": "List", "max_length": max, "actual_length": count});
            self.broken(name, "too_long", msg, value, Some(ctx));
            return Vec::new();
        }
        let mut found = Vec::with_capacity(count);
        for (place, item) in items.into_iter().enumerate() {
            let mut loc = self.place(name);
            loc.push(json!(place));
            let Some(object) = Object::of(item) else {
                found.push(Err(vec![no_object(loc, Input::Json(item))]));
                continue;
            };
            let mut fields = Fields::at(Source::Body(object), loc);
            let value = read(&mut fields);
            found.push(if fields.issues.is_empty() {
                Ok(value)
            } else {
                Err(fields.issues)
            });
        }
        found
    }

    /// An optional list of texts; missing and null both mean none.
    pub(in crate::http::local) fn optional_texts(&mut self, name: &str, max: usize) -> Option<Vec<String>> {
        self.note(name, || {
            let list = json!({"type": ["array", "null"], "maxItems": max, "items": {"type": "string"}});
            with(list, "minItems", json!(0))
        });
        let value = self.get(name).filter(|value| !value.scalar().is_null())?;
        let Some((items, count)) = value.entries(max) else {
            self.broken(name, "list_type", "Input should be a valid list", value, None);
            return None;
        };
        if count > max {
            let msg = format!("List should have at most {max} items after validation, not {count}");
            let ctx = json!({"field_type": "List", "max_length": max, "actual_length": count});
            self.broken(name, "too_long", msg, value, Some(ctx));
            return None;
        }
        let mut texts = Vec::with_capacity(count);
        for (place, item) in items.into_iter().enumerate() {
            match Input::Json(item).scalar() {
                Value::String(text) => texts.push(text),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    let mut loc = self.place(name);
                    loc.push(json!(place));
                    let given = Input::Json(item).abridge();
                    let text = "Input should be a valid string";
                    self.issues.push(issue("string_type", loc, text, given, None));
                }
            }
        }
        Some(texts)
    }

    /// Whether an issue was recorded.
    pub(in crate::http::local) fn has_issues(&self) -> bool {
        !self.issues.is_empty()
    }

    /// Records that the body as a whole breaks a rule.
    pub(in crate::http::local) fn refuse_body(&mut self, kind: &'static str, rule: &str) {
        let given = match &self.source {
            Source::Body(object) => object.whole().abridge(),
            Source::Query(_) | Source::Nowhere(_) => return,
        };
        let loc = self.loc.clone();
        self.issues.push(issue(kind, loc, rule, given, None));
    }
}
