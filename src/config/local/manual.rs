//! What `config/local.toml` says about each setting, and that file with the values of a running service.
//!
//! The file is our own, so a line is all there is to read: a comment, `[a.section]`, or `key = value`.

use std::mem;
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{LOCAL_DEFAULTS, environment, tree};

/// Stands in for the head of the file, which is about the defaults.
const HEAD: &str = "\
# Settings of `threat-memory local`: those in effect, and those that wait for the restart. A start with --config and this
# file keeps them. The environment overrides it: LOCAL_WEB_PORT sets web.port, LOCAL_LLM_MODEL sets llm.model, and so on
# for every key. Changes that wait are also in pending.json in the data directory, which overrides this file too. Secrets
# are left out and belong in the environment.
";

/// The sections and settings, in the order of the file.
pub(super) static MANUAL: LazyLock<Manual> = LazyLock::new(|| Manual::read(LOCAL_DEFAULTS));

#[derive(Debug, PartialEq)]
pub(super) struct Manual {
    pub(super) sections: Vec<SectionMeta>,
    pub(super) settings: Vec<SettingDoc>,
}

/// A section of the settings.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = SettingsSection)]
pub struct SectionMeta {
    /// Dotted path; empty for the settings outside all sections.
    #[schema(example = "governance.pii")]
    name: String,
    /// What all its settings have in common; empty if there is nothing to say.
    description: String,
}

/// What the file says about a setting.
#[derive(Debug, PartialEq)]
pub(super) struct SettingDoc {
    pub(super) path: String,
    pub(super) section: String,
    pub(super) description: String,
}

