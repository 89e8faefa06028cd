//! SARIF 2.1.0, which code hosts show beside the source lines: one document per run.
//! <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>

use std::collections::BTreeMap;
use std::path::Path;

use gpustub_core::diag::{Code, Diagnostic, Origin, line_column};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::base::Base;
use super::{Sources, level_name};
use crate::codes;
use crate::error::Error;

/// Base of relative locations: the root of the repository, if the CI service names it, else the directory that the
/// command runs in.
const BASE: &str = "SRCROOT";

/// The results of a run.
#[derive(Debug, Default)]
pub struct Run {
    rules: BTreeMap<&'static str, &'static Code>,
    results: Vec<(&'static str, Value)>,
    failures: Vec<Value>,
}

impl Run {
    /// Adds a finding, whose path begins in `base`.
    pub fn add(&mut self, diagnostic: &Diagnostic, sources: &Sources, base: &Base) {
        self.rules.insert(diagnostic.code.id, diagnostic.code);
        self.results
            .push((diagnostic.code.id, result(diagnostic, sources, base)));
    }

    /// Adds the reason why the command could not run.
    pub fn fail(&mut self, error: &Error) {
        let text = with_help(&error.message, error.help.as_deref());
        self.failures
            .push(json!({ "level": "error", "message": { "text": text } }));
    }

    /// The document.
    pub fn document(&self) -> Value {
        let rules: Vec<Value> = self.rules.values().map(|code| rule(code)).collect();
        let results: Vec<Value> = self
            .results
            .iter()
            .map(|(id, result)| {
                let mut result = result.clone();
                result["ruleIndex"] = self.rules.keys().position(|key| key == id).into();
                result
            })
            .collect();
        json!({
            "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "cargo-gpustub",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "informationUri": env!("CARGO_PKG_REPOSITORY"),
                    "rules": rules,
                } },
                "invocations": [{
                    "executionSuccessful": self.failures.is_empty(),
                    "toolExecutionNotifications": self.failures,
                }],
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": { BASE: {
                    "description": { "text": "the root of the repository (GITHUB_WORKSPACE), or the directory that the command ran in" },
                } },
                "results": results,
            }],
        })
    }
}

fn rule(code: &Code) -> Value {
    // An empty line precedes the example; line breaks in a paragraph are spaces.
    let (text, example) = code
        .explanation
        .split_once("\n\n    ")
        .unwrap_or((code.explanation, ""));
    json!({
        "id": code.id,
        "helpUri": codes::url(code),
        "shortDescription": { "text": code.summary },
        "fullDescription": { "text": text.replace('\n', " ") },
        "help": {
            "text": code.explanation,
            "markdown": format!("{text}\n\n    {example}"),
        },
    })
}

fn result(diagnostic: &Diagnostic, sources: &Sources, base: &Base) -> Value {
    let text = with_help(&diagnostic.message, diagnostic.help.as_deref());
    let origin = diagnostic.origin.as_ref().map(|origin| base.origin(origin));
    let file = origin.as_ref().map(Origin::display).unwrap_or_default();
    let mut result = json!({
        "ruleId": diagnostic.code.id,
        "level": level_name(diagnostic.level),
        "message": { "text": text },
        // Line numbers change; code, file and message identify the finding.
        "partialFingerprints": { "finding/v1": fingerprint(diagnostic.code.id, &file, &diagnostic.message) },
    });
    if let Some(origin) = &origin {
        let mut physical = json!({ "artifactLocation": artifact(&origin.file) });
        if let Some(region) = region(diagnostic, sources) {
            physical["region"] = region;
        }
        let mut location = json!({ "physicalLocation": physical });
        if let Some(member) = &origin.member {
            location["logicalLocations"] = json!([{
                "name": member.rsplit(['/', '!']).next(),
                "fullyQualifiedName": file,
                "kind": "resource",
            }]);
        }
        result["locations"] = json!([location]);
    }
    result
}

/// Lines and columns of a location, if the text is known.
fn region(diagnostic: &Diagnostic, sources: &Sources) -> Option<Value> {
    let origin = diagnostic.origin.as_ref()?;
    let text = sources.get(&*origin.display())?;
    let start = line_column(text, origin.span.start);
    let end = line_column(text, origin.span.end);
    Some(json!({
        "startLine": start.line, "startColumn": start.column,
        "endLine": end.line, "endColumn": end.column,
    }))
}

fn with_help(message: &str, help: Option<&str>) -> String {
    match help {
        Some(help) => format!("{message}\nhelp: {help}"),
        None => message.to_owned(),
    }
}

