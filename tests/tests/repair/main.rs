//! `cargo gpustub repair` of published wheels: the error before, and what works after, without CUDA and with
//! two CUDA runtimes. `repair/<name>.toml` has the expectations.

mod bound;
mod loaders;
mod mutated;
mod passed_on;
mod user_defined;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::succeed;
use gpustub_tests::components::{auditwheel, component, only_entry};
use gpustub_tests::{Result, repository};
use serde::Deserialize;

/// Expectations of a wheel.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Python code; `SITE` is the directory of the unpacked wheel, `WITH` that of the packages it needs.
    script: String,
    /// Variables of the script.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// Last line of the error before the repair; none: the wheel starts.
    before: Option<String>,
    /// Output after the repair.
    after: Vec<String>,
    /// Options of the repair.
    #[serde(default)]
    options: Vec<String>,
    /// Exit code of the repair.
    #[serde(default)]
    exit: i32,
    /// Codes of its diagnostics.
    #[serde(default)]
    reported: BTreeSet<String>,
    /// Tag that auditwheel computes.
    tag: String,
    /// Findings in the repaired wheel, `path: level[rule]`, which the original has as well.
    #[serde(default)]
    check: BTreeSet<String>,
    /// Reports of the stubs with the libraries of CUDA 12.9 and 13.5, by release and version node; none: not compared.
    bound: Option<BTreeMap<String, BTreeMap<String, String>>>,
}

/// Codes in output of `--message-format short`.
fn codes(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| {
            let (_, rest) = line
                .split_once(": error[")
                .or_else(|| line.split_once(": warning["))?;
            Some(rest.split_once(']')?.0.to_owned())
        })
        .collect()
}

/// Findings of `check`, without their texts: `path: level[rule]`.
fn findings(wheel: &Path) -> Result<(BTreeSet<String>, String)> {
    let mut check = gpustub(&["check", "--message-format", "short"])?;
    let output = check.arg(wheel).output()?;
    let text = String::from_utf8(output.stderr)?;
    let name = wheel.display().to_string();
    let findings = text
        .lines()
        .filter_map(|line| {
            let finding = line.strip_prefix(&name)?.trim_start_matches('!');
            Some(finding.split_once("]: ")?.0.to_owned() + "]")
        })
        .collect();
    Ok((findings, text))
}

/// Returns an error with the program's output `text` unless both are equal.
fn same<T: PartialEq + std::fmt::Debug>(
    context: &str,
    ours: &T,
    expected: &T,
    text: &str,
) -> Result<()> {
    if ours == expected {
        Ok(())
    } else {
        Err(format!("{context}: {ours:?}\n  expected {expected:?}\n{text}").into())
    }
}

/// Unpacks a wheel.
fn unpack(wheel: &Path, site: &Path) -> Result<()> {
    succeed(
        Command::new("python3")
            .args(["-m", "zipfile", "-e"])
            .arg(wheel)
            .arg(site),
    )?;
    Ok(())
}

impl Case {
    /// Runs the script on an unpacked wheel.
    fn run(&self, name: &str, site: &Path) -> Result<Output> {
        let needs = component(&format!("wheels-repair-with/{name}")).unwrap_or_default();
        let script = format!("SITE = {site:?}\nWITH = {needs:?}\n{}", self.script);
        let mut python = Command::new("python3");
        python.args(["-B", "-c", &script]).envs(&self.environment);
        python.env("PYTHONPATH", std::env::join_paths([site, &needs])?);
        python.env("GPUSTUB_LOG", "1").env_remove("LD_LIBRARY_PATH");
        Ok(python.output()?)
    }

    fn check(&self, name: &str) -> Result<()> {
        let wheel = only_entry(&component(&format!("wheels-repair/{name}"))?)?;
        let scratch = tempfile::tempdir()?;
        let site = scratch.path().join("before");
        unpack(&wheel, &site)?;
        let before = self.run(name, &site)?;
        let text = String::from_utf8_lossy(&before.stderr);
        if let Some(expected) = &self.before {
            assert_eq!(
                text.lines().last(),
                Some(expected.as_str()),
                "{name}\n{text}"
            );
        }
        fs::remove_dir_all(&site)?;
        let (original_findings, _) = findings(&wheel)?;

        let out = scratch.path().join("out");
        let mut repair = gpustub(&["repair", "--message-format", "short", "--out-dir"])?;
        repair.arg(&out).arg(&wheel).args(&self.options);
        let output = repair.output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        same("exit code", &output.status.code(), &Some(self.exit), &text)?;
        same("reported", &codes(&text), &self.reported, &text)?;
        let wheel = only_entry(&out)?;
        let site = scratch.path().join("after/site-packages");
        unpack(&wheel, &site)?;
        let after = self.run(name, &site)?;
        let stdout = String::from_utf8(after.stdout)?;
        let text = String::from_utf8_lossy(&after.stderr);
        let lines: Vec<String> = stdout.lines().map(str::to_owned).collect();
        same("after", &lines, &self.after, &text)?;

        let (repaired_findings, text) = findings(&wheel)?;
        same("check", &repaired_findings, &self.check, &text)?;
        let new: Vec<&String> = repaired_findings.difference(&original_findings).collect();
        if !new.is_empty() {
            return Err(format!("new findings: {new:?}\n{text}").into());
        }
        let ran = succeed(auditwheel(&["show", "--json"])?.arg(&wheel))?;
        let audit: serde_json::Value = serde_json::from_str(&ran.stdout)?;
        same(
            "tag",
            &audit["overall_tag"].as_str(),
            &Some(self.tag.as_str()),
            "",
        )?;
        let Some(bound) = &self.bound else {
            return Ok(());
        };
        for release in ["12.9", "13.5"] {
            let reports = bound::reports(&site, release)?;
            let expected = bound.get(release).cloned().unwrap_or_default();
            if reports != expected {
                let text = toml::to_string(&BTreeMap::from([(release, &reports)]))?;
                return Err(format!("bound: {text}").into());
            }
        }
        Ok(())
    }
}

fn cases() -> Result<BTreeMap<String, PathBuf>> {
    let mut cases = BTreeMap::new();
    for entry in fs::read_dir(repository().join("tests/repair"))? {
        let path = entry?.path();
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        cases.insert(name, path);
    }
    Ok(cases)
}

#[test]
#[ignore = "needs 1.2 GB of wheels, and auditwheel: ./tests/run --all"]
fn heavy_repaired_wheels_start_without_cuda() -> Result<()> {
    let cases = cases()?;
    assert!(cases.len() >= 9, "{cases:?}");
    let mut failed = Vec::new();
    for (name, path) in cases {
        let case: Case = toml::from_str(&fs::read_to_string(path)?)?;
        failed.extend(
            case.check(&name)
                .err()
                .map(|error| format!("{name}: {error:?}")),
        );
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("\n").into())
    }
}
