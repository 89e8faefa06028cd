//! Names that were replaced before the first release are nowhere in the tree: `old-names/*.toml`.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::process::Command;

use aho_corasick::AhoCorasick;
use gpustub_tests::command::succeed;
use gpustub_tests::{Result, repository};
use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    rename: Vec<Rename>,
}

/// A replaced name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rename {
    old: String,
    new: String,
    /// A regular expression that finds the old name, instead of `old` as a whole token.
    pattern: Option<String>,
    /// Beginnings of the paths in which it is searched; empty: all files.
    #[serde(default)]
    paths: Vec<String>,
}

/// The history, the records, and a file that cargo writes.
const EXCLUDED: [&str; 3] = ["CHANGELOG.md", "Cargo.lock", "tests/old-names/"];

/// Finds old names in one pass over a text.
struct Finder {
    renames: Vec<Rename>,
    tokens: AhoCorasick,
    /// The rename of each token.
    token_of: Vec<usize>,
    patterns: RegexSet,
    /// The rename of each pattern, with the pattern alone.
    pattern_of: Vec<PatternOf>,
}

struct PatternOf {
    rename: usize,
    regex: Regex,
}

/// An old name in a text.
struct Hit {
    rename: usize,
    offset: usize,
}

impl Finder {
    fn new(renames: Vec<Rename>) -> Result<Self> {
        let (mut tokens, mut token_of) = (Vec::new(), Vec::new());
        let (mut patterns, mut pattern_of) = (Vec::new(), Vec::new());
        for (rename, row) in renames.iter().enumerate() {
            if let Some(pattern) = &row.pattern {
                // Bytes: Unicode's classes are slow.
                let regex = RegexBuilder::new(pattern).unicode(false).build()?;
                patterns.push(pattern.clone());
                pattern_of.push(PatternOf { rename, regex });
            } else {
                tokens.push(row.old.clone());
                token_of.push(rename);
            }
        }
        Ok(Self {
            renames,
            tokens: AhoCorasick::new(tokens)?,
            token_of,
            patterns: RegexSetBuilder::new(patterns).unicode(false).build()?,
            pattern_of,
        })
    }

    fn find(&self, text: &[u8]) -> Vec<Hit> {
        let tokens = self.tokens.find_overlapping_iter(text);
        let tokens = tokens.filter(|found| is_token(text, found.range()));
        let mut hits: Vec<Hit> = tokens
            .map(|found| Hit {
                rename: self.token_of[found.pattern().as_usize()],
                offset: found.start(),
            })
            .collect();
        for index in self.patterns.matches(text) {
            let PatternOf { rename, regex } = &self.pattern_of[index];
            hits.extend(regex.find_iter(text).map(|found| Hit {
                rename: *rename,
                offset: found.start(),
            }));
        }
        hits
    }

    /// The hits in a file's text and in its path, as lines of a report.
    fn check(&self, path: &str, text: &[u8]) -> BTreeSet<String> {
        let in_text = self.find(text).into_iter().map(|hit| {
            let before = text[..hit.offset].iter();
            let line = before.filter(|byte| **byte == b'\n').count() + 1;
            (hit.rename, format!("{path}:{line}"))
        });
        let in_path = self.find(path.as_bytes()).into_iter();
        let in_path = in_path.filter(|hit| self.renames[hit.rename].pattern.is_none());
        in_text
            .chain(in_path.map(|hit| (hit.rename, path.to_owned())))
            .map(|(rename, location)| (&self.renames[rename], location))
            .filter(|(row, _)| {
                row.paths.is_empty() || row.paths.iter().any(|prefix| path.starts_with(prefix))
            })
            .map(|(row, location)| format!("{location}: `{}` is now `{}`", row.old, row.new))
            .collect()
    }
}

/// Whether no part of a longer name adjoins the range.
fn is_token(text: &[u8], range: Range<usize>) -> bool {
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !text[..range.start].last().is_some_and(in_name)
        && !text[range.end..].first().is_some_and(in_name)
}

#[test]
fn no_file_has_an_old_name() -> Result<()> {
    let mut renames = Vec::new();
    for entry in fs::read_dir(repository().join("tests/old-names"))? {
        let path = entry?.path();
        let record: Record = toml::from_str(&fs::read_to_string(&path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        renames.extend(record.rename);
    }
    assert!(renames.len() > 80, "{} renames", renames.len());
    let finder = Finder::new(renames)?;

    let mut command = Command::new("git");
    command.current_dir(repository()).args(["ls-files", "-z"]);
    let listed = succeed(&mut command)?.stdout;
    let paths = listed.split('\0').filter(|path| !path.is_empty());
    let paths = paths.filter(|path| EXCLUDED.iter().all(|prefix| !path.starts_with(prefix)));
    let mut hits = BTreeSet::new();
    for path in paths {
        let file = repository().join(path);
        // A symbolic link to a directory, or a file that is deleted but still in the index.
        if file.is_file() {
            hits.extend(finder.check(path, &fs::read(file)?));
        }
    }
    let report: Vec<String> = hits.into_iter().collect();
    assert!(
        report.is_empty(),
        "{} hits:\n{}",
        report.len(),
        report.join("\n")
    );
    Ok(())
}

#[test]
fn whole_tokens_patterns_and_file_names_are_found() -> Result<()> {
    let row = |old: &str, pattern: Option<&str>, paths: &[&str]| Rename {
        old: old.to_owned(),
        new: "x".to_owned(),
        pattern: pattern.map(str::to_owned),
        paths: paths.iter().map(ToString::to_string).collect(),
    };
    let finder = Finder::new(vec![
        row("--out", None, &[]),
        row("bite.c", None, &[]),
        row("header", Some(r"(?m)^header\s*="), &["docs"]),
    ])?;
    let find = |path: &str, text: &str| finder.check(path, text.as_bytes()).len();
    assert_eq!(find("a", "--out-dir x---out bite.cc inbite.c"), 0);
    assert_eq!(find("a", "f --out=x\n(bite.c)\nbite.c"), 3);
    assert_eq!(find("src/bite.c", ""), 1);
    assert_eq!(find("docs/a.md", "header = 1\n header = 2\nheader="), 2);
    assert_eq!(find("src/a.md", "header = 1"), 0);
    Ok(())
}
