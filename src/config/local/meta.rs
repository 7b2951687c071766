//! What an editor of the settings needs to know about each: its type and bounds, what it means, when it takes effect.

use std::sync::LazyLock;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::edit::{self, Editor};
use super::manual::{MANUAL, SectionMeta, SettingDoc};
use super::rules::{self, AcceptedValues, Kind};
use super::tree::{self, HIDDEN};
use super::{LocalSettings, trees};

/// Settings whose bounds depend on other settings.
const DEPENDENT: [&str; 5] = [
    "web.max_content_chars",
    "retrieval.default_k",
    "llm.overlap_chars",
    "synthesis.timeout_ms",
    "enrichment.timeout_ms",
];

/// What is known about the settings.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = SettingsMeta, example = json!({
    "restart_required_fields": ["backend", "llm.model", "storage.data_dir"],
    "sections": [{"name": "retrieval", "description": ""}],
    "fields": [{
        "path": "retrieval.default_k", "section": "retrieval", "type": "integer", "default": 10, "minimum": 1,
        "maximum": 50, "description": "Results of a request that does not say how many.", "restart": false,
    }],
}))]
pub struct ConfigMeta {
    /// Dotted paths of the settings that need a restart, sorted.
    pub restart_required_fields: Vec<String>,
    /// The sections, in the order of the default file. Those of a group, such as `actors`, follow it.
    pub sections: Vec<SectionMeta>,
    /// The settings, in the order of the default file.
    pub fields: Vec<FieldMeta>,
}

/// What is known about a setting.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Setting)]
pub struct FieldMeta {
    /// Dotted path.
    #[schema(example = "retrieval.default_k")]
    pub path: String,
    /// Dotted path of its section; empty outside all sections.
    pub section: String,
    #[serde(rename = "type")]
    pub kind: Kind,
    pub default: Value,
    /// Smallest number, as long as the other settings stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, required = false)]
    pub minimum: Option<Value>,
    /// Largest number, as long as the other settings stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, required = false)]
    pub maximum: Option<Value>,
    /// The only texts that are accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub choices: Vec<String>,
    /// What it means. Settings that are explained together have the same text; one that its section explains has none.
    pub description: String,
    /// Whether a change takes effect only after a restart.
    pub restart: bool,
    /// The environment variable or flag that sets it at each start, whatever is changed here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "LOCAL_WEB_PORT")]
    pub set_by: Option<String>,
    /// The value that waits for the restart; `***` for a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    pub pending: Option<Value>,
    /// Whether a secret is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub is_set: Option<bool>,
}

/// What each setting accepts by default, in the order of [`MANUAL`].
static ACCEPTED: LazyLock<Vec<AcceptedValues>> = LazyLock::new(|| {
    let defaults = trees(None).map(|(defaults, _)| defaults).unwrap_or_default();
    let all = MANUAL.settings.iter();
    all.map(|setting| bounds(&defaults, &setting.path)).collect()
});

impl Editor {
    /// What is known about the settings at this moment.
    pub fn meta(&self) -> ConfigMeta {
        let later = self.later();
        let all = MANUAL.settings.iter().zip(ACCEPTED.iter());
        ConfigMeta {
            restart_required_fields: self.restart_required(),
            sections: MANUAL.sections.clone(),
            fields: all
                .map(|(told, by_default)| self.field(told, by_default, &later))
                .collect(),
        }
    }

    fn field(&self, told: &SettingDoc, by_default: &AcceptedValues, later: &Value) -> FieldMeta {
        let path = told.path.as_str();
        let restart = edit::needs_restart(path);
        let accepted = if DEPENDENT.contains(&path) {
            // A setting is read together with those that take effect at the same time.
            bounds(if restart { later } else { &self.running }, path)
        } else {
            by_default.clone()
        };
        let (minimum, maximum) = accepted.range.unzip();
        let is_secret = accepted.kind == Kind::Secret;
        let shown = |value: &Value| {
            if is_secret {
                json!(HIDDEN)
            } else {
                tree::redact_secrets(value)
            }
        };
        let is_set = || tree::get(&self.running, path).is_some_and(|value| value != "");
        FieldMeta {
            path: path.to_owned(),
            section: told.section.clone(),
            kind: accepted.kind,
            default: tree::get(&self.defaults, path).cloned().unwrap_or_default(),
            minimum,
            maximum,
            choices: accepted.choices,
            description: told.description.clone(),
            restart,
            set_by: self.above.get(path).cloned(),
            pending: self.pending.get(path).map(shown),
            is_set: is_secret.then(is_set),
        }
    }
}

/// What a setting accepts once it is used.
fn bounds(tree: &Value, path: &str) -> AcceptedValues {
    let used = with_providers(tree);
    let base = if LocalSettings::of_tree(&used).is_ok() {
        &used
    } else {
        tree
    };
    rules::accepted_values(base, path)
}

/// The settings with both providers in use: their rules hold only then.
fn with_providers(tree: &Value) -> Value {
    let mut used = tree.clone();
    for section in ["embedding", "llm"] {
        tree::set(&mut used, &format!("{section}.provider"), json!("openai"));
        tree::set(&mut used, &format!("{section}.model"), json!("any"));
    }
    used
}

#[cfg(test)]
mod tests {
    use super::super::LocalFlags;
    use super::*;

