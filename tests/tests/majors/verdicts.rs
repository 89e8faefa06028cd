//! Bindings of imported functions in a release of their library, by ABI tables and symbol lists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use gpustub_core::abi_table::Adapter;
use gpustub_core::library::Library;
use gpustub_core::version::Version;
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Stubs, plan_shipped};
use regex::Regex;

use crate::programs::Imports;

/// Binding of a function. Ordered as the page names them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Bound as it is.
    Own,
    /// Bound under another name with the same ABI, or meaning.
    Other(String),
    /// Called by an adapter.
    Adapted,
    /// Called by an adapter that refuses other calls than these.
    Limited(String),
    /// Not in this release, and answered by the stubs: start-up code of compilers calls it.
    Answered,
    /// Refused because of its ABI, with the reason if there is one.
    Refused(Option<String>),
    /// Not in this release, whose functions with that meaning have another name or ABI.
    Changed,
    /// Not in this release.
    Missing,
}

impl Verdict {
    /// Whether a call fails because the meaning of a name changed.
    pub fn is_change(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Changed)
    }

    /// Whether no call reaches the library.
    pub fn is_lacking(&self) -> bool {
        self.is_change() || matches!(self, Self::Missing | Self::Answered)
    }
}

/// Calls that an adapter is limited to, by function and adapter.
pub type Limits = BTreeMap<(String, String), String>;

/// Limits of the adapters that a program may use, from their sources after the C preprocessor.
pub fn limits(imports: &Imports) -> Result<Limits> {
    let mut limits = Limits::new();
    let shipped = imports.shipped();
    let mut adapters = BTreeSet::new();
    for function in &imports.functions {
        for entry in shipped.abi.entries(function, imports.version()) {
            if let Some(Adapter::Code(code)) = entry.adapter {
                adapters.insert((function.clone(), code));
            }
        }
    }
    if adapters.is_empty() {
        return Ok(limits);
    }
    let dir = scratch()?;
    let sources = stubs(dir.path(), imports)?.sources;
    let mut cc = Command::new("cc");
    let text = succeed(
        cc.args(["-E", "-P", "-D_GNU_SOURCE", "adapters.c"])
            .current_dir(&sources),
    )?
    .stdout;
    let adapter =
        Regex::new(r#"gpustub1_adapter_(\w+) = \{[^}]*\.limit = ("[^"]*"|\(\(void \*\)0\))"#)?;
    let found: BTreeMap<&str, &str> = adapter
        .captures_iter(&text)
        .map(|captures| captures.extract())
        .map(|(_, [name, limit])| (name, limit))
        .collect();
    for (function, code) in adapters {
        let limit = found
            .get(&format!("{function}_{code}")[..])
            .ok_or_else(|| format!("no adapter {code} of {function}"))?;
        if let Some(limit) = limit.strip_prefix('"') {
            limits.insert((function, code), limit.trim_end_matches('"').to_owned());
        }
    }
    Ok(limits)
}

/// Stubs of what a program imports from a library.
pub fn stubs(dir: &Path, imports: &Imports) -> Result<Stubs> {
    let header = imports.header.as_deref().unwrap_or("none");
    let has = |name: &str| imports.functions.contains(name);
    let plan = plan_shipped(imports.shipped(), header, has)?;
    Stubs::write(dir, &plan, "cc", &[])
}

/// Whether a release of a library exports a function.
fn is_exported(library: &Library, name: &str, release: Version) -> bool {
    library.symbols.lookup(name).iter().any(|symbol| {
        let ranges = &symbol.releases;
        ranges.is_empty()
            || ranges
                .iter()
                .any(|(from, to)| (*from..=*to).contains(&release))
    })
}

/// Binding of a function that has no ABI entry in a release.
fn unchanged(library: &Library, function: &str, release: Version) -> Verdict {
    let exports = |name: &str| is_exported(library, name, release);
    if exports(function) {
        return Verdict::Own;
    }
    match library.fallback_symbols.get(function) {
        Some(name) if exports(name) => Verdict::Other(name.clone()),
        _ if library.hooks.get(function).is_some() => Verdict::Answered,
        _ if library.abi.depends_on_headers(function) => Verdict::Changed,
        _ => Verdict::Missing,
    }
}

/// Bindings of a program's functions in a release of their library.
pub fn verdicts(imports: &Imports, release: Version, limits: &Limits) -> BTreeMap<String, Verdict> {
    let library = imports.shipped();
    let code = i32::try_from(release.code()).expect("a version");
    let verdict = |function: &String| {
        let entries = library.abi.entries(function, imports.version());
        let mut entries = entries.into_iter();
        let entry = entries.find(|entry| (entry.from..entry.below).contains(&code));
        let Some(entry) = entry else {
            return unchanged(library, function, release);
        };
        let Some(name) = entry.name else {
            return Verdict::Refused(entry.reason);
        };
        if !is_exported(library, &name, release) {
            return Verdict::Changed;
        }
        match entry.adapter {
            Some(Adapter::Code(code)) => match limits.get(&(function.clone(), code)) {
                Some(limit) => Verdict::Limited(limit.clone()),
                None => Verdict::Adapted,
            },
            Some(Adapter::NullArgument(_)) => Verdict::Adapted,
            None if name == *function => Verdict::Own,
            None => Verdict::Other(name),
        }
    };
    let functions = imports.functions.iter();
    functions
        .map(|function| (function.clone(), verdict(function)))
        .collect()
}