fn fingerprint(id: &str, file: &str, message: &str) -> String {
    let digest = Sha256::digest(format!("{id}\0{file}\0{message}").as_bytes());
    let bytes = &digest[..16];
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Location of a file in [`BASE`], or an absolute `file` URI.
fn artifact(path: &str) -> Value {
    if Path::new(path).has_root() {
        // RFC 8089, appendix E.2: the drive is the first segment.
        let uri = match path.split_once(":/") {
            Some((drive, rest)) if !drive.contains('/') => format!("{drive}:/{}", encoded(rest)),
            _ => encoded(path.trim_start_matches('/')),
        };
        return json!({ "uri": format!("file:///{uri}") });
    }
    json!({ "uri": encoded(path), "uriBaseId": BASE })
}

/// A path in a URI (RFC 3986: characters that are neither unreserved nor `/` are percent-encoded).
fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use gpustub_core::diag::{IO_ERROR, UNKNOWN_KEY};

    use super::*;

    fn first(diagnostic: &Diagnostic, sources: &Sources) -> Value {
        let mut run = Run::default();
        run.add(diagnostic, sources, &Base::new(None, Path::new("/work")));
        run.document()["runs"][0].clone()
    }

    #[test]
    fn locations_have_relative_uris_and_regions() {
        let text = "schema = 1\nß = 2\n".to_owned();
        let diagnostic = Diagnostic::warning(&UNKNOWN_KEY, "x")
            .with_origin("a b/ü.toml", 11..13)
            .help("y");
        let run = first(&diagnostic, &Sources::from([("a b/ü.toml".into(), text)]));
        let result = &run["results"][0];
        assert_eq!(result["level"], "warning");
        assert_eq!(result["message"]["text"], "x\nhelp: y");
        let location = &result["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "a%20b/%C3%BC.toml");
        assert_eq!(location["artifactLocation"]["uriBaseId"], "SRCROOT");
        let region = json!({ "startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 2 });
        assert_eq!(location["region"], region);
        assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "unknown-key");
    }

    #[test]
    fn archive_members_have_logical_locations() {
        for (file, member, uri, name) in [
            ("dist/a.whl", Some("a/b.so"), "dist/a.whl", Some("b.so")),
            ("dist/a.zip", Some("b.whl!c.so"), "dist/a.zip", Some("c.so")),
            ("./a.whl!b/c.so", None, "a.whl%21b/c.so", None),
            ("/tmp/a.so", None, "file:///tmp/a.so", None),
        ] {
            let origin = Origin {
                member: member.map(str::to_owned),
                ..Origin::new(file, 0..0)
            };
            let display = origin.display().into_owned();
            let run = first(
                &Diagnostic::error(&IO_ERROR, "x").with_location(origin),
                &Sources::new(),
            );
            let location = &run["results"][0]["locations"][0];
            assert_eq!(location["physicalLocation"]["artifactLocation"]["uri"], uri);
            assert_eq!(location["logicalLocations"][0]["name"].as_str(), name);
            let qualified = &location["logicalLocations"][0]["fullyQualifiedName"];
            assert_eq!(qualified.as_str(), name.map(|_| display.as_str()));
            assert!(location["physicalLocation"]["region"].is_null());
        }
    }

    #[test]
    fn every_result_finds_its_rule() {
        let mut run = Run::default();
        let base = Base::new(None, Path::new("/work"));
        for code in [&UNKNOWN_KEY, &IO_ERROR, &UNKNOWN_KEY] {
            run.add(&Diagnostic::error(code, "x"), &Sources::new(), &base);
        }
        let run = &run.document()["runs"][0];
        for result in run["results"].as_array().unwrap() {
            let index = result["ruleIndex"].as_u64().unwrap();
            let rule = &run["tool"]["driver"]["rules"][usize::try_from(index).unwrap()];
            assert_eq!(rule["id"], result["ruleId"]);
            let anchor = format!("#{}", rule["id"].as_str().unwrap());
            assert!(rule["helpUri"].as_str().unwrap().ends_with(&anchor));
        }
    }

    #[test]
    fn failures_are_notifications() {
        let mut run = Run::default();
        assert_eq!(
            run.document()["runs"][0]["invocations"][0]["executionSuccessful"],
            true
        );
        run.fail(&Error::new("no").help("yes"));
        let document = run.document();
        let invocation = &document["runs"][0]["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], false);
        let notification = &invocation["toolExecutionNotifications"][0];
        assert_eq!(notification["message"]["text"], "no\nhelp: yes");
    }
}
