//! Selects the symbols of a library that get a stub, with their behaviour when they cannot be called.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::OnceLock;

use gpustub_manifests::LIBRARIES;

use super::Planner;
use crate::by_name::ByName;
use crate::define_id;
use crate::diag::{
    DATA_SYMBOL, Diagnostic, INVALID_SYMBOL_NAME, LIMIT_EXCEEDED, Level, MALFORMED_SYMBOL_LIST,
    WEAK_SYMBOL, listing,
};
use crate::fields::SYSTEMS;
use crate::ids::{Id, IndexVec};
use crate::library::{Fallback, Hook, HookKind, Library, Returns};
use crate::manifest::Stub;
use crate::plan::{Function, Spec};
use crate::reserved::is_of_every_image;
use crate::symbols::{Symbol, SymbolKind};

/// Maximum number of specs: the generated tables hold 16-bit indexes.
const MAX_SPECS: usize = u16::MAX as usize;

/// Symbols that get no stub, by reason.
#[derive(Default)]
struct LeftOut<'a> {
    weak: Vec<&'a str>,
    data: Vec<&'a str>,
    /// Data with a copy on other systems.
    not_copied: Vec<&'a str>,
    thread_local: Vec<&'a str>,
    unspellable: Vec<&'a str>,
}

/// Whether an assembler accepts a name as a label: not a number, not a local label (`.L…`), no operator.
fn is_label(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(
            |byte| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | b'.'),
        )
}

define_id! {
    /// Number of a spec of a library; 0 is the plain status function.
    struct SpecId;
}

/// The distinct specs of a library.
struct Specs {
    list: IndexVec<SpecId, Spec>,
    /// The numbers of all but the first, in the order of their specs.
    sorted: Vec<SpecId>,
}

impl Specs {
    fn new() -> Self {
        Self {
            list: vec![Spec::default()].into(),
            sorted: Vec::new(),
        }
    }

    fn add(&mut self, spec: Spec) -> SpecId {
        let plain = SpecId::from_index(0);
        if spec == self.list[plain] {
            return plain;
        }
        let position = self
            .sorted
            .binary_search_by(|&number| self.list[number].cmp(&spec));
        match position {
            Ok(index) => self.sorted[index],
            Err(index) => {
                let id = self.list.push(spec);
                self.sorted.insert(index, id);
                id
            }
        }
    }
}

/// Looks up ascending names: one walk over both lists, instead of a search for each name.
struct Ascending<'a, T> {
    rest: &'a [(String, T)],
}

impl<'a, T> Ascending<'a, T> {
    fn new(values: &'a ByName<T>) -> Self {
        Self {
            rest: values.iter().as_slice(),
        }
    }

    /// `name` must be greater than the last one.
    fn get(&mut self, name: &str) -> Option<&'a T> {
        while let [(key, value), rest @ ..] = self.rest {
            match key.as_str().cmp(name) {
                Ordering::Less => self.rest = rest,
                Ordering::Equal => return Some(value),
                Ordering::Greater => return None,
            }
        }
        None
    }
}

/// Functions of a library's symbols, independent of the stub table.
struct Selection<'a> {
    specs: Vec<Spec>,
    /// Sorted by name.
    functions: Vec<Function>,
    left_out: LeftOut<'a>,
}

