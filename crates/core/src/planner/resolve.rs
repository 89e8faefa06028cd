//! Data of the library that a stub table names: the shipped manifest with the changes of
//! `GpuStub.toml`, or a user-defined library.

use std::ops::Range;

use super::Planner;
use crate::diag::{
    Diagnostic, INVALID_VALUE, MISSING_KEY, MISSING_SYMBOL_LIST, RESERVED_SYMBOL, UNKNOWN_FUNCTION,
    UNKNOWN_LIBRARY, UNKNOWN_RESULT, has_errors, listing,
};
#[cfg(feature = "tools")]
use crate::imports::wrong_header;
use crate::library::{Library, Returns, Status, plain_load_names};
use crate::manifest::Stub;
use crate::plan::{PlannedLibrary, symbol_list_path};
use crate::reserved::{Owner, owner};
use crate::spanned::{Spanned, values};
use crate::suggest::nearest;
use crate::symbols::SymbolList;
use crate::text::join;

impl Planner<'_> {
    /// Returns `None` if the library cannot be planned, which has been reported.
    pub fn resolve(&mut self, stub: &Stub) -> Option<PlannedLibrary> {
        let custom = &stub.custom;
        let mut library = match Library::builtin(&stub.id.value) {
            Some(library) if custom.is_empty() => return Some(PlannedLibrary::Shipped(library)),
            Some(_) => Library::read_builtin(&stub.id.value)?,
            None if self.is_described(stub) => user_defined(&stub.id.value),
            None => return None,
        };
        if let Some(path) = &custom.symbols {
            library.symbols = self.read_symbols(stub, path)?;
        }
        if let Some(returns) = &custom.returns {
            self.set_default_result(stub, returns, &mut library.symbols);
        }
        if !custom.load_names.is_empty() {
            library.load_names = plain_load_names(&custom.load_names);
        }
        if !custom.link_names.is_empty() {
            library.link_names = values(&custom.link_names);
        }
        if let Some(status) = custom.status {
            library.status = status;
            // "Every function, whatever the reason": removes the manifest's exceptions.
            library
                .fallbacks
                .values_mut()
                .for_each(|fallback| fallback.status_if_missing = None);
        }
        if let Some(string) = &custom.status_string {
            library.status_string.clone_from(string);
        }
        for (name, outs) in &custom.zero_out {
            match library.symbols.lookup(name) {
                [] => self.add(unknown_function(stub, &library.symbols, name), &outs.span),
                [symbol, ..] if symbol.kind.is_data() => {
                    let message = format!("`{name}` of `{}` is data", stub.id.value);
                    let error = Diagnostic::error(&UNKNOWN_FUNCTION, message)
                        .help("remove it: only functions have arguments to write to");
                    self.add(error, &outs.span);
                }
                _ => {}
            }
            library
                .fallbacks
                .get_or_default(name)
                .outs
                .clone_from(&outs.value);
        }
        Some(PlannedLibrary::Declared(Box::new(library)))
    }

    /// Sets the result of the functions without `returns=`.
    fn set_default_result(
        &mut self,
        stub: &Stub,
        returns: &Spanned<Returns>,
        list: &mut SymbolList,
    ) {
        let id = &stub.id.value;
        if Library::index(id).is_some() {
            let message = format!("`stub.{id}.fallback.returns` is for user-defined libraries");
            let help = format!("remove it: gpustub knows the result of each function of `{id}`");
            let error = Diagnostic::error(&INVALID_VALUE, message).help(help);
            return self.add(error, &returns.span);
        }
        for symbol in &mut list.symbols {
            if !symbol.kind.is_data() {
                symbol.returns.get_or_insert_with(|| returns.value.clone());
            }
        }
    }

    /// Refuses functions of a user-defined library whose result without it is unknown: callers take 0 for success, and
    /// a status in place of a pointer would be dereferenced.
    pub fn check_results(&mut self, stub: &Stub, list: &SymbolList) {
        let (id, os) = (&stub.id.value, &self.target.os);
        let Some(path) = stub
            .custom
            .symbols
            .as_ref()
            .filter(|_| Library::index(id).is_none())
        else {
            return;
        };
        let mut unknown = Vec::new();
        for symbol in list.functions_on(os) {
            if symbol.returns.is_none() && !symbol.is_weak_cxx() {
                unknown.push(symbol.name.as_str());
            }
        }
        let [first, ..] = unknown[..] else { return };
        let text = self.inputs.symbol_files.get(&path.value);
        let span = text.map_or(0..0, |text| span_of(text, first));
        let message = format!(
            "functions of `{id}` without `returns=` ({}): {}",
            unknown.len(),
            listing(&unknown)
        );
        let help = format!(
            "read the results with `cargo gpustub add {id} --from FILE --headers HEADER`, or add `returns=` to these \
             lines; if all of them return a status, add to `[stub.{id}]`: fallback = {{ returns = \"status\" }}"
        );
        let error = Diagnostic::error(&UNKNOWN_RESULT, message)
            .label("without the library 0 would mean success to many callers")
            .with_origin(symbol_list_path(&self.manifest.file, &path.value), span)
            .help(help);
        self.diagnostics.push(error);
    }

    /// Whether the table fully describes a library that is not shipped.
    fn is_described(&mut self, stub: &Stub) -> bool {
        let id = &stub.id.value;
        let example = match (
            stub.custom.load_names.is_empty(),
            stub.custom.symbols.is_none(),
        ) {
            (false, false) => return true,
            (true, true) => {
                let message = format!("unknown library `{id}`");
                let help = match nearest(id, Library::builtin_ids()) {
                    Some(shipped) => format!("did you mean `{shipped}`?"),
                    None => format!(
                        "known libraries are {}; for another one run `cargo gpustub add {id} --from path/to/the/library`",
                        join(&Library::builtin_ids().collect::<Vec<_>>(), ", ")
                    ),
                };
                self.add(
                    Diagnostic::error(&UNKNOWN_LIBRARY, message).help(help),
                    &stub.id.span,
                );
                return false;
            }
            (true, false) => format!("load-names = {{ linux = [\"lib{id}.so.1\"] }}"),
            (false, true) => format!("symbols = \"symbols/{id}.symbols\""),
        };
        let key = example.split(' ').next().unwrap_or_default();
        let message = format!("user-defined library `{id}` has no `{key}`");
        let help = format!("add a line such as {example}");
        self.add(
            Diagnostic::error(&MISSING_KEY, message).help(help),
            &stub.id.span,
        );
        false
    }

    fn read_symbols(&mut self, stub: &Stub, path: &Spanned<String>) -> Option<SymbolList> {
        let Some(text) = self.inputs.symbol_files.get(&path.value) else {
            let id = &stub.id.value;
            let error = Diagnostic::error(
                &MISSING_SYMBOL_LIST,
                format!("symbol list `{}` does not exist", path.value),
            )
            .help(format!(
                "write it with `cargo gpustub add {id} --from path/to/the/library`"
            ));
            self.add(error, &path.span);
            return None;
        };
        let (list, diagnostics) =
            SymbolList::parse(&symbol_list_path(&self.manifest.file, &path.value), text);
        let is_broken = has_errors(&diagnostics);
        self.diagnostics.extend(diagnostics);
        if is_broken {
            return None;
        }
        self.check_reserved(stub, path, text, &list);
        Some(list)
    }

    /// Refuses the names in a list that a stub would take from the program itself.
    fn check_reserved(
        &mut self,
        stub: &Stub,
        path: &Spanned<String>,
        text: &str,
        list: &SymbolList,
    ) {
        let id = &stub.id.value;
        let allowed = &stub.custom.allowed_symbols;
        let (mut of_runtime, mut of_image) = (Vec::new(), Vec::new());
        let copied = list.symbols.iter().filter(|symbol| symbol.is_copied());
        for symbol in list.functions().chain(copied) {
            // The list's weak C++ symbols get no stub.
            if symbol.is_weak_cxx() {
                continue;
            }
            match owner(&symbol.name) {
                Some(Owner::Runtime) if allowed.iter().all(|name| name.value != symbol.name) => {
                    of_runtime.push(symbol.name.as_str());
                }
                Some(Owner::Image) => of_image.push(symbol.name.as_str()),
                _ => {}
            }
        }
        let file = symbol_list_path(&self.manifest.file, &path.value);
        if let [first, ..] = of_runtime[..] {
            let message = format!(
                "the symbol list of `{id}` has names of the C and C++ run time: {}",
                listing(&of_runtime)
            );
            let help = format!(
                "remove these lines, as `cargo gpustub add {id} --from FILE` does; if the program means \
                 those of the library, add `allowed-symbols = [{first:?}]` to `[stub.{id}]`"
            );
            self.diagnostics.push(
                Diagnostic::error(&RESERVED_SYMBOL, message)
                    .label("the program's own calls and data would be the library's")
                    .with_origin(&file, span_of(text, first))
                    .help(help),
            );
        }
        if let [first, ..] = of_image[..] {
            let message = format!(
                "the symbol list of `{id}` has names that each program defines itself: {}",
                listing(&of_image)
            );
            self.diagnostics.push(
                Diagnostic::error(&RESERVED_SYMBOL, message)
                    .label("the stub would not link")
                    .with_origin(&file, span_of(text, first))
                    .help("remove these lines: no other definition can have these names"),
            );
        }
        for name in allowed {
            if list.lookup(&name.value).is_empty() {
                let error = unknown_function(stub, list, &name.value);
                self.add(error, &name.span);
            }
        }
    }

    /// Warns of a required function that the declared headers do not have.
    #[cfg(feature = "tools")]
    fn check_header(&mut self, stub: &Stub, library: &Library, name: &Spanned<String>) {
        let Some(header) = stub.header_version() else {
            return;
        };
        if let Some(only) = library.only_in(&name.value, header) {
            let warning = wrong_header(&library.id, header, &[(only, vec![&name.value])]);
            self.add(warning, &name.span);
        }
    }

    /// The names of a `required-functions` list, each of which the library must know.
    pub fn required(&mut self, stub: &Stub, library: &Library) -> Vec<String> {
        let mut required = Vec::new();
        for name in &stub.required_functions {
            let is_callable = library
                .symbols
                .lookup(&name.value)
                .iter()
                .any(|symbol| !symbol.kind.is_data() && symbol.is_on(&self.target.os));
            if is_callable {
                required.push(name.value.clone());
                #[cfg(feature = "tools")]
                self.check_header(stub, library, name);
                continue;
            }
            let mut message = format!("`{}` has no function `{}`", stub.id.value, name.value);
            let mut help = library.symbols.did_you_mean(&name.value);
            if let [symbol, ..] = library.symbols.lookup(&name.value) {
                if let Some(system) = symbol.system {
                    message += &format!(" on {}", self.target.os);
                    help = Some(format!(
                        "only {system} has it: limit the table by `targets`"
                    ));
                }
            }
            let mut error = Diagnostic::error(&UNKNOWN_FUNCTION, message);
            error.help = help;
            self.add(error, &name.span);
        }
        required
    }
}

/// Error about a name of the stub table that the library's list does not have.
fn unknown_function(stub: &Stub, list: &SymbolList, name: &str) -> Diagnostic {
    let message = format!("`{name}` is not in the symbol list of `{}`", stub.id.value);
    let mut error = Diagnostic::error(&UNKNOWN_FUNCTION, message);
    error.help = list.did_you_mean(name);
    error
}

/// Byte range of a name at the start of a line.
fn span_of(text: &str, name: &str) -> Range<usize> {
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        if line.split_whitespace().next() == Some(name) {
            let start = line_start + line.find(name).unwrap_or(0);
            return start..start + name.len();
        }
        line_start += line.len();
    }
    0..0
}

/// A library that is described by its stub table only.
fn user_defined(id: &str) -> Library {
    Library {
        id: id.to_owned(),
        title: id.to_owned(),
        link_names: vec![id.to_owned()],
        has_32_bit: true,
        // No library's success: 0 would claim that the call was made.
        status: Status::all(-1),
        status_string: format!("{id} is not available; GPUSTUB_LOG=1 shows why"),
        ..Library::default()
    }
}
