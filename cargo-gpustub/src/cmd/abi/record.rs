//! Facts about a function: the rows of `cargo gpustub abi`.

use gpustub_core::library::{Library, Out, OutKind, Returns};
use gpustub_core::symbols::Symbol;
use gpustub_core::version::Version;
use gpustub_workspace::report::json::FORMAT_VERSION;
use serde_json::{Value, json};

use super::prototypes::{Prototype, Prototypes};
use crate::shipped::abi_difference;

/// A library with the texts that its tables are made from.
pub struct Source {
    /// The library.
    pub library: &'static Library,
    /// Its prototypes.
    pub prototypes: Prototypes,
}

/// A change of a function's ABI, or of whether it is exported.
pub struct Change {
    /// First release.
    pub since: Version,
    /// Number of the variant in its group; `None`: the function is not exported, or not as headers declare it.
    pub variant: Option<u32>,
    /// Whether the function is exported.
    pub is_exported: bool,
    /// Difference from the variant before, if headers show one.
    pub difference: Option<&'static str>,
}

/// A name in sources that means the function, and the releases whose headers define it so.
pub struct Meaning {
    /// The name.
    pub source: &'static str,
    /// First release.
    pub since: &'static str,
    /// First release with another meaning.
    pub below: Option<&'static str>,
}

/// A function of a library.
pub struct Record<'s> {
    /// The library.
    pub source: &'s Source,
    /// Symbols of the name: several if they have symbol versions.
    pub symbols: Vec<&'static Symbol>,
    /// The name.
    pub name: &'static str,
}

impl Source {
    /// All that is known about a library.
    pub fn of(library: &'static Library) -> Self {
        Self {
            library,
            prototypes: Prototypes::of(&library.id),
        }
    }

    /// All functions of the library, sorted by name.
    pub fn records(&self) -> Vec<Record<'_>> {
        let mut records: Vec<Record<'_>> = Vec::new();
        let symbols = self.library.symbols.symbols.iter();
        for symbol in symbols.filter(|symbol| !symbol.kind.is_data()) {
            match records.last_mut() {
                Some(record) if record.name == symbol.name => record.symbols.push(symbol),
                _ => records.push(Record {
                    source: self,
                    symbols: vec![symbol],
                    name: &symbol.name,
                }),
            }
        }
        records
    }
}