    fn editor() -> Editor {
        let flags = LocalFlags {
            backend: Some("mem".into()),
            port: Some(9000),
            ..LocalFlags::default()
        };
        LocalSettings::load(None, &flags).unwrap().1
    }

    fn change(editor: &mut Editor, change: &Value) {
        *editor = editor.plan(change).unwrap().0;
    }

    fn field(editor: &Editor, path: &str) -> FieldMeta {
        let found = editor.meta().fields.into_iter().find(|field| field.path == path);
        found.unwrap_or_else(|| panic!("{path}"))
    }

    #[test]
    fn every_setting_has_its_type_bounds_and_choices() {
        let editor = editor();
        for (path, kind, range) in [
            ("web.port", Kind::Integer, Some((json!(0), json!(65_535)))),
            ("llm.retries", Kind::Integer, Some((json!(0), json!(10)))),
            (
                "embedding.dimension",
                Kind::Integer,
                Some((json!(1), json!(8192))),
            ),
            (
                "retrieval.graph_weight",
                Kind::Number,
                Some((json!(0.0), json!(10.0))),
            ),
            (
                "actors.enricher.gate",
                Kind::Integer,
                Some((json!(1), json!(10_000))),
            ),
            ("web.host", Kind::Text, None),
            ("web.api_key", Kind::Secret, None),
            ("web.admin_hosts", Kind::List, None),
            ("governance.enabled", Kind::Boolean, None),
        ] {
            let field = field(&editor, path);
            assert_eq!(
                (field.kind, field.minimum.zip(field.maximum)),
                (kind, range),
                "{path}"
            );
            assert_eq!(Some(&field.default), tree::get(&editor.defaults, path));
            assert_eq!(
                field.restart,
                editor.restart_required().contains(&field.path),
                "{path}"
            );
        }
        assert_eq!(
            field(&editor, "governance.pii.action").choices,
            ["log", "redact", "block"]
        );
        assert!(field(&editor, "llm.model").choices.is_empty());
        let numbers = editor.meta().fields;
        let mut numbers = numbers
            .iter()
            .filter(|field| matches!(field.kind, Kind::Integer | Kind::Number));
        assert!(numbers.all(|field| field.minimum.is_some() && field.maximum.is_some()));
        assert_eq!(editor.meta().fields.len(), tree::leaves(&editor.defaults).len());
    }

    #[test]
    fn only_the_listed_bounds_depend_on_other_settings() {
        let defaults = editor().defaults;
        let mut other = with_providers(&defaults);
        // A second round lowers what the first could not lower before its neighbours.
        for path in [tree::leaves(&defaults), tree::leaves(&defaults)].concat() {
            let Some(number) = tree::get(&other, &path).and_then(Value::as_u64) else {
                continue;
            };
            for less in [number / 10, number * 9 / 10] {
                let mut next = other.clone();
                tree::set(&mut next, &path, json!(less));
                if LocalSettings::of_tree(&next).is_ok() {
                    other = next;
                    break;
                }
            }
        }
        let moved: Vec<_> = MANUAL
            .settings
            .iter()
            .zip(ACCEPTED.iter())
            .filter(|(setting, accepted)| bounds(&other, &setting.path) != **accepted)
            .map(|(setting, _)| setting.path.as_str())
            .collect();
        assert_eq!(
            moved,
            [
                "web.max_content_chars",
                "retrieval.default_k",
                "llm.overlap_chars",
                "synthesis.timeout_ms",
                "enrichment.timeout_ms"
            ]
        );
        assert_eq!(moved, DEPENDENT);
    }

    #[test]
    fn bounds_follow_the_settings_that_take_effect_with_them() {
        let mut editor = editor();
        assert_eq!(field(&editor, "retrieval.default_k").maximum, Some(json!(50)));
        change(
            &mut editor,
            &json!({"web.max_k": 20, "actors.extractor.timeout_ms": 200_000}),
        );
        assert_eq!(field(&editor, "retrieval.default_k").maximum, Some(json!(20)));
        assert_eq!(
            field(&editor, "synthesis.timeout_ms").maximum,
            Some(json!(120_000))
        );
        assert_eq!(
            field(&editor, "enrichment.timeout_ms").maximum,
            Some(json!(150_000))
        );
    }

    #[test]
    fn what_waits_and_what_overrides_is_told_and_no_secret_is() {
        let mut editor = editor();
        let port = field(&editor, "web.port");
        assert_eq!(
            (port.set_by.as_deref(), port.default),
            (Some("--port"), json!(8088))
        );
        let text = json!({"llm.api_key": "hidden-key", "platform.token": "hidden-key", "llm.model": "m"});
        change(&mut editor, &text);
        let key = field(&editor, "llm.api_key");
        assert_eq!(
            (key.pending, key.is_set),
            (Some(json!("***")), Some(false)),
            "waits"
        );
        let token = field(&editor, "platform.token");
        assert_eq!((token.pending, token.is_set), (None, Some(true)), "in effect");
        let model = field(&editor, "llm.model");
        assert_eq!(
            (model.pending, model.is_set, model.set_by),
            (Some(json!("m")), None, None)
        );
        assert!(!json!(editor.meta()).to_string().contains("hidden-key"));
        change(&mut editor, &json!({"llm.model": ""}));
        assert_eq!(field(&editor, "llm.model").pending, None);
    }
}
