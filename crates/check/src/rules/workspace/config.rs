//! Rules on `.cargo/config.toml`.

use std::ops::Range;

use gpustub_core::code;
use gpustub_core::diag::Diagnostic;
use gpustub_core::manifest::RuleLevel;
use toml::de::{DeTable, DeValue};

use crate::rule::{Check, Findings, Rule};
use crate::workspace::WorkspaceFacts;

pub static STATIC_TARGET: Rule = Rule {
    code: code!("static-target", "stubs in a statically linked target"),
    level: RuleLevel::Deny,
    check: Check::Workspace(static_target),
};

pub static FORCED_LIBRARY_PATH: Rule = Rule {
    code: code!(
        "forced-library-path",
        "forced `GPUSTUB_<LIBRARY>_PATH` in cargo's configuration"
    ),
    level: RuleLevel::Deny,
    check: Check::Workspace(forced_library_path),
};

/// The value of a key in a table, with the span of the key.
fn get<'t>(table: &'t DeTable<'t>, key: &str) -> Option<(Range<usize>, &'t DeValue<'t>)> {
    let (name, value) = table.iter().find(|(name, _)| name.get_ref() == key)?;
    Some((name.span(), value.get_ref()))
}

fn table<'t>(table: &'t DeTable<'t>, key: &str) -> Option<&'t DeTable<'t>> {
    get(table, key)?.1.as_table()
}

/// Words of a list or of a string: cargo accepts flags as either.
fn words(value: &DeValue<'_>) -> Vec<String> {
    let strings: Vec<&str> = match value {
        DeValue::String(text) => vec![text],
        DeValue::Array(list) => list
            .iter()
            .filter_map(|element| element.get_ref().as_str())
            .collect(),
        _ => Vec::new(),
    };
    strings
        .iter()
        .flat_map(|text| text.split_whitespace())
        .map(str::to_owned)
        .collect()
}

/// Whether flags enable or disable the static C library. rustc enables it if any switch does (`Session::crt_static`).
fn crt_static(flags: &DeValue<'_>) -> Option<bool> {
    let mut crt_static = None;
    for word in words(flags) {
        let option = word
            .strip_prefix("--codegen=")
            .or(word.strip_prefix("-C"))
            .unwrap_or(&word);
        let features = option.strip_prefix("target-feature=").unwrap_or_default();
        for feature in features.split(',') {
            match feature {
                "+crt-static" => crt_static = Some(true),
                "-crt-static" => crt_static = crt_static.or(Some(false)),
                _ => {}
            }
        }
    }
    crt_static
}

fn static_target(workspace: &WorkspaceFacts<'_>, findings: &mut Findings) {
    if workspace.stubs().next().is_none() {
        return;
    }
    for config in &workspace.configs {
        let Ok(parsed) = DeTable::parse(&config.text) else {
            continue; // Cargo reports the error.
        };
        for (span, message) in static_targets(parsed.get_ref()) {
            findings.push(
                Diagnostic::error(&STATIC_TARGET.code, message)
                    .with_origin(&config.display_path, span)
                    .help("link the C library dynamically: `-C target-feature=-crt-static`"),
            );
        }
    }
}

/// Locations in a configuration that select a static C library, with messages.
fn static_targets(config: &DeTable<'_>) -> Vec<(Range<usize>, String)> {
    let mut locations = Vec::new();
    let build = table(config, "build");
    let build_flags = build.and_then(|build| get(build, "rustflags"));
    let targets = table(config, "target");
    // Flags of a target are read instead of those of `build`.
    if let Some((span, build_targets)) = build.and_then(|build| get(build, "target")) {
        for name in words(build_targets) {
            let flags = targets
                .and_then(|targets| get(table(targets, &name)?, "rustflags"))
                .or_else(|| build_flags.clone());
            let crt_static = flags.and_then(|(_, flags)| crt_static(flags));
            if name.ends_with("-unknown-linux-musl") && crt_static != Some(false) {
                let message = format!("programs for {name} cannot load a library");
                locations.push((span.clone(), message));
            }
        }
    }
    let target_flags = targets
        .into_iter()
        .flat_map(|targets| targets.iter())
        .filter_map(|(_, target)| get(target.get_ref().as_table()?, "rustflags"));
    for (span, flags) in build_flags.into_iter().chain(target_flags) {
        if crt_static(flags) == Some(true) {
            let message = "`+crt-static` makes programs that cannot load a library";
            locations.push((span, message.into()));
        }
    }
    locations
}

fn forced_library_path(workspace: &WorkspaceFacts<'_>, findings: &mut Findings) {
    for config in &workspace.configs {
        let Ok(parsed) = DeTable::parse(&config.text) else {
            continue; // Cargo reports the error.
        };
        let Some(env) = table(parsed.get_ref(), "env") else {
            continue;
        };
        for (name, value) in env.iter() {
            let variable = name.get_ref();
            if !variable.starts_with("GPUSTUB_") || !variable.ends_with("_PATH") {
                continue;
            }
            let force = value
                .get_ref()
                .as_table()
                .and_then(|value| get(value, "force"))
                .and_then(|(_, force)| force.as_bool());
            if force == Some(true) {
                let message = format!("`force = true` overrides the user's `{variable}`");
                findings.push(
                    Diagnostic::error(&FORCED_LIBRARY_PATH.code, message)
                        .with_origin(&config.display_path, name.span())
                        .help("remove `force`"),
                );
            }
        }
    }
}
