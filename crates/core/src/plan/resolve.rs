//! Data of the library that a stub table names: the shipped manifest with the changes of
//! `GpuStub.toml`, or a user-defined library.

use std::borrow::Cow;

use super::planner::Planner;
use super::symbol_list_path;
use crate::diag::{
    Diagnostic, MISSING_KEY, MISSING_SYMBOL_LIST, UNKNOWN_FUNCTION, UNKNOWN_LIBRARY, has_errors,
};
#[cfg(feature = "tools")]
use crate::imports::wrong_header;
use crate::library::{Library, Role, StatusCodes, plain_load_names};
use crate::manifest::Stub;
use crate::spanned::{Spanned, values};
use crate::suggest::nearest;
use crate::symbols::SymbolList;
use crate::text::join;

impl Planner<'_> {
    /// Returns `None` if the library cannot be planned, which has been reported.
    pub fn resolve(&mut self, stub: &Stub) -> Option<Cow<'static, Library>> {
        let custom = &stub.custom;
        let mut library = match Library::builtin(&stub.id.value) {
            Some(library) if custom.is_empty() => return Some(Cow::Borrowed(library)),
            Some(_) => Library::read_builtin(&stub.id.value)?,
            None if self.describes_own(stub) => own(&stub.id.value),
            None => return None,
        };
        if let Some(path) = &custom.symbols {
            library.symbols = self.read_symbols(stub, path)?;
        }
        if !custom.load_names.is_empty() {
            library.load_names = plain_load_names(&custom.load_names);
        }
        if !custom.link_names.is_empty() {
            library.link_names = values(&custom.link_names);
        }
        if let Some(codes) = custom.codes {
            library.codes = codes;
            // "Every function, whatever the reason": removes the manifest's exceptions.
            library
                .fallbacks
                .values_mut()
                .for_each(|fallback| fallback.status_if_missing = None);
        }
        if let Some(text) = &custom.text {
            library.string.clone_from(text);
        }
        for (name, outs) in &custom.zero_out {
            if library.symbols.lookup(name).is_empty() {
                let mut error = Diagnostic::error(
                    &UNKNOWN_FUNCTION,
                    format!("`{name}` is not in the symbol list of `{}`", stub.id.value),
                );
                error.help = library.symbols.did_you_mean(name);
                self.add(error, &outs.span);
            }
            library
                .fallbacks
                .get_or_default(name)
                .outs
                .clone_from(&outs.value);
        }
        Some(Cow::Owned(library))
    }

    /// Whether the table fully describes a library that is not shipped.
    fn describes_own(&mut self, stub: &Stub) -> bool {
        let id = &stub.id.value;
        let example = match (
            stub.custom.load_names.is_empty(),
            stub.custom.symbols.is_none(),
        ) {
            (false, false) => return true,
            (true, true) => {
                let message = format!("unknown library `{id}`");
                let help = match nearest(id, Library::builtin_ids()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!(
                        "known libraries are {}; a user-defined library needs `load-names` and `symbols`",
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
                "write it with `cargo gpustub sync --from {id}=path/to/the/library`"
            ));
            self.add(error, &path.span);
            return None;
        };
        let (list, diagnostics) =
            SymbolList::parse(&symbol_list_path(&self.manifest.file, &path.value), text);
        let broken = has_errors(&diagnostics);
        self.diagnostics.extend(diagnostics);
        (!broken).then_some(list)
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
            let callable = library
                .symbols
                .lookup(&name.value)
                .iter()
                .any(|symbol| !symbol.kind.is_data());
            if callable {
                required.push(name.value.clone());
                #[cfg(feature = "tools")]
                self.check_header(stub, library, name);
                continue;
            }
            let message = format!("`{}` has no function `{}`", stub.id.value, name.value);
            let mut error = Diagnostic::error(&UNKNOWN_FUNCTION, message);
            error.help = library.symbols.did_you_mean(&name.value);
            self.add(error, &name.span);
        }
        required
    }
}

/// A library that is described by its stub table only.
fn own(id: &str) -> Library {
    Library {
        id: id.to_owned(),
        title: id.to_owned(),
        family: String::new(),
        role: Role::Toolkit,
        link_names: vec![id.to_owned()],
        load_names: Default::default(),
        wheel_dirs: Vec::new(),
        root_env: Vec::new(),
        roots: Vec::new(),
        root_subdirs: Vec::new(),
        dirs_before_loader: Vec::new(),
        dirs_after_loader: Vec::new(),
        preload: Vec::new(),
        toolkit_version_from: Vec::new(),
        independent_major: false,
        driver: None,
        version_query: None,
        // No library's success: 0 would claim that the call was made.
        codes: StatusCodes::all(-1),
        string: format!("{id} is not available; GPUSTUB_LOG=1 shows why"),
        errors: "",
        fallbacks: Default::default(),
        abi: Default::default(),
        hooks: Default::default(),
        fallback_symbols: Default::default(),
        symbols: SymbolList::default(),
    }
}
