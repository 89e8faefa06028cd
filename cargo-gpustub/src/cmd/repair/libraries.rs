//! User-defined libraries that stubs replace: those of `--library`.

use std::path::Path;

use gpustub_check::Package;
use gpustub_check::gpu_file::gpu_file;
use gpustub_core::diag::{MISSING_LOAD_NAME, UNKNOWN_RESULT, has_errors};
use gpustub_core::library::{Library, Returns};
use gpustub_core::manifest::{Manifest, Spanned, Stub};
use gpustub_core::plan::Inputs;
use gpustub_core::planner;
use gpustub_core::symbols::{Symbol, SymbolList};
use gpustub_repair::StubLibrary;
use gpustub_repair::libraries::KnownLibraries;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::Declared;
use gpustub_workspace::workspace::target;

use crate::cli::{self, RepairedLibrary};
use crate::user_defined::{self, LibraryFile};

/// A user-defined library, as a `GpuStub.toml` has it.
struct UserLibrary {
    stub: Stub,
    /// Path of the list in the table.
    path: String,
    list: SymbolList,
}

/// The user-defined libraries of the command line.
#[derive(Default)]
pub struct UserLibraries {
    libraries: Vec<UserLibrary>,
    /// All libraries that the repair knows.
    pub known: KnownLibraries,
}

impl UserLibraries {
    /// Reads the libraries of the command line. `None`: errors were printed.
    pub fn read(options: &cli::Repair, shell: &mut Shell) -> Result<Option<Self>> {
        let requests = &options.user_defined.library;
        if let Some(repeated) = requests.iter().enumerate().find_map(|(index, request)| {
            let mut earlier = requests[..index].iter();
            earlier
                .any(|previous| previous.id == request.id)
                .then_some(request)
        }) {
            return Err(
                Error::new(format!("`--library {}` is given twice", repeated.id))
                    .help("give each file a name of its own: `--library acme4=libacme.so.4`"),
            );
        }
        let mut user = Self::default();
        let mut descriptions = Vec::new();
        let mut declared: Option<Declared> = None;
        for request in requests {
            user_defined::check_id(&request.id)?;
            if Library::builtin(&request.id).is_some() {
                return Err(known_already(&request.id, &request.id));
            }
            let read = match &request.file {
                Some(file) => read_file(&request.id, file, options, shell)?,
                None => {
                    let file = match &declared {
                        Some(file) => file,
                        None => declared.insert(declared_file(&request.id, options)?),
                    };
                    read_table(request, file, shell)?
                }
            };
            let Some((library, description)) = read else {
                return Ok(None);
            };
            user.libraries.push(library);
            descriptions.push(description);
        }
        user.known = KnownLibraries::new(descriptions);
        Ok(Some(user))
    }

    /// Ids of the libraries that images of a package need.
    pub fn needed_by<'a>(
        &'a self,
        package: &'a Package,
    ) -> impl Iterator<Item = &'static str> + 'a {
        package
            .all_images()
            .flat_map(|image| image.needed().iter().chain(&image.facts.delayed))
            .filter_map(|name| self.known.file(name)?.library)
            .map(|library| library.id.as_str())
    }

    /// Ids of all libraries, each with its load names.
    pub fn ids_and_names(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.libraries.iter().map(|user| {
            let load_names = user.stub.custom.load_names.iter();
            let names = load_names.flat_map(|(_, names)| names);
            let names = names.map(|name| name.value.name.as_str()).collect();
            (user.stub.id.value.as_str(), names)
        })
    }

    /// Adds the tables and lists of the user-defined libraries of a stub library. Its functions are those that images import.
    pub fn add_tables(
        &self,
        stubbed: &[StubLibrary],
        manifest: &mut Manifest,
        inputs: &mut Inputs,
    ) {
        for stubbed in stubbed {
            let mut libraries = self.libraries.iter();
            let Some(user) = libraries.find(|user| user.stub.id.value == stubbed.library.id) else {
                continue;
            };
            let mut list = user.list.clone();
            let is_imported = |symbol: &Symbol| stubbed.exports.contains_key(&symbol.name);
            // Other data gets no stub, and has none for Windows.
            list.symbols
                .retain(|symbol| is_imported(symbol) || !symbol.kind.is_data());
            for symbol in &mut list.symbols {
                // Only the results of imported functions must be known; the others get no stub.
                if !is_imported(symbol) {
                    symbol.returns.get_or_insert(Returns::Null);
                }
            }
            inputs.symbol_files.insert(&user.path, list.to_text());
            let mut stub = user.stub.clone();
            stub.search_dirs
                .extend(stubbed.search_dirs.iter().map(|dir| Spanned {
                    value: dir.clone(),
                    span: 0..0,
                }));
            manifest.stubs.push(stub);
        }
        manifest.stubs.sort_by(|a, b| a.id.value.cmp(&b.id.value));
    }
}