impl Selection<'static> {
    /// Selection of a shipped library: made once, since a workspace requests it in each of its packages.
    fn shipped(library: &'static Library, os: &str) -> &'static Self {
        type OfSystems = [OnceLock<Selection<'static>>; SYSTEMS.len()];
        static SELECTIONS: [OfSystems; LIBRARIES.len()] =
            [const { [const { OnceLock::new() }; SYSTEMS.len()] }; LIBRARIES.len()];
        let index = Library::index(&library.id).expect("a shipped library");
        // An unknown system has the functions that all have.
        let system = SYSTEMS.iter().position(|system| *system == os).unwrap_or(0);
        SELECTIONS[index][system].get_or_init(|| Selection::new(library, SYSTEMS[system]))
    }
}

impl<'a> Selection<'a> {
    fn new(library: &'a Library, os: &str) -> Self {
        let mut left_out = LeftOut::default();
        let mut specs = Specs::new();
        let mut fallbacks = Ascending::new(&library.fallbacks);
        let mut functions = Vec::new();
        for versions in library.symbols.symbols.chunk_by(|a, b| a.name == b.name) {
            if is_of_every_image(&versions[0].name) || !versions[0].is_on(os) {
                continue;
            }
            let Some(symbol) = stubbed(versions, os, &mut left_out) else {
                continue;
            };
            let name = symbol.name.as_str();
            let fallback = fallbacks.get(name).or_else(|| {
                // The per-thread default stream variants have the parameters of the plain ones.
                let stem = name.strip_suffix("_ptds").or(name.strip_suffix("_ptsz"))?;
                library.fallbacks.get(stem)
            });
            let in_abi_table = library.abi.contains(name);
            let update = Hook {
                kind: HookKind::Update,
                args: symbol.callback.map_or(0, |index| index + 1),
            };
            let hook = library
                .hooks
                .get(name)
                .copied()
                .or(symbol.updates.then_some(update));
            let fallback_symbol = library.fallback_symbols.get(name);
            // The linker binds new programs to the default version only; without one, dlsym fails
            // and the version must be named.
            let symbol_version = symbol.version.as_ref().filter(|_| symbol.compat);
            let returns = symbol.returns.as_ref();
            let number = match (
                fallback,
                returns,
                in_abi_table,
                hook,
                symbol_version,
                fallback_symbol,
                symbol.is_copied(),
            ) {
                (None, None, false, None, None, None, false) => SpecId::from_index(0),
                _ => specs.add(Spec {
                    fallback: with_returns(fallback, returns),
                    abi_name: in_abi_table.then(|| name.to_owned()),
                    hook,
                    data_size: if symbol.is_copied() {
                        u32::try_from(symbol.size).unwrap_or(0)
                    } else {
                        0
                    },
                    symbol_version: symbol_version.cloned(),
                    fallback_symbol: fallback_symbol.cloned(),
                }),
            };
            functions.push(Function {
                name: symbol.name.clone(),
                spec: u16::try_from(number.index()).unwrap_or(u16::MAX),
            });
        }
        Self {
            specs: specs.list.into_vec(),
            functions,
            left_out,
        }
    }
}

/// [`LibraryPlan::specs`](crate::plan::LibraryPlan::specs) and
/// [`LibraryPlan::functions`](crate::plan::LibraryPlan::functions).
type Selected = (Cow<'static, [Spec]>, Cow<'static, [Function]>);

impl Planner<'_> {
    /// Functions of a user-defined or changed library, and their specs.
    pub fn functions(&mut self, stub: &Stub, library: &Library) -> Selected {
        let selection = Selection::new(library, &self.target.os);
        self.check_selection(stub, &selection);
        (selection.specs.into(), selection.functions.into())
    }

    /// Functions of an unchanged shipped library, and their specs.
    pub fn shipped_functions(&mut self, stub: &Stub, library: &'static Library) -> Selected {
        let selection = Selection::shipped(library, &self.target.os);
        self.check_selection(stub, selection);
        (
            Cow::Borrowed(&selection.specs),
            Cow::Borrowed(&selection.functions),
        )
    }

    /// Reports errors in a selection.
    fn check_selection(&mut self, stub: &Stub, selection: &Selection<'_>) {
        let Selection {
            specs,
            functions,
            left_out,
        } = selection;
        let id = &stub.id.value;
        self.report(stub, left_out);
        let outs: usize = specs.iter().map(|spec| spec.fallback.outs.len()).sum();
        if specs.len().max(outs) > MAX_SPECS {
            let message = format!("the functions of `{id}` differ in more than {MAX_SPECS} ways");
            self.add(Diagnostic::error(&LIMIT_EXCEEDED, message), &stub.id.span);
        }
        if functions.is_empty() && left_out.data.is_empty() && left_out.thread_local.is_empty() {
            let message = format!("the symbol list of `{id}` has no function to stub");
            self.add(
                Diagnostic::error(&MALFORMED_SYMBOL_LIST, message),
                list_span(stub),
            );
        }
    }

    /// Reports all symbols that get no stub.
    fn report(&mut self, stub: &Stub, left_out: &LeftOut<'_>) {
        let id = &stub.id.value;
        let span = list_span(stub);
        // Users can fix a list that they gave, but not a shipped one.
        let level = if stub.custom.symbols.is_some() {
            Level::Error
        } else {
            Level::Note
        };
        let LeftOut {
            weak,
            data,
            not_copied,
            thread_local,
            unspellable,
        } = left_out;
        if !weak.is_empty() {
            let message = format!(
                "{} weak C++ symbols of `{id}` get no stub: {}",
                weak.len(),
                listing(weak)
            );
            self.add(Diagnostic::note(&WEAK_SYMBOL, message), span);
        }
        const COPIES: &str = "a stub is a function, or a copy of data that the program only reads: add `copied` to the \
                              lines of such data, and remove those of other data";
        const NO_COPIES: &str = "thread-local data requires linking the library: remove these lines if the program \
                                 does not use it";
        for (kind, names, help) in [
            ("data", data, COPIES),
            ("thread-local data", thread_local, NO_COPIES),
        ] {
            if !names.is_empty() {
                let message = format!("`{id}` has {kind} in its list: {}", listing(names));
                let diagnostic = Diagnostic {
                    level,
                    ..Diagnostic::error(&DATA_SYMBOL, message)
                };
                self.add(diagnostic.help(help), span);
            }
        }
        if !not_copied.is_empty() {
            let os = &self.target.os;
            let message = format!(
                "stubs for {os} have no copy of data of `{id}`: {}",
                listing(not_copied)
            );
            let help = if stub.custom.symbols.is_some() {
                "stubs have copies on Linux and FreeBSD: add `system=linux` to these lines"
            } else {
                "stubs have copies on Linux and FreeBSD: a program that reads these here links the library itself"
            };
            let diagnostic = Diagnostic {
                level,
                ..Diagnostic::error(&DATA_SYMBOL, message)
            };
            self.add(diagnostic.help(help), span);
        }
        if !unspellable.is_empty() {
            let message = format!(
                "`{id}` has names that are not assembler labels: {}",
                listing(unspellable).escape_debug()
            );
            let help = "a label has letters, digits, `_`, `$` and `.`: remove these lines";
            let diagnostic = Diagnostic {
                level,
                ..Diagnostic::error(&INVALID_SYMBOL_NAME, message)
            };
            self.add(diagnostic.help(help), span);
        }
    }
}

