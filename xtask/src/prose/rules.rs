//! The rules, and their application.

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::text::{Finding, Kind, Text};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Data {
    first_words: Vec<String>,
    identifier_words: Vec<String>,
    type_words: Vec<String>,
    prepositions: Vec<String>,
    toml_keys: Vec<String>,
    phrase: Vec<PhraseData>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhraseData {
    pattern: String,
    /// Longer phrase that is allowed where it begins like a forbidden one.
    unless: Option<String>,
    write: String,
}

/// The rules of `xtask/data/prose.toml`.
pub struct Rules {
    first_words: Regex,
    identifier_words: Vec<String>,
    type_words: Vec<String>,
    prepositions: Vec<String>,
    toml_keys: Vec<String>,
    phrases: Vec<Phrase>,
    code: Regex,
}

struct Phrase {
    pattern: Regex,
    unless: Option<Regex>,
    write: String,
}

/// Fewest words of a string that is prose.
const MIN_WORDS: usize = 2;

fn words(pattern: &str) -> Result<Regex, String> {
    // Not part of a name with hyphens, as of a file or an option.
    let pattern = format!(r"(?:^|[^\w\-/.])(?P<phrase>{pattern})(?:$|[^\w\-/.]|[.](?:\s|$))");
    let mut builder = RegexBuilder::new(&pattern);
    let built = builder.case_insensitive(true).build();
    built.map_err(|e| format!("{pattern}: {e}"))
}

impl Rules {
    pub fn read() -> Result<Self, String> {
        let data: Data = toml::from_str(include_str!("../../data/prose.toml"))
            .map_err(|e| format!("xtask/data/prose.toml: {e}"))?;
        let phrases = data.phrase.into_iter().map(|phrase| {
            let starts = |pattern: &String| words(pattern);
            Ok(Phrase {
                pattern: words(&phrase.pattern)?,
                unless: phrase.unless.as_ref().map(starts).transpose()?,
                write: phrase.write,
            })
        });
        let first = data.first_words.join("|").replace(' ', r"\s+");
        // Code spans, URLs, placeholders of formats, and escaped white space of string literals.
        let code = r"(?s)```.*?```|`[^`]*`|https?://\S+|\{[^{}]*\}|\\[nt]";
        Ok(Self {
            first_words: Regex::new(&format!(r"(?i)^(?:{first})\b(?:[^-'’]|$)"))
                .map_err(|e| e.to_string())?,
            identifier_words: data.identifier_words,
            type_words: data.type_words,
            prepositions: data.prepositions,
            toml_keys: data.toml_keys,
            phrases: phrases.collect::<Result<_, String>>()?,
            code: Regex::new(code).map_err(|e| e.to_string())?,
        })
    }

    /// Keys of TOML files whose strings are prose.
    pub fn toml_keys(&self) -> &[String] {
        &self.toml_keys
    }

    /// Findings in the texts of a file.
    pub fn check(&self, file: &str, texts: &[Text]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for text in texts {
            for (rule, excerpt) in self.violations(text) {
                findings.push(Finding {
                    file: file.to_owned(),
                    line: text.line,
                    rule,
                    text: excerpt,
                });
            }
        }
        findings
    }

    /// Rules that a text violates, with the words that do.
    fn violations(&self, text: &Text) -> Vec<(String, String)> {
        match text.kind {
            Kind::Comment => {
                let mut found = self.phrases(&text.text);
                if self.first_words.is_match(&text.text) {
                    let line = text.text.lines().next().unwrap_or_default();
                    found.push(("first word".into(), line.to_owned()));
                }
                found
            }
            Kind::Prose if text.text.split_whitespace().count() < MIN_WORDS => Vec::new(),
            Kind::Prose => self.phrases(&text.text),
            Kind::Name => self.names(&text.text, &self.identifier_words),
            Kind::TypeName => {
                let mut found = self.names(&text.text, &self.identifier_words);
                found.extend(self.names(&text.text, &self.type_words));
                found
            }
            Kind::FunctionName if self.prepositions.contains(&text.text) => {
                vec![("function named by a preposition".into(), text.text.clone())]
            }
            Kind::FunctionName => Vec::new(),
        }
    }

    fn phrases(&self, text: &str) -> Vec<(String, String)> {
        let text = self.code.replace_all(text, "`");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut found = Vec::new();
        for phrase in &self.phrases {
            let mut from = 0;
            while let Some(hit) = phrase.pattern.captures_at(&text, from) {
                let hit = hit.name("phrase").expect("a group of every pattern");
                // The words around it are borders of the next hit, too.
                from = hit.end();
                let allowed = phrase.unless.as_ref().is_some_and(|unless| {
                    unless
                        .captures_at(&text, hit.start().saturating_sub(1))
                        .and_then(|longer| longer.name("phrase"))
                        .is_some_and(|longer| longer.start() == hit.start())
                });
                if !allowed {
                    let rule = format!("`{}`: write {}", hit.as_str().to_lowercase(), phrase.write);
                    found.push((rule, excerpt(&text, hit.start(), hit.end())));
                }
            }
        }
        found
    }

    fn names(&self, name: &str, words: &[String]) -> Vec<(String, String)> {
        let parts = parts(name);
        let found = parts.iter().filter(|part| words.contains(part));
        found
            .map(|part| (format!("`{part}` in a name"), name.to_owned()))
            .collect()
    }
}

/// Words of an identifier, in lower case: split at `_` and where capitals begin.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        if c != '_' {
            parts
                .last_mut()
                .expect("one at least")
                .extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    parts
}

/// The words around a hit.
fn excerpt(text: &str, start: usize, end: usize) -> String {
    let floor = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(start.saturating_sub(40));
    let end = floor((end + 40).min(text.len()));
    text[start..end].to_owned()
}
