//! `cargo gpustub check` on published wheels: every finding in them has a verdict, and the tag
//! rules are at least as strict as auditwheel, which reads wheels of Linux.
//!
//! `wheels/<name>.toml` contains the verdicts, written by hand; `wheels/<name>.txt` contains the
//! findings (`BLESS=1` rewrites it).

#![allow(
    clippy::disallowed_methods,
    reason = "the environment says whether findings are rewritten"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpustub_check::platform_tag::Tag;
use gpustub_check::policy::{Overrides, PolicyEngine, PolicyLayer};
use gpustub_check::{FlawKind, Package, check, read};
use gpustub_core::date::Date;
use gpustub_core::diag::{Diagnostic, Level, Origin};
use gpustub_core::manifest::{Policy, RuleLevel, Spanned};
use gpustub_tests::command::succeed;
use gpustub_tests::components::{auditwheel, component, only_entry};
use gpustub_tests::{Result, repository};
use serde::Deserialize;
use serde_json::Value;

/// Verdicts on the findings in a wheel.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Verdicts {
    /// Reason why the findings of each rule are right.
    #[serde(default)]
    right: BTreeMap<String, String>,
    /// Reason why tag rules have findings although auditwheel has none.
    stricter: Option<String>,
    /// Reason why tag rules have no findings although auditwheel has: libraries of required wheels.
    required: Option<String>,
    /// Number of files that are not checked, by the reason, in wheels of other systems.
    #[serde(default)]
    skipped: BTreeMap<String, usize>,
}

fn is_tag_rule(finding: &Diagnostic) -> bool {
    finding.code.id.starts_with("tag-") && finding.level == Level::Error
}

/// Findings under a policy.
fn findings(packages: &[Package], policy: &Policy) -> Vec<Diagnostic> {
    let layer = PolicyLayer {
        directory: "",
        everywhere: true,
        file: "",
        policy,
    };
    let findings = (packages.iter())
        .flat_map(|package| check(package, policy))
        .collect();
    let overrides = Overrides::default();
    PolicyEngine::new(vec![layer], &overrides, "", Date::after_1970(0)).apply(findings)
}

/// Findings in the format of `--message-format short`.
fn short_format(findings: &[Diagnostic], name: &str) -> String {
    let mut text = String::new();
    for finding in findings {
        let origin = (finding.origin.as_ref().map(Origin::display)).unwrap_or_default();
        let file = origin.strip_prefix(name).unwrap_or(&origin);
        let (level, rule) = (finding.level, finding.code.id);
        // The wheel itself has no path in it.
        let file = file.strip_prefix('!').unwrap_or(name);
        text += &format!("{file}: {level}[{rule}]: {}\n", finding.message);
    }
    text
}

/// Platform tag that auditwheel assigns to a wheel; none if the wheel contains no image.
fn audited(wheel: &Path) -> Result<Option<Tag>> {
    let ran = succeed(auditwheel(&["show", "--json"])?.arg(wheel))?;
    let report: Value = serde_json::from_str(&ran.stdout)?;
    let tag = report["overall_tag"].as_str().ok_or("no tag")?;
    match Tag::parse(tag) {
        None if !tag.starts_with("linux_") => Err(format!("{tag} is no tag").into()),
        tag => Ok(tag),
    }
}

/// Returns an error with the text `context` unless both are equal.
fn same<T: PartialEq + std::fmt::Debug>(context: &str, ours: &T, expected: &T) -> Result<()> {
    if ours == expected {
        Ok(())
    } else {
        Err(format!("{context}:\n  {ours:?}\n  expected {expected:?}").into())
    }
}