#[derive(Clone, Copy)]
enum Line<'t> {
    Blank,
    Comment(&'t str),
    Section(&'t str),
    Key(&'t str),
}

impl<'t> Line<'t> {
    fn of(line: &'t str) -> Self {
        if let Some(text) = line.strip_prefix('#') {
            return Self::Comment(text);
        }
        let section = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        match (section, line.split_once(" = ")) {
            (Some(name), _) => Self::Section(name),
            (None, Some((name, _))) => Self::Key(name),
            (None, None) => Self::Blank,
        }
    }
}

impl Manual {
    /// A comment is about the keys below it up to the next comment or blank line, or about the section below it. One
    /// that stands alone is about all sections of a group, such as `actors`.
    fn read(text: &str) -> Self {
        let mut manual = Self {
            sections: vec![SectionMeta::new("", "")],
            settings: Vec::new(),
        };
        let (mut comment, mut group, mut in_comment) = (String::new(), String::new(), false);
        let mut section = "";
        for line in text.lines().map(Line::of) {
            match line {
                Line::Comment(_) if !in_comment => comment.clear(),
                Line::Blank if in_comment => group = mem::take(&mut comment),
                Line::Section(_) if in_comment => {}
                Line::Blank | Line::Section(_) => comment.clear(),
                Line::Comment(_) | Line::Key(_) => {}
            }
            match line {
                Line::Comment(text) => comment.push_str(text),
                Line::Section(name) => {
                    manual.open(name, &mem::take(&mut comment), &group);
                    section = name;
                }
                Line::Key(name) => manual.settings.push(SettingDoc {
                    path: tree::join(section, name),
                    section: section.to_owned(),
                    description: plain(&comment),
                }),
                Line::Blank => {}
            }
            in_comment = matches!(line, Line::Comment(_));
        }
        manual
    }

    /// Adds a section, after the group that it is the first of.
    fn open(&mut self, name: &str, comment: &str, group: &str) {
        if let Some((parent, _)) = name.rsplit_once('.')
            && self.sections.iter().all(|section| section.name != parent)
        {
            self.sections.push(SectionMeta::new(parent, group));
        }
        self.sections.push(SectionMeta::new(name, comment));
    }
}

impl SectionMeta {
    fn new(name: &str, comment: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: plain(comment),
        }
    }
}

/// A comment as running text, without the marks that stand for a restart.
fn plain(comment: &str) -> String {
    let unmarked = comment.replace("(restart: all)", "").replace("(restart)", "");
    unmarked.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The file with the values of a tree. Secrets are left out.
pub(super) fn render_file(tree: &Value, defaults: &Value) -> String {
    let shown = tree::redact_secrets(tree);
    let mut section = "";
    let body = LOCAL_DEFAULTS.lines().skip_while(|line| !line.is_empty());
    let lines = body.map(|line| match Line::of(line) {
        Line::Section(name) => {
            section = name;
            line.to_owned()
        }
        Line::Key(name) => {
            let path = tree::join(section, name);
            let (value, public) = (tree::get(tree, &path), tree::get(&shown, &path));
            match value {
                Some(_) if value != public => secret_line(name, &path),
                Some(value) if Some(value) != tree::get(defaults, &path) => {
                    format!("{name} = {}", literal(value))
                }
                Some(_) | None => line.to_owned(),
            }
        }
        Line::Blank | Line::Comment(_) => line.to_owned(),
    });
    let lines = lines.map(|line| line + "\n");
    std::iter::once(HEAD.to_owned()).chain(lines).collect()
}

fn secret_line(name: &str, path: &str) -> String {
    let variable = environment::name_of(path);
    format!("# {name} is set, and not shown here. {variable} can set it.")
}

/// A value in TOML. JSON's notation is valid TOML, apart from a raw delete character.
fn literal(value: &Value) -> String {
    value.to_string().replace('\u{7f}', "\\u007F")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::trees;
    use super::*;

    fn section(name: &str) -> &'static SectionMeta {
        let mut sections = MANUAL.sections.iter();
        sections.find(|section| section.name == name).unwrap()
    }

    fn setting(path: &str) -> &'static SettingDoc {
        let mut settings = MANUAL.settings.iter();
        settings.find(|setting| setting.path == path).unwrap()
    }

    #[test]
    fn every_setting_is_explained_where_it_stands_or_by_its_section() {
        let mut paths: Vec<_> = MANUAL
            .settings
            .iter()
            .map(|setting| setting.path.clone())
            .collect();
        assert_eq!(paths[..3], ["backend", "web.host", "web.port"]);
        paths.sort_unstable();
        assert_eq!(paths, tree::leaves(&trees(None).unwrap().0));
        for setting in &MANUAL.settings {
            let about = section(&setting.section).description.as_str();
            let group = setting.section.split('.').next().unwrap();
            let told = [setting.description.as_str(), about, &section(group).description];
            assert!(told.iter().any(|text| text.len() > 10), "{}", setting.path);
            assert!(!told.iter().any(|text| text.contains("(restart")), "{told:?}");
        }
    }

    #[test]
    fn a_comment_belongs_to_what_stands_below_it() {
        assert_eq!(
            setting("web.rate_limit_per_minute").description,
            "Requests per minute of each key, or of each address where no key is set."
        );
        assert!(setting("backend").description.starts_with("Where notes are kept"));
        assert!(
            section("platform")
                .description
                .contains("external threat platform")
        );
        assert!(section("actors").description.contains("write_timeout_ms"));
        assert_eq!(section("actors.graph_store").description, "");
        assert_eq!(setting("actors.graph_store.gate").description, "");
        assert_eq!(section("").description, "");
        let manual =
            Manual::read("# Of a.\na = 1\n\nb = 2\n# Of c.\n[c]\nd = 3\n# Of e (restart),\n# too.\ne = 4\n");
        let told: Vec<_> = manual
            .settings
            .iter()
            .map(|setting| (setting.path.as_str(), setting.description.as_str()))
            .collect();
        assert_eq!(
            told,
            [("a", "Of a."), ("b", ""), ("c.d", ""), ("c.e", "Of e , too.")]
        );
        assert_eq!(manual.sections[1], SectionMeta::new("c", "Of c."));
    }

    #[test]
    fn the_file_is_filled_with_what_differs_and_reads_back() {
        let defaults = trees(None).unwrap().0;
        let mut tree = defaults.clone();
        let odd = "a \"quoted\" \\ b\u{7f}\u{85}é";
        for (path, value) in [
            ("web.max_k", json!(20)),
            ("retrieval.graph_weight", json!(1.0)),
            ("governance.pii.enabled", json!(true)),
            ("web.admin_hosts", json!(["memory.internal", "2001:db8::1"])),
            ("llm.model", json!(odd)),
            ("llm.api_key", json!("hidden-key")),
            ("platform.url", json!("http://u:hidden-key@h/")),
        ] {
            tree::set(&mut tree, path, value);
        }
        let text = render_file(&tree, &defaults);
        assert!(!text.contains("hidden-key"), "{text}");
        assert!(
            text.contains("\n# api_key is set, and not shown here. LOCAL_LLM_API_KEY can set it.\n"),
            "{text}"
        );
        assert_eq!(
            text.matches("api_key = \"\"").count(),
            2,
            "those that are not set"
        );
        assert!(
            text.contains("\n# Requests per minute of each key"),
            "comments stay"
        );
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("local.toml");
        std::fs::write(&file, text).unwrap();
        let read = trees(Some(&file)).unwrap().1;
        for path in ["llm.api_key", "platform.url"] {
            tree::set(&mut tree, path, tree::get(&defaults, path).unwrap().clone());
        }
        assert_eq!(read, tree);
        let plain = render_file(&defaults, &defaults);
        let keys = |text: &str| {
            let is_key = |line: &&str| matches!(Line::of(line), Line::Key(_));
            text.lines().filter(is_key).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(keys(&plain), keys(LOCAL_DEFAULTS));
    }
}
