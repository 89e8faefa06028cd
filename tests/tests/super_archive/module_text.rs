//! Text of a module's definitions without the numbers and names that depend on the rest of the module.

use std::collections::{BTreeMap, HashMap};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use regex::Regex;

/// Definitions of a module.
pub struct ModuleText {
    /// Texts by names.
    definitions: BTreeMap<String, String>,
}

/// Depth to which metadata, types and private definitions are compared.
const DEPTH: usize = 4;

impl ModuleText {
    /// Reads what `opt` prints of a module, which it verifies.
    pub fn read(module: &str, release: &str) -> Result<Self> {
        let mut opt = Command::new(format!("opt-{release}"));
        let ran = succeed(opt.args(["-S", "-passes=verify", module, "-o", "-"]))?;
        Ok(Self::parse(&ran.stdout))
    }

    fn parse(text: &str) -> Self {
        let processor = Regex::new(r#" "(target-cpu|target-features|tune-cpu)"="[^"]*""#);
        // A member lists its own variables, and linkers see each member's unit.
        let variables = Regex::new(r"globals: !\d+, ");
        let mut module = Self {
            definitions: BTreeMap::new(),
        };
        // What names with a number, of types and of private definitions stand for.
        let mut meanings: HashMap<String, String> = HashMap::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = if rest.starts_with("define ") {
                "\n}\n"
            } else {
                "\n"
            };
            let (part, after) = rest.split_once(end).unwrap_or((rest, ""));
            rest = after;
            // LLVM's LTO makes definitions that others refer to weak_odr as well.
            let part = part.replacen("linkonce_odr ", "weak_odr ", 1);
            if let Some(group) = part.strip_prefix("attributes ") {
                let group = processor
                    .as_ref()
                    .map_or(group.into(), |name| name.replace_all(group, ""));
                if let Some((name, attributes)) = group.split_once(" = ") {
                    let attributes = attributes.replace("{ }", "");
                    meanings.insert(name.to_owned(), attributes);
                }
            } else if part.starts_with("define ") {
                let name = part.split_once('@').unwrap_or_default().1;
                let name = name.split('(').next().unwrap_or_default();
                let body = part
                    .lines()
                    .map(|line| line.split(" ; ").next().unwrap_or_default());
                let body = Vec::from_iter(
                    body.map(|line| line.split("; preds").next().unwrap_or_default().trim_end()),
                );
                module.definitions.insert(name.to_owned(), body.join("\n"));
            } else if let Some((name, meaning)) = part.split_once(" = ") {
                let meaning = variables
                    .as_ref()
                    .map_or(meaning.into(), |list| list.replace(meaning, ""));
                let is_local = ["private ", "internal "]
                    .iter()
                    .any(|word| meaning.starts_with(word));
                if name.starts_with('@') && !is_local {
                    module
                        .definitions
                        .insert(name[1..].to_owned(), meaning.into_owned());
                } else if name.starts_with(['@', '!', '%']) {
                    let meaning = meaning.trim_start_matches("type ").to_owned();
                    meanings.insert(name.to_owned(), meaning);
                }
            }
        }
        let names = meanings.keys();
        let mut expanded: HashMap<String, String> =
            names.map(|name| (name.clone(), "<>".to_owned())).collect();
        for _ in 0..DEPTH {
            let meanings = meanings.iter();
            let expand = |(name, text): (&String, &String)| {
                (name.clone(), format!("<{}>", expand(text, &expanded)))
            };
            expanded = meanings.map(expand).collect();
        }
        for text in module.definitions.values_mut() {
            *text = expand(text, &expanded);
        }
        module
    }

    /// Text of a definition.
    pub fn definition(&self, name: &str) -> Option<&str> {
        self.definitions.get(name).map(String::as_str)
    }

    /// Names of definitions that differ from those of another module, or are missing there.
    pub fn differences<'s>(&'s self, other: &Self) -> Vec<&'s str> {
        let differs = |name: &&str| self.definition(name) != other.definition(name);
        let names = self.definitions.keys().map(String::as_str);
        names.filter(differs).collect()
    }
}

/// A text with what its names stand for.
fn expand(text: &str, meanings: &HashMap<String, String>) -> String {
    let (mut rest, mut out) = (text, String::new());
    while let Some(position) = rest.find(['#', '!', '%', '@', '"']) {
        out.push_str(&rest[..position]);
        rest = &rest[position..];
        let is_in_name = |letter: char| letter.is_ascii_alphanumeric() || "._-$".contains(letter);
        let length = match rest.strip_prefix('"') {
            Some(string) => string.find('"').map_or(rest.len(), |length| length + 2),
            None => {
                1 + rest[1..]
                    .find(|letter| !is_in_name(letter))
                    .unwrap_or(rest.len() - 1)
            }
        };
        let (name, after) = rest.split_at(length);
        rest = after;
        out.push_str(meanings.get(name).map_or(name, String::as_str));
    }
    out.push_str(rest);
    out
}