fn check_wheel(name: &str, is_for_linux: bool) -> Result<()> {
    let wheel = only_entry(&component(&format!("wheels-check/{name}"))?)?;
    let file = wheel.file_name().unwrap_or_default().to_string_lossy();
    let packages = read::read(&wheel, &file)?;
    let findings_of_wheel = findings(&packages, &Policy::default());
    let text = short_format(&findings_of_wheel, &file);
    let packages_again = read::read(&wheel, &file)?;
    let text_again = short_format(&findings(&packages_again, &Policy::default()), &file);
    same(&format!("{name}, once more"), &text_again, &text)?;

    let directory = repository().join("tests/wheels");
    let expected = directory.join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&expected, &text)?;
    }
    same(name, &text, &std::fs::read_to_string(&expected)?)?;
    let verdicts = std::fs::read_to_string(directory.join(format!("{name}.toml")))?;
    let verdicts: Verdicts = toml::from_str(&verdicts)?;
    let rules: BTreeSet<&str> = findings_of_wheel
        .iter()
        .map(|finding| finding.code.id)
        .collect();
    let reviewed = verdicts.right.keys().map(String::as_str).collect();
    same(&format!("{name}, rules with a verdict"), &reviewed, &rules)?;
    if let Some((rule, _)) = verdicts.right.iter().find(|(_, why)| why.len() < 20) {
        return Err(format!("{name}: {rule} has no reason").into());
    }
    if is_for_linux {
        compare_with_auditwheel(name, &file, &packages, &wheel, &verdicts)
    } else {
        same(
            &format!("{name}, files that are skipped"),
            &skipped(&packages),
            &verdicts.skipped,
        )
    }
}

/// Number of files that were skipped, with the reason.
fn skipped(packages: &[Package]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for flaw in packages.iter().flat_map(|package| &package.flaws) {
        assert_eq!(flaw.kind, FlawKind::Skipped, "{}", flaw.message);
        *counts.entry(flaw.message.clone()).or_default() += 1;
    }
    counts
}

/// Minor glibc versions of auditwheel's policies, as old as those of the wheels.
const POLICIES: &[u32] = &[5, 12, 17, 24, 27, 28];

/// Compares the findings with auditwheel's, for the oldest tag in the wheel's name and older ones.
fn compare_with_auditwheel(
    name: &str,
    file: &str,
    packages: &[Package],
    wheel: &Path,
    verdicts: &Verdicts,
) -> Result<()> {
    let platforms = file.trim_end_matches(".whl").rsplit('-').next();
    let claimed = platforms
        .into_iter()
        .flat_map(|tags| tags.split('.'))
        .filter_map(Tag::parse)
        .min_by_key(|tag| tag.minor)
        .ok_or("no tag in its name")?;
    let theirs = audited(wheel)?;
    let mut lenient = None;
    for minor in POLICIES.iter().copied().filter(|&n| n <= claimed.minor) {
        let conforms = theirs.as_ref().is_some_and(|tag| tag.minor <= minor);
        let policy = Policy {
            platform_tag: Some(Spanned {
                value: format!("manylinux_2_{minor}"),
                span: 0..0,
            }),
            ..Policy::default()
        };
        let denied = findings(packages, &policy).iter().any(is_tag_rule);
        if !conforms && !denied {
            lenient = Some(minor);
        }
        if minor == claimed.minor {
            let context = format!("{name}: whether we are stricter than auditwheel");
            same(
                &context,
                &(conforms && denied),
                &verdicts.stricter.is_some(),
            )?;
        }
    }
    match lenient {
        Some(minor) if verdicts.required.is_none() => {
            Err(format!("{name}: auditwheel refuses manylinux_2_{minor}: {theirs:?}").into())
        }
        None if verdicts.required.is_some() => {
            Err(format!("{name}: auditwheel accepts the libraries of required wheels").into())
        }
        _ => Ok(()),
    }
}

/// Names in a list of components.
fn listed(list: &str) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(repository().join("tests/components").join(list))?;
    Ok(text
        .lines()
        .filter_map(|line| line.strip_prefix("wheels-check/"))
        .filter_map(|rest| rest.split_whitespace().next())
        .map(str::to_owned)
        .collect())
}

fn check_wheels(list: &str, min_count: usize) -> Result<()> {
    let names = listed(list)?;
    assert!(names.len() >= min_count, "{names:?}");
    let is_for_linux = !["windows", "macos"]
        .iter()
        .any(|system| list.contains(system));
    let failed: Vec<String> = names
        .iter()
        .filter_map(|name| Some(check_wheel(name, is_for_linux).err()?.0))
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("\n").into())
    }
}

#[test]
#[ignore = "needs wheels and auditwheel: ./tests/run"]
fn every_finding_in_small_wheels_has_a_verdict() -> Result<()> {
    check_wheels("wheels-check.list", 2)
}

