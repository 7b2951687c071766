//! Shares in request fields: numbers from 0 to 1.

use serde_json::{Value, json};

use super::validate::Fields;

impl Fields<'_> {
    /// An optional number from 0 to 1, which may stand in quotes; missing and null both mean none.
    pub(super) fn share(&mut self, name: &str) -> Option<f32> {
        let schema = || json!({"type": ["number", "null"], "minimum": 0, "maximum": 1});
        let number = match self.optional(name, schema)? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse::<f64>().ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        match number {
            Some(share) if (0.0..=1.0).contains(&share) => return Some(share as f32),
            Some(share) if share > 1.0 => {
                self.refuse(name, "less_than_equal", "Input should be less than or equal to 1");
            }
            Some(share) if share < 0.0 => {
                self.refuse(
                    name,
                    "greater_than_equal",
                    "Input should be greater than or equal to 0",
                );
            }
            Some(_) | None => self.refuse(name, "float_parsing", "Input should be a number from 0 to 1"),
        }
        None
    }
}