/// Location of a stub's symbol list in `GpuStub.toml`; of a shipped list, that of the stub.
fn list_span(stub: &Stub) -> &Range<usize> {
    match &stub.custom.symbols {
        Some(path) => &path.span,
        None => &stub.id.span,
    }
}

/// Fall-back of the manifest, with the class of the symbol list.
fn with_returns(fallback: Option<&Fallback>, returns: Option<&Returns>) -> Fallback {
    let mut fallback = fallback.cloned().unwrap_or_default();
    if let Some(returns) = returns {
        fallback.returns = returns.clone();
    }
    fallback
}

/// Systems on which a stub may be a copy of data. Programs for Windows read data of a DLL through a pointer in its import
/// library.
const SYSTEMS_WITH_COPIES: [&str; 2] = ["linux", "freebsd"];

/// Of the versions of a symbol, the one that gets a stub.
fn stubbed<'a>(versions: &'a [Symbol], os: &str, left_out: &mut LeftOut<'a>) -> Option<&'a Symbol> {
    let symbol = versions
        .iter()
        .max_by_key(|symbol| (!symbol.kind.is_data(), !symbol.compat))?;
    // The program has its own copy of an inline function (or of its vtable), and a stub would
    // replace that one: lazy-loading must not redirect the program's own calls.
    let reason = if symbol.is_weak_cxx() {
        &mut left_out.weak
    } else if symbol.is_copied() && !SYSTEMS_WITH_COPIES.contains(&os) {
        &mut left_out.not_copied
    } else if symbol.kind == SymbolKind::Object && !symbol.copied {
        &mut left_out.data
    } else if symbol.kind == SymbolKind::Tls {
        &mut left_out.thread_local
    } else if !is_label(&symbol.name) {
        &mut left_out.unspellable
    } else {
        return Some(symbol);
    };
    reason.push(&symbol.name);
    None
}

#[cfg(test)]
mod tests {
    use crate::library::{Hook, HookKind};
    use crate::manifest::Manifest;
    use crate::plan::Inputs;
    use crate::planner::plan;
    use crate::target::Target;

    /// A copy of data is a stub on systems with ELF files; elsewhere the line is an error that names the system.
    #[test]
    fn data_is_copied_where_a_program_has_its_address() {
        let symbols = "@gpustub-symbols 1\nacmeInit updates callback=1 returns=status\nacmeTable kind=object size=40 copied\n";
        let inputs = Inputs {
            symbol_files: [("acme.symbols".to_owned(), symbols.to_owned())]
                .into_iter()
                .collect(),
            ..Inputs::default()
        };
        let body = "schema = 1\n[stub.acme]\nsymbols = \"acme.symbols\"\nload-names = { linux = ['libacme.so.1'], windows = ['acme.dll'] }\n";
        let (manifest, _) = Manifest::parse("GpuStub.toml", body);
        let linux = Target::from_triple("x86_64-unknown-linux-gnu").unwrap();
        let (planned, diagnostics) = plan(&manifest, &linux, &inputs);
        assert_eq!(diagnostics, []);
        let acme = &planned.libraries[0];
        let specs = (acme.functions.iter())
            .map(|function| &acme.specs[usize::from(function.spec)])
            .map(|spec| (spec.data_size, spec.hook));
        let update = Hook {
            kind: HookKind::Update,
            args: 2,
        };
        assert!(specs.eq([(0, Some(update)), (40, None)]));
        let windows = Target::from_triple("x86_64-pc-windows-gnu").unwrap();
        let (_, diagnostics) = plan(&manifest, &windows, &inputs);
        let messages: Vec<_> = diagnostics.iter().map(|error| &error.message[..]).collect();
        assert!(
            messages.contains(&"stubs for windows have no copy of data of `acme`: acmeTable"),
            "{messages:?}"
        );
    }
}
