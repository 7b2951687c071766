//! Names and ids of YARA and Sigma detection rules.
//!
//! A YARA rule is recognised by its declaration, or by a name with an underscore (or in quotes) directly after "YARA
//! rule". A Sigma rule is recognised by its UUID or quoted title after "Sigma", by the UUID in its YAML, or by a file
//! name in the style of the public rule repository.

use std::sync::LazyLock;

use regex::Regex;

use super::super::source::Source;
use super::super::token::Token;
use crate::domain::kinds::EntityKind;

static YARA_NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)^\s*(?:rules?|signatures?)?\s*(?:named|called|name|:|-)?\s*(["'“‘`]?)([a-z_][a-z0-9_]{3,127})"#).ok()
});
static YARA_DECLARATION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^rule\s+([A-Za-z_][A-Za-z0-9_]{0,127})\s*(?::\s*[A-Za-z0-9_ ]{1,100})?\s*\{").ok()
});
static SIGMA_TITLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)^\s*(?:detection\s+)?rules?\s*(?:named|called|titled|:)?\s*["“`]([^"”`\n]{4,120})["”`]"#,
    )
    .ok()
});
static SIGMA_ID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^[^.\n]{0,60}?\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b").ok()
});
static SIGMA_YAML_ID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?m)^id:\s*([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\s*$").ok()
});

/// Prefixes of file names in the public Sigma repository.
const SIGMA_PREFIXES: &[&str] = &[
    "proc_creation_",
    "proc_access_",
    "win_security_",
    "win_system_",
    "registry_set_",
    "registry_event_",
    "registry_add_",
    "net_connection_",
    "file_event_",
    "image_load_",
    "posh_ps_",
    "posh_pm_",
    "create_remote_thread_",
    "dns_query_",
    "driver_load_",
    "pipe_created_",
    "create_stream_hash_",
    "aws_cloudtrail_",
    "azure_app_",
    "lnx_auditd_",
];

/// Reads the text after the word "YARA".
pub(in crate::domain::extraction) fn after_yara(source: &mut Source<'_>, end: usize) {
    let window = source.after(end, 180);
    let Some(found) = YARA_NAME.as_ref().and_then(|regex| regex.captures(window)) else {
        return;
    };
    let (Some(quote), Some(name)) = (found.get(1), found.get(2)) else {
        return;
    };
    let named = !quote.is_empty() || name.as_str().trim_matches('_').contains('_');
    if named {
        let span = end + name.start()..end + name.end();
        source.push(
            EntityKind::YaraRule,
            name.as_str().to_owned(),
            span,
            "yara-rule-name",
            0.9,
        );
    }
}

/// Reads the word "rule" at the start of a line, which may be a declaration.
pub(in crate::domain::extraction) fn at_rule(source: &mut Source<'_>, start: usize) {
    let before = source.before(start, 24);
    let line = before.rsplit(['\n', ':', '`']).next().unwrap_or_default();
    if !matches!(
        line.trim(),
        "" | "private" | "global" | "global private" | "private global"
    ) {
        return;
    }
    let window = source.after(start, 260);
    let Some(name) = YARA_DECLARATION
        .as_ref()
        .and_then(|regex| regex.captures(window)?.get(1))
    else {
        return;
    };
    let span = start + name.start()..start + name.end();
    source.push(
        EntityKind::YaraRule,
        name.as_str().to_owned(),
        span,
        "yara-rule-declaration",
        0.97,
    );
}

/// Reads the text after the word "Sigma".
pub(in crate::domain::extraction) fn after_sigma(source: &mut Source<'_>, end: usize) {
    let window = source.after(end, 180);
    let id = SIGMA_ID.as_ref().and_then(|regex| regex.captures(window)?.get(1));
    let title = SIGMA_TITLE
        .as_ref()
        .and_then(|regex| regex.captures(window)?.get(1));
    if let Some(title) = title {
        let span = end + title.start()..end + title.end();
        source.push(
            EntityKind::SigmaRule,
            title.as_str().to_owned(),
            span,
            "sigma-rule-title",
            0.85,
        );
    } else if let Some(id) = id {
        let span = end + id.start()..end + id.end();
        source.push(
            EntityKind::SigmaRule,
            id.as_str().to_ascii_lowercase(),
            span,
            "sigma-rule-id",
            0.9,
        );
    }
}

/// `logsource:` marks the YAML before it, back to the previous one, as a Sigma rule.
pub(in crate::domain::extraction) fn at_log_source(source: &mut Source<'_>, start: usize) {
    let window = source.before(start, (start - source.sigma_before).min(1500));
    source.sigma_before = start;
    let offset = start - window.len();
    let last = SIGMA_YAML_ID
        .as_ref()
        .and_then(|regex| regex.captures_iter(window).last()?.get(1));
    if let Some(id) = last {
        let span = offset + id.start()..offset + id.end();
        source.push(
            EntityKind::SigmaRule,
            id.as_str().to_owned(),
            span,
            "sigma-rule-yaml",
            0.97,
        );
    }
}

/// Finds a file name in the style of the public Sigma repository; returns whether the part is one.
pub(in crate::domain::extraction) fn sigma_name(source: &mut Source<'_>, part: &Token<'_>) -> bool {
    if !SIGMA_PREFIXES.iter().any(|prefix| part.text.starts_with(prefix)) {
        return false;
    }
    let name = part.text.trim_end_matches(".yml").trim_end_matches(".yaml");
    if name.contains('.') {
        return false;
    }
    source.push(
        EntityKind::SigmaRule,
        name.to_owned(),
        part.span(),
        "sigma-rule-file",
        0.85,
    );
    true
}