fn known_already(library: &str, option: &str) -> Error {
    Error::new(format!("repair knows `{library}`, and has stubs of it"))
        .help(format!("leave `--library {option}` out"))
}

/// The `GpuStub.toml` of the command line or of the current package.
fn declared_file(id: &str, options: &cli::Repair) -> Result<Declared> {
    Declared::read_selected(&options.user_defined.selection()).map_err(|error| {
        error.help(format!(
            "`--library {id}` names a table of a GpuStub.toml: run this in its package, name it with `--manifest-path`, \
             or name the library's file, `--library {id}=path/to/the/library`"
        ))
    })
}

/// A library as its file describes it.
fn read_file(
    id: &str,
    file: &Path,
    options: &cli::Repair,
    shell: &mut Shell,
) -> Result<Option<(UserLibrary, Library)>> {
    let headers = &options.user_defined.headers;
    let Some(described) = user_defined::read(file, &[], &SymbolList::default(), headers, shell)?
    else {
        return Ok(None);
    };
    let library_file = LibraryFile {
        file,
        format: described.format,
        list: &described.list,
    };
    let load_name = library_file.usable_name(id)?;
    if let Some(known) = gpu_file(&load_name).and_then(|file| file.library) {
        return Err(known_already(&known.id, id));
    }
    let mut fallback = toml_edit::InlineTable::new();
    if let Some((_, status)) = &described.results.unavailable {
        fallback.insert("status", i64::from(*status).into());
    }
    if let Some(returns) = &headers.returns {
        fallback.insert("returns", returns.to_string().into());
    }
    let path = format!("{id}.symbols");
    let text = format!(
        "schema = 1\n[stub.{id}]\nload-names = {}\nsymbols = \"{path}\"\nfallback = {fallback}\n",
        library_file.load_names()
    );
    let (manifest, diagnostics) = Manifest::parse("<command line>", &text);
    shell.diagnostics(&diagnostics, &Default::default())?;
    let mut described_library = describe(&manifest, id, &path, described.list.to_text(), shell)?;
    if let Some((_, library)) = &mut described_library {
        // What an image cannot get from stubs must be recognised.
        library.symbols.symbols.extend(described.left_out);
        library.symbols.normalise();
    }
    Ok(described_library)
}

/// A library that `GpuStub.toml` describes.
fn read_table(
    request: &RepairedLibrary,
    declared: &Declared,
    shell: &mut Shell,
) -> Result<Option<(UserLibrary, Library)>> {
    let id = &request.id;
    shell.diagnostics(&declared.diagnostics, &declared.sources())?;
    if has_errors(&declared.diagnostics) {
        return Ok(None);
    }
    let mut stubs = declared.manifest.stubs.iter();
    let path = stubs
        .find(|stub| stub.id.value == *id)
        .and_then(|stub| stub.custom.symbols.as_ref());
    let text = path.and_then(|path| declared.inputs.symbol_files.get(&path.value));
    let (Some(path), Some(text)) = (path, text) else {
        let message = format!(
            "`{}` has no `[stub.{id}]` with a symbol list",
            declared.display_path
        );
        return Err(Error::new(message).help(format!(
            "name its file, `--library {id}=path/to/the/library`, or write the table: `cargo gpustub add {id} --from \
             path/to/the/library`"
        )));
    };
    describe(&declared.manifest, id, &path.value, text.clone(), shell)
}

/// The library of a table. Functions with an unknown result are accepted, unless an image imports them. `None`: errors were
/// printed.
fn describe(
    manifest: &Manifest,
    id: &str,
    path: &str,
    list: String,
    shell: &mut Shell,
) -> Result<Option<(UserLibrary, Library)>> {
    let mut manifest = manifest.clone();
    manifest.stubs.retain(|stub| stub.id.value == id);
    for stub in &mut manifest.stubs {
        // The repaired files decide about these.
        stub.provide = true;
        stub.targets = Default::default();
        stub.library_type = Default::default();
        stub.required_functions.clear();
    }
    let mut inputs = Inputs::default();
    inputs.symbol_files.insert(path, list.clone());
    let (plan, mut diagnostics) = planner::plan(&manifest, &target(None)?, &inputs);
    diagnostics.retain(|diagnostic| {
        diagnostic.code.id != UNKNOWN_RESULT.id && diagnostic.code.id != MISSING_LOAD_NAME.id
    });
    shell.diagnostics(
        &diagnostics,
        &Sources::from([(path.to_owned(), list.clone())]),
    )?;
    let mut libraries = plan.libraries.into_iter();
    let library = libraries.find(|planned| planned.library.id == id);
    let (Some(library), Some(stub), false) =
        (library, manifest.stubs.pop(), has_errors(&diagnostics))
    else {
        return Ok(None);
    };
    let library = library.library.into_owned();
    let user = UserLibrary {
        stub,
        path: path.to_owned(),
        list: SymbolList::parse(path, &list).0,
    };
    Ok(Some((user, library)))
}
