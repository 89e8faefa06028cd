//! Rules on `.cargo/config.toml`.

use gpustub_core::code;
use gpustub_core::diag::Diagnostic;
use gpustub_core::manifest::RuleLevel;
use toml::de::{DeTable, DeValue};

use crate::rule::{Check, Findings, Rule};
use crate::workspace::Workspace;

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
fn get<'t>(table: &'t DeTable<'t>, key: &str) -> Option<(std::ops::Range<usize>, &'t DeValue<'t>)> {
    let (found, value) = table.iter().find(|(name, _)| name.get_ref() == key)?;
    Some((found.span(), value.get_ref()))
}

fn table<'t>(table: &'t DeTable<'t>, key: &str) -> Option<&'t DeTable<'t>> {
    get(table, key)?.1.as_table()
}

/// Words of a list or of a string: cargo accepts flags as either.
fn words(value: &DeValue<'_>) -> Vec<String> {
    let strings: Vec<&str> = match value {
        DeValue::String(text) => vec![text],
        DeValue::Array(list) => list.iter().filter_map(|v| v.get_ref().as_str()).collect(),
        _ => Vec::new(),
    };
    let words = strings.iter().flat_map(|text| text.split_whitespace());
    words.map(str::to_owned).collect()
}

/// Whether flags enable or disable the static C library; the last switch takes precedence.
fn crt_static(flags: &DeValue<'_>) -> Option<bool> {
    let words = words(flags);
    let features = words.iter().filter_map(|word| {
        let word = word.strip_prefix("-C").unwrap_or(word);
        word.strip_prefix("target-feature=")
    });
    let switches = features.flat_map(|list| list.split(','));
    switches
        .filter_map(|feature| match feature {
            "+crt-static" => Some(true),
            "-crt-static" => Some(false),
            _ => None,
        })
        .next_back()
}

fn static_target(workspace: &Workspace<'_>, findings: &mut Findings) {
    if workspace.stubs().next().is_none() {
        return;
    }
    for config in &workspace.configs {
        let Ok(parsed) = DeTable::parse(&config.text) else {
            continue; // Cargo reports the error.
        };
        let top = parsed.get_ref();
        let mut report = |span, message: String| {
            findings.push(
                Diagnostic::error(&STATIC_TARGET.code, message)
                    .with_origin(&config.shown, span)
                    .help("link the C library dynamically: `-C target-feature=-crt-static`"),
            );
        };
        let build = table(top, "build");
        let of_build = build.and_then(|build| get(build, "rustflags"));
        let of_target = |name: &str| get(table(table(top, "target")?, name)?, "rustflags");
        // Flags of a target are read instead of those of `build`.
        if let Some((span, targets)) = build.and_then(|build| get(build, "target")) {
            for name in words(targets) {
                let flags = of_target(&name).or_else(|| of_build.clone());
                let crt_static = flags.and_then(|(_, flags)| crt_static(flags));
                let is_static = name.ends_with("-unknown-linux-musl") && crt_static != Some(false);
                if is_static {
                    let message = format!("programs for {name} cannot load a library");
                    report(span.clone(), message);
                }
            }
        }
        let targets = table(top, "target").into_iter().flat_map(|all| all.iter());
        let of_targets = targets.filter_map(|(_, value)| {
            let value = value.get_ref().as_table()?;
            get(value, "rustflags")
        });
        for (span, flags) in of_build.clone().into_iter().chain(of_targets) {
            if crt_static(flags) == Some(true) {
                let message = "`+crt-static` makes programs that cannot load a library";
                report(span, message.into());
            }
        }
    }
}

fn forced_library_path(workspace: &Workspace<'_>, findings: &mut Findings) {
    for config in &workspace.configs {
        let Ok(parsed) = DeTable::parse(&config.text) else {
            continue; // Cargo reports the error.
        };
        let Some(env) = table(parsed.get_ref(), "env") else {
            continue;
        };
        for (name, value) in env.iter() {
            let is_ours =
                name.get_ref().starts_with("GPUSTUB_") && name.get_ref().ends_with("_PATH");
            let forced = value
                .get_ref()
                .as_table()
                .and_then(|value| get(value, "force"));
            let forced = forced.is_some_and(|(_, force)| force.as_bool() == Some(true));
            if is_ours && forced {
                let message = format!("`force = true` overrides the user's `{}`", name.get_ref());
                findings.push(
                    Diagnostic::error(&FORCED_LIBRARY_PATH.code, message)
                        .with_origin(&config.shown, name.span())
                        .help("remove `force`"),
                );
            }
        }
    }
}
