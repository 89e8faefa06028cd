//! Tables of `docs/majors.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use gpustub_core::version::Version;
use gpustub_tests::Result;

use crate::programs::Program;
use crate::verdicts::{Verdict, limits, verdicts};

/// Library whose functions change between majors.
pub const CHANGING: &str = "cudart";

/// Newest listed release of each major, ascending.
pub fn newest_of_each_major(releases: &[Version]) -> Vec<Version> {
    let mut newest: BTreeMap<u32, Version> = BTreeMap::new();
    for release in releases {
        newest.insert(release.major, *release);
    }
    newest.into_values().collect()
}

/// Tables of the functions that programs import from the CUDA runtime, and a sentence about those from other
/// libraries.
pub fn tables(programs: &[&Program]) -> Result<String> {
    let mut rows = String::new();
    let mut changed: BTreeMap<(String, String), BTreeMap<Verdict, BTreeSet<Version>>> =
        BTreeMap::new();
    let mut releases = Vec::new();
    let (mut others, mut count) = (BTreeSet::new(), 0);
    let mut missing: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for program in programs {
        for imports in &program.imports {
            let library = imports.shipped();
            if imports.library != CHANGING {
                count += imports.functions.len();
                others.insert(format!("`{}`", imports.library));
                for release in &newest_of_each_major(&library.symbols.releases) {
                    let found = verdicts(imports, *release, &limits(imports)?);
                    let missing = missing.entry(format!("{} {release}", imports.library));
                    let missing = missing.or_default();
                    let found = found
                        .into_iter()
                        .filter(|(_, verdict)| *verdict != Verdict::Own);
                    missing.extend(
                        found.map(|(function, verdict)| format!("`{function}` {}", call(&verdict))),
                    );
                }
                continue;
            }
            releases = newest_of_each_major(&library.symbols.releases);
            let limits = limits(imports)?;
            let header = imports.header.as_deref().unwrap_or("unknown");
            let total = imports.functions.len();
            let _ = write!(rows, "| {} | {header} | {total} |", program.name);
            for release in &releases {
                let found = verdicts(imports, *release, &limits);
                let _ = write!(rows, " {} |", summary(&found));
                for (function, verdict) in found {
                    if verdict != Verdict::Own {
                        let key = (function, major(header).to_owned());
                        let verdicts = changed.entry(key).or_default();
                        verdicts.entry(verdict).or_default().insert(*release);
                    }
                }
            }
            rows.push('\n');
        }
    }
    let mut text = "| program | built for | functions |".to_owned();
    for release in &releases {
        let _ = write!(text, " {release} |");
    }
    text += &format!("\n|---|---|---|{}\n{rows}\n", "---|".repeat(releases.len()));
    text += "Functions that are not called as they are:\n\n| function | built for | on | call |\n|---|---|---|---|\n";
    for ((function, header), verdicts) in &changed {
        for (verdict, releases) in verdicts {
            let releases: Vec<String> = releases.iter().map(ToString::to_string).collect();
            let releases = releases.join(", ");
            let call = call(verdict);
            let _ = writeln!(text, "| `{function}` | {header} | {releases} | {call} |");
        }
    }
    let others: Vec<String> = others.into_iter().collect();
    missing.retain(|_, functions| !functions.is_empty());
    let _ = writeln!(
        text,
        "\nThe other {count} imports, of {}, are called as they are in the newest release of each major of their libraries{}",
        others.join(", "),
        if missing.is_empty() {
            "."
        } else {
            ", except:\n"
        }
    );
    for (release, functions) in &missing {
        let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
        let _ = writeln!(text, "* {release}: {}", functions.join(", "));
    }
    Ok(text)
}

fn major(header: &str) -> &str {
    header.split('.').next().unwrap_or(header)
}

/// Numbers of functions: `all`, or `17, 1 adapted, 2 missing`.
fn summary(found: &BTreeMap<String, Verdict>) -> String {
    let count =
        |is: &dyn Fn(&Verdict) -> bool| found.values().filter(|verdict| is(verdict)).count();
    let unchanged = count(&|v| matches!(v, Verdict::Own | Verdict::Other(_) | Verdict::Answered));
    if unchanged == found.len() {
        return "all".to_owned();
    }
    let parts = [
        ("adapted", count(&|v| *v == Verdict::Adapted)),
        (
            "adapted in part",
            count(&|v| matches!(v, Verdict::Limited(_))),
        ),
        ("refused", count(&Verdict::is_change)),
        ("missing", count(&|v| *v == Verdict::Missing)),
    ];
    let mut text = unchanged.to_string();
    for (what, count) in parts.iter().filter(|(_, count)| *count > 0) {
        let _ = write!(text, ", {count} {what}");
    }
    text
}

fn call(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Own => "as it is".to_owned(),
        Verdict::Other(name) => format!("bound to `{name}`"),
        Verdict::Answered => "answered by the stubs".to_owned(),
        Verdict::Adapted => "adapted".to_owned(),
        Verdict::Limited(limit) => format!("adapted, only {limit}"),
        Verdict::Refused(None) | Verdict::Changed => "refused".to_owned(),
        Verdict::Refused(Some(reason)) => format!("refused: {reason}"),
        Verdict::Missing => "missing".to_owned(),
    }
}