impl Record<'_> {
    /// Whether a release has the function.
    fn is_in(&self, release: Version) -> bool {
        self.symbols.iter().any(|symbol| symbol.is_in(release))
    }

    /// Releases that have the function, as inclusive ranges; the end of the last is `None` if the newest has it.
    pub fn releases(&self) -> Vec<(Version, Option<Version>)> {
        let releases = &self.source.library.symbols.releases;
        releases
            .chunk_by(|a, b| self.is_in(*a) == self.is_in(*b))
            .filter(|run| self.is_in(run[0]))
            .map(|run| {
                let until = run.last().copied();
                (run[0], until.filter(|_| until != releases.last().copied()))
            })
            .collect()
    }

    /// Release that was read before this one, if it lacks the function and releases between the two were not read.
    pub fn lacking_before(&self, since: Version) -> Option<Version> {
        let all = &self.source.library.symbols.releases;
        let before = *all.iter().rev().find(|release| **release < since)?;
        let is_next = if before.major == since.major {
            since.minor == before.minor + 1
        } else {
            since.major == before.major + 1 && since.minor == 0
        };
        let has_function = |range: &(Version, Option<Version>)| {
            range.0 <= before && range.1.is_none_or(|until| before <= until)
        };
        (!is_next && !self.releases().iter().any(has_function)).then_some(before)
    }

    /// ABI variants by release; empty: one in all releases.
    pub fn changes(&self) -> Vec<Change> {
        self.source
            .library
            .abi
            .variants(self.name)
            .into_iter()
            .map(|(since, variant)| Change {
                since,
                variant,
                is_exported: self.is_in(since),
                difference: abi_difference(self.source.library, self.name, since),
            })
            .collect()
    }

    /// Prototypes by release.
    pub fn prototypes(&self) -> Vec<Prototype> {
        self.source.prototypes.get(self.name)
    }

    /// Other names that mean this function in sources.
    pub fn meanings(&self) -> Vec<Meaning> {
        let mut meanings = Vec::new();
        for name in &self.source.prototypes.macros {
            for (index, (since, function)) in name.functions.iter().enumerate() {
                if *function == self.name && name.source != self.name {
                    meanings.push(Meaning {
                        source: name.source,
                        since,
                        below: name.functions.get(index + 1).map(|(release, _)| *release),
                    });
                }
            }
        }
        meanings
    }

    /// Result where the library or the function is missing.
    pub fn returns(&self) -> Returns {
        let fallback = self.source.library.fallbacks.get(self.name);
        fallback.map_or(Returns::Status, |fallback| fallback.returns.clone())
    }

    /// Status code where the library is missing.
    pub fn library_missing(&self) -> i32 {
        let library = self.source.library;
        let fallback = library.fallbacks.get(self.name);
        fallback
            .and_then(|fallback| fallback.status_if_missing)
            .unwrap_or(library.status.library_missing)
    }

    /// Out-parameters that stubs write then.
    pub fn outs(&self) -> &'static [Out] {
        let fallback = self.source.library.fallbacks.get(self.name);
        fallback.map_or(&[], |fallback| &fallback.outs)
    }

    /// The function as JSON. `docs/abi.md` documents the keys, `docs/abi.schema.json` has their schema.
    pub fn json(&self) -> Value {
        let library = self.source.library;
        let status = &library.status;
        let releases: Vec<Value> = self
            .releases()
            .iter()
            .map(|(since, until)| {
                json!({
                    "since": since.to_string(),
                    "until": until.map(|until| until.to_string()),
                    "lacking": self.lacking_before(*since).map(|release| release.to_string()),
                })
            })
            .collect();
        let variants: Vec<Value> = self
            .changes()
            .iter()
            .map(|change| {
                json!({
                    "since": change.since.to_string(),
                    "variant": change.variant,
                    "difference": change.difference,
                })
            })
            .collect();
        let prototypes: Vec<Value> = self
            .prototypes()
            .iter()
            .map(|prototype| json!({ "since": prototype.since, "text": prototype.text }))
            .collect();
        let sources: Vec<Value> = self
            .meanings()
            .iter()
            .map(|meaning| {
                json!({ "name": meaning.source, "since": meaning.since, "below": meaning.below })
            })
            .collect();
        let outs: Vec<Value> = self
            .outs()
            .iter()
            .map(|out| {
                let (writes, size) = written(out.kind);
                json!({ "argument": out.position, "writes": writes, "size": size })
            })
            .collect();
        let symbol_versions: Vec<&str> = self
            .symbols
            .iter()
            .filter_map(|symbol| symbol.version.as_deref())
            .collect();
        json!({
            "format_version": FORMAT_VERSION,
            "library": library.id,
            "name": self.name,
            "system": self.symbols.iter().find_map(|symbol| symbol.system),
            "symbol_versions": symbol_versions,
            "releases": releases,
            "variants": variants,
            "prototypes": prototypes,
            "sources": sources,
            "returns": returns(&self.returns()),
            "status": matches!(self.returns(), Returns::Status).then(|| json!({
                "library_missing": self.library_missing(),
                "missing": status.missing,
                "refused": status.refused,
                "unloading": status.unloading,
            })),
            "outs": outs,
        })
    }
}

/// Kind of the value that a stub writes through a pointer, and its bytes; `None`: those of a pointer.
pub fn written(kind: OutKind) -> (&'static str, Option<u32>) {
    match kind {
        OutKind::Zero(0) => ("zero", None),
        OutKind::Zero(size) => ("zero", Some(size)),
        OutKind::Status => ("status", Some(4)),
        OutKind::String => ("string", None),
        OutKind::ErrorName => ("error-name", None),
        OutKind::ErrorString => ("error-string", None),
    }
}

/// Class of a result.
pub fn returns(returns: &Returns) -> String {
    match returns {
        Returns::ErrorName => "error-name".into(),
        Returns::ErrorString => "error-string".into(),
        Returns::UnknownError(code) => format!("unknown-error:{code}"),
        other => other.to_string(),
    }
}
