use serde::Deserialize;

use super::rules::Rules;
use super::{findings, texts};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Name with the extension of the language.
    file: String,
    source: String,
    /// Lines and rules.
    found: Vec<String>,
}

#[test]
fn rules_find_what_the_cases_say() {
    let cases: Cases = toml::from_str(include_str!("../../data/prose-cases.toml")).unwrap();
    let rules = Rules::read().unwrap();
    assert!(cases.case.len() > 30, "{}", cases.case.len());
    for Case {
        file,
        source,
        found: expected,
    } in cases.case
    {
        let found = rules.check(&file, &texts(&file, &source, &rules).unwrap());
        let found = found.iter().map(|finding| {
            let rule = finding.rule.split(": write").next().unwrap_or_default();
            format!("{}: {rule}", finding.line)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{file}: {source}");
    }
}

#[test]
fn tree_has_no_findings() {
    let found = findings(&Rules::read().unwrap(), &[]).unwrap();
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