#[test]
#[ignore = "needs 340 MB of wheels, and auditwheel: ./tests/run --all"]
fn heavy_every_finding_in_wheels_has_a_verdict() -> Result<()> {
    check_wheels("wheels-check-all.list", 8)
}

#[test]
#[ignore = "needs wheels for Windows and macOS: ./tests/run"]
fn every_finding_in_wheels_of_other_systems_has_a_verdict() -> Result<()> {
    check_wheels("wheels-check-windows.list", 4)?;
    check_wheels("wheels-check-macos.list", 2)
}

#[test]
#[ignore = "needs 267 MB of wheels: ./tests/run --all"]
fn heavy_every_finding_in_wheels_of_windows_has_a_verdict() -> Result<()> {
    check_wheels("wheels-check-windows-all.list", 2)
}

/// Strings of an array.
fn strings(array: &Value) -> BTreeSet<String> {
    let values = array.as_array().into_iter().flatten();
    values
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Data of the tag rules equal auditwheel's for all policies and machines, and no rule is lenient.
#[test]
#[ignore = "needs auditwheel: ./tests/run"]
fn tag_rules_agree_with_auditwheel() -> Result<()> {
    let mut compared = 0;
    for family in ["manylinux", "musllinux"] {
        let file = component("auditwheel")?.join(format!("auditwheel/policy/{family}-policy.json"));
        let policies: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        let policies: Vec<&Value> = (policies.as_array().ok_or("no policies")?.iter())
            .filter(|policy| policy["name"] != "linux")
            .collect();
        // All libraries that any policy names.
        let mut libraries = BTreeSet::new();
        let mut nodes = BTreeSet::from(["GLIBC_PRIVATE".to_owned(), "GLIBCXX_9".into()]);
        let mut hidden: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for policy in &policies {
            libraries.extend(strings(&policy["lib_whitelist"]));
            for (library, symbols) in policy["blacklist"].as_object().ok_or("no blacklist")? {
                hidden
                    .entry(library.clone())
                    .or_default()
                    .extend(strings(symbols));
            }
            for prefixes in policy["symbol_versions"]
                .as_object()
                .ok_or("no versions")?
                .values()
            {
                for (prefix, versions) in prefixes.as_object().ok_or("no prefixes")? {
                    nodes.extend(strings(versions).iter().map(|v| format!("{prefix}_{v}")));
                }
            }
        }
        libraries.insert("libcuda.so.1".into());
        libraries.remove("libc.so");
        for policy in policies {
            let name = policy["name"].as_str().ok_or("no name")?;
            let tag = Tag::parse(name).ok_or(name)?;
            for alias in strings(&policy["aliases"]) {
                assert_eq!(Tag::parse(&alias), Some(tag.clone()), "{alias}");
            }
            for (machine, prefixes) in policy["symbol_versions"].as_object().ok_or("no versions")? {
                // Big-endian POWER has one policy, of 2014.
                if machine == "ppc64" {
                    continue;
                }
                let allowed = strings(&policy["lib_whitelist"]);
                for library in &libraries {
                    let ours = tag.has_library(library, machine);
                    assert_eq!(
                        ours,
                        allowed.contains(library),
                        "{name} {machine} {library}"
                    );
                }
                for node in &nodes {
                    let (prefix, version) = node.split_once('_').ok_or("no prefix")?;
                    let known = prefixes.get(prefix).map(strings);
                    let lacks = known.is_some_and(|known| !known.contains(version));
                    assert_eq!(
                        tag.lacks_node(node, machine),
                        lacks,
                        "{name} {machine} {node}"
                    );
                    compared += 1;
                }
            }
            for (library, symbols) in &hidden {
                let theirs = strings(&policy["blacklist"][library]);
                for symbol in symbols {
                    let ours = tag.hidden(library).any(|s| s == symbol);
                    assert_eq!(ours, theirs.contains(symbol), "{name} {library} {symbol}");
                }
            }
        }
    }
    assert!(compared > 5000, "{compared}");
    let rules: Vec<_> = gpustub_check::RULES
        .iter()
        .filter(|rule| rule.code.id.starts_with("tag-"))
        .collect();
    assert!(rules.len() >= 4);
    assert!(rules.iter().all(|rule| rule.level == RuleLevel::Deny));
    Ok(())
}
