//! Policies: levels of findings, and allowed findings.
//!
//! The default level of a rule is overridden by the policy of the workspace, then by that of the
//! package whose directory contains the file, then by the command line.

use std::path::Path;

use gpustub_core::date::Date;
use gpustub_core::diag::{DEVICE_LINKED_ARCHIVE, Diagnostic, Level};
use gpustub_core::manifest::{Allow, Policy, RuleLevel};

use crate::rule::{Check, Rule};
use crate::rules::RULES;
use crate::rules::workspace::UNKNOWN_LOAD_NAME;

/// Name on the command line for every rule that no policy allows.
pub const ALL_RULES: &str = "all";

/// A `[policy]` table and its scope.
#[derive(Debug, Clone, Copy)]
pub struct PolicyLayer<'a> {
    /// Directory of the file, absolute, with `/`: base of the paths in it.
    pub directory: &'a str,
    /// Whether the policy applies to all files, like a workspace's; otherwise to those in the directory.
    pub everywhere: bool,
    /// Display path of the file.
    pub file: &'a str,
    /// The policy.
    pub policy: &'a Policy,
}

/// Levels from the command line, by the ids of rules or [`ALL_RULES`].
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--allow`.
    pub allow: Vec<String>,
    /// `--warn`.
    pub warn: Vec<String>,
    /// `--deny`.
    pub deny: Vec<String>,
}

/// Scope of a run: allowances outside of it are not reported as unused.
#[derive(Debug, Clone, Default)]
pub struct CheckedScope {
    /// The whole workspace.
    pub workspace: bool,
    /// Display paths of files.
    pub files: Vec<String>,
}

/// Applies policies in order, and records the allowances that were used.
#[derive(Debug)]
pub struct PolicyEngine<'a> {
    /// The workspace's first.
    layers: Vec<PolicyLayer<'a>>,
    overrides: &'a Overrides,
    /// Base of relative paths, absolute.
    base: &'a str,
    today: Date,
    used: Vec<Vec<bool>>,
}

/// An unused allowance and its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusedAllow<'a> {
    /// Display path of the policy's file.
    pub file: &'a str,
    /// The allowance.
    pub allow: &'a Allow,
}

impl Overrides {
    /// The level of a rule that has the level `from_files` in files. A rule's name takes precedence
    /// over [`ALL_RULES`], and the strictest of several options over the others.
    fn level(&self, id: &str, from_files: RuleLevel) -> RuleLevel {
        match (self.level_of(id), self.level_of(ALL_RULES)) {
            (Some(level), _) => level,
            (None, Some(level)) if from_files != RuleLevel::Allow => level,
            _ => from_files,
        }
    }

    /// The strictest level that options set for a rule's name or for [`ALL_RULES`].
    fn level_of(&self, name: &str) -> Option<RuleLevel> {
        [
            (&self.deny, RuleLevel::Deny),
            (&self.warn, RuleLevel::Warn),
            (&self.allow, RuleLevel::Allow),
        ]
        .into_iter()
        .find(|(rule_names, _)| rule_names.iter().any(|rule_name| rule_name == name))
        .map(|(_, level)| level)
    }
}

impl<'a> PolicyEngine<'a> {
    /// Engine with these policies, the workspace's first. `base` is the absolute base directory of
    /// relative paths in findings.
    pub fn new(
        layers: Vec<PolicyLayer<'a>>,
        overrides: &'a Overrides,
        base: &'a str,
        today: Date,
    ) -> Self {
        let used = layers
            .iter()
            .map(|layer| vec![false; layer.policy.allow.len()])
            .collect();
        Self {
            layers,
            overrides,
            base,
            today,
            used,
        }
    }

    /// Sets the levels of findings and removes the allowed ones.
    pub fn apply(&mut self, findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
        findings
            .into_iter()
            .filter_map(|finding| self.apply_to(finding))
            .collect()
    }

    fn apply_to(&mut self, mut finding: Diagnostic) -> Option<Diagnostic> {
        let Some(rule) = rule(finding.code.id) else {
            // Not a rule's code: a file that cannot be read is always an error.
            return Some(finding);
        };
        let path = finding
            .origin
            .as_ref()
            .map(|origin| absolute(self.base, &origin.display()));
        let mut level = match (finding.level, rule.code.id) {
            (Level::Warning, id) if id == UNKNOWN_LOAD_NAME.code.id => RuleLevel::Warn,
            // The plan's: the archive is the input of a device link, which would fail.
            (Level::Error, id) if id == DEVICE_LINKED_ARCHIVE.id => RuleLevel::Deny,
            _ => rule.level,
        };
        let mut is_allowed = false;
        let mut expired: Option<(Date, &str)> = None;
        for (layer, used) in self.layers.iter().zip(&mut self.used) {
            if !layer.everywhere
                && !path
                    .as_ref()
                    .is_some_and(|path| is_below(path, &absolute(layer.directory, ".")))
            {
                continue;
            }
            if let Some(policy_level) = layer.policy.rules.get(rule.code.id) {
                level = policy_level.value;
            }
            for (allow, used) in layer.policy.allow.iter().zip(used) {
                if allow.rule.value != rule.code.id || !applies_to(allow, layer, path.as_deref()) {
                    continue;
                }
                *used = true;
                match allow.until.as_ref().map(|until| until.value) {
                    Some(until) if until < self.today => expired = Some((until, layer.file)),
                    _ => is_allowed = true,
                }
            }
        }
        finding.level = match self.overrides.level(rule.code.id, level) {
            RuleLevel::Allow => return None,
            RuleLevel::Warn => Level::Warning,
            RuleLevel::Deny => Level::Error,
        };
        if let Some((until, file)) = expired {
            let note = format!("`[[policy.allow]]` in {file} expired on {until}");
            finding.help = Some(match finding.help {
                Some(help) => format!("{help}; {note}"),
                None => note,
            });
        }
        (!is_allowed).then_some(finding)
    }

    /// Allowances without a finding whose path the run has checked.
    pub fn unused(&self, scope: &CheckedScope) -> Vec<UnusedAllow<'a>> {
        let mut unused = Vec::new();
        for (layer, used) in self.layers.iter().zip(&self.used) {
            for (allow, used) in layer.policy.allow.iter().zip(used) {
                if !used && self.covers(allow, layer, scope) {
                    unused.push(UnusedAllow {
                        file: layer.file,
                        allow,
                    });
                }
            }
        }
        unused
    }

    fn covers(&self, allow: &Allow, layer: &PolicyLayer<'_>, scope: &CheckedScope) -> bool {
        match rule(&allow.rule.value).map(|rule| rule.check) {
            None => false,
            Some(Check::Workspace(_) | Check::Command) => scope.workspace,
            Some(
                Check::Image(_)
                | Check::AnyImage(_)
                | Check::Package(_)
                | Check::Process(_)
                | Check::Policy(_),
            ) => {
                allow.path.is_some()
                    && scope
                        .files
                        .iter()
                        .any(|file| applies_to(allow, layer, Some(&absolute(self.base, file))))
            }
        }
    }
}

/// Whether an allowance applies to a path.
fn applies_to(allow: &Allow, layer: &PolicyLayer<'_>, path: Option<&str>) -> bool {
    let Some(allowed_path) = &allow.path else {
        return true;
    };
    let Some(path) = path else {
        return false;
    };
    // A directory or an archive includes all files in it.
    let pattern = absolute(layer.directory, &allowed_path.value);
    path.match_indices(['/', '!'])
        .map(|(end, _)| end)
        .chain([path.len()])
        .any(|end| matches_pattern(&pattern, &path[..end]))
}

/// Whether a text matches a pattern, in which `*` matches any text.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((suffix, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(start) => rest = &rest[start + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(suffix)
}

/// A path from the root, without `.` and `..`; on Windows `/` and the drive.
fn absolute(directory: &str, path: &str) -> String {
    let joined = if Path::new(path).has_root() {
        path.to_owned()
    } else {
        format!("{directory}/{path}")
    };
    let mut components: Vec<&str> = Vec::new();
    for component in joined.split('/') {
        match component {
            "" | "." => {}
            ".." => drop(components.pop()),
            name => components.push(name),
        }
    }
    format!("/{}", components.join("/"))
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The rule of this id.
pub fn rule(id: &str) -> Option<&'static Rule> {
    let index = RULES.binary_search_by(|rule| rule.code.id.cmp(id)).ok()?;
    Some(RULES[index])
}

#[cfg(test)]
mod tests {
    use gpustub_core::manifest::Manifest;

    use super::*;

    /// A finding of `needed-driver` (denied by default) in a file.
    fn finding(file: &str) -> Diagnostic {
        let rule = rule("needed-driver").unwrap();
        Diagnostic::error(&rule.code, "x").with_origin(file, 0..0)
    }

    fn policy(text: &str) -> Policy {
        let (manifest, diagnostics) =
            Manifest::parse("GpuStub.toml", &format!("schema = 1\n{text}"));
        assert_eq!(diagnostics, []);
        manifest
            .policy
            .map_or_else(Policy::default, |policy| policy.value)
    }

    /// Policy of the workspace in `/w`, or of a package in it.
    fn layer<'a>(directory: &'a str, policy: &'a Policy) -> PolicyLayer<'a> {
        PolicyLayer {
            directory,
            everywhere: directory == "/w",
            file: "GpuStub.toml",
            policy,
        }
    }

    fn engine<'a>(layers: Vec<PolicyLayer<'a>>, overrides: &'a Overrides) -> PolicyEngine<'a> {
        PolicyEngine::new(layers, overrides, "/w", Date::parse("2027-01-01").unwrap())
    }

    fn level_of(root: &str, package: &str, overrides: &Overrides, file: &str) -> Option<Level> {
        let (root, package) = (policy(root), policy(package));
        engine(vec![layer("/w", &root), layer("/w/a", &package)], overrides)
            .apply(vec![finding(file)])
            .first()
            .map(|finding| finding.level)
    }

    #[test]
    fn nearest_policy_takes_precedence() {
        let (warn, allow) = (
            "[policy.rules]\nneeded-driver = \"warn\"\n",
            "[policy.rules]\nneeded-driver = \"allow\"\n",
        );
        let none = Overrides::default();
        for (root, package, file, level) in [
            ("", "", "a/x", Some(Level::Error)),
            (warn, "", "a/x", Some(Level::Warning)),
            (warn, allow, "a/x", None),
            (warn, allow, "./b/../a/x", None),
            (warn, allow, "/w/a", None),
            (warn, allow, "ab/x", Some(Level::Warning)),
            (warn, allow, "/elsewhere/a", Some(Level::Warning)),
            (allow, warn, "a/x", Some(Level::Warning)),
        ] {
            assert_eq!(
                level_of(root, package, &none, file),
                level,
                "{root}{package}{file}"
            );
        }
    }

    fn overrides(allow: &[&str], warn: &[&str], deny: &[&str]) -> Overrides {
        let [allow, warn, deny] =
            [allow, warn, deny].map(|rules| rules.iter().map(ToString::to_string).collect());
        Overrides { allow, warn, deny }
    }

    /// An allowance of `needed-driver` with more keys.
    fn allow(keys: &str) -> String {
        format!("[[policy.allow]]\nrule = \"needed-driver\"\nreason = \"x\"\n{keys}\n")
    }

    #[test]
    fn command_line_overrides_policies() {
        let (warn, allow) = (
            "[policy.rules]\nneeded-driver = \"warn\"\n",
            "[policy.rules]\nneeded-driver = \"allow\"\n",
        );
        for (root, options, level) in [
            (warn, overrides(&["needed-driver"], &[], &[]), None),
            (warn, overrides(&["all"], &[], &[]), None),
            (warn, overrides(&[], &[], &["all"]), Some(Level::Error)),
            (allow, overrides(&[], &[], &["all"]), None),
            (
                allow,
                overrides(&[], &[], &["needed-driver"]),
                Some(Level::Error),
            ),
            (
                "",
                overrides(&["all"], &["needed-driver"], &[]),
                Some(Level::Warning),
            ),
            (
                "",
                overrides(&["needed-driver"], &["needed-driver"], &[]),
                Some(Level::Warning),
            ),
            (
                "",
                overrides(&["absolute-runpath"], &[], &[]),
                Some(Level::Error),
            ),
        ] {
            assert_eq!(
                level_of(root, "", &options, "x"),
                level,
                "{root}{options:?}"
            );
        }
    }

    #[test]
    fn allowances_apply_to_their_path_until_they_expire() {
        let none = Overrides::default();
        for (keys, file, is_allowed) in [
            ("", "a/x", true),
            ("path = \"dist/x.whl\"", "dist/x.whl!x/_core.so", true),
            (
                "path = \"dist/x.whl!x/_core.so\"",
                "dist/x.whl!x/_core.so",
                true,
            ),
            ("path = \"dist\"", "dist/x.whl!x/_core.so", true),
            ("path = \"dis\"", "dist/x.whl", false),
            ("path = \"dist/*.whl\"", "dist/x.whl!x/_core.so", true),
            ("path = \"dist/*-cuda-*.whl\"", "dist/a-cuda-1.whl", true),
            ("path = \"dist/*-cuda-*.whl\"", "dist/a-hip-1.whl", false),
            ("path = \"*bench\"", "target/release/bench", true),
            ("path = \"*bench\"", "target/release/benches", false),
            ("until = \"2027-01-01\"", "x", true),
            ("until = \"2026-12-31\"", "x", false),
        ] {
            let level = level_of(&allow(keys), "", &none, file);
            assert_eq!(level.is_none(), is_allowed, "{keys} {file}");
        }
        let toolkit = allow("").replace("needed-driver", "needed-toolkit");
        assert_eq!(level_of(&toolkit, "", &none, "x"), Some(Level::Error));
        // A package's policy applies to its directory only, which is the base of its paths.
        assert_eq!(level_of("", &allow("path = \"x\""), &none, "a/x"), None);
        assert_eq!(
            level_of("", &allow("path = \"x\""), &none, "x"),
            Some(Level::Error)
        );
    }

    #[test]
    fn unused_reports_only_checked_paths() {
        let text = "\
[[policy.allow]]\nrule = \"needed-driver\"\nreason = \"x\"\npath = \"dist/*.whl\"\n\
[[policy.allow]]\nrule = \"needed-driver\"\nreason = \"x\"\n\
[[policy.allow]]\nrule = \"missing-fallback\"\nreason = \"x\"\n";
        let policy = policy(text);
        let overrides = Overrides::default();
        let unused = |findings: Vec<Diagnostic>, workspace: bool, files: &[&str]| -> Vec<usize> {
            let mut engine = engine(vec![layer("/w", &policy)], &overrides);
            engine.apply(findings);
            let scope = CheckedScope {
                workspace,
                files: files.iter().map(ToString::to_string).collect(),
            };
            engine
                .unused(&scope)
                .iter()
                .filter_map(|unused| {
                    policy
                        .allow
                        .iter()
                        .position(|allow| std::ptr::eq(unused.allow, allow))
                })
                .collect()
        };
        assert_eq!(unused(vec![], false, &[]), [0; 0]);
        assert_eq!(unused(vec![], true, &[]), [2]);
        assert_eq!(unused(vec![], false, &["dist/a.whl!a.so"]), [0]);
        assert_eq!(unused(vec![], false, &["dist/a.zip"]), [0; 0]);
        assert_eq!(
            unused(
                vec![finding("dist/a.whl!a.so")],
                false,
                &["dist/a.whl!a.so"]
            ),
            [0; 0]
        );
    }
}
