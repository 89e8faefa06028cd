//! Plans the libraries of an image from stub tables.

mod duplicates;
mod functions;
mod resolve;

use std::borrow::Cow;
use std::ops::Range;

use crate::diag::{
    Diagnostic, INVALID_VALUE, Level, MISSING_HEADER_VERSION, MISSING_LOAD_NAME, UNKNOWN_VERSION,
    UNSUPPORTED_TARGET, listing,
};
use crate::library::{Library, LoadName};
use crate::manifest::{DlopenNote, LibraryType, Manifest, Stub};
use crate::plan::{Function, Inputs, LibraryPlan, Plan, PlannedLibrary, Spec};
use crate::search_dir::is_of_system;
use crate::spanned::values;
use crate::target::Target;

/// Replaced in directories of a toolkit by each of [`Target::cuda_targets`].
const CUDA_TARGET: &str = "{cuda-target}";

/// Plans the stubs of one package for one target. If a diagnostic is an error, the plan must not be
/// built.
pub fn plan(manifest: &Manifest, target: &Target, inputs: &Inputs) -> (Plan, Vec<Diagnostic>) {
    let mut planner = Planner::new(manifest, target, inputs);
    let plan = planner.plan();
    (plan, planner.diagnostics)
}

struct Planner<'a> {
    pub manifest: &'a Manifest,
    pub target: &'a Target,
    pub inputs: &'a Inputs,
    pub diagnostics: Vec<Diagnostic>,
}

impl<'a> Planner<'a> {
    pub fn new(manifest: &'a Manifest, target: &'a Target, inputs: &'a Inputs) -> Self {
        Self {
            manifest,
            target,
            inputs,
            diagnostics: Vec::new(),
        }
    }

    /// Adds a diagnostic about a location in `GpuStub.toml`.
    pub fn add(&mut self, diagnostic: Diagnostic, span: &Range<usize>) {
        self.diagnostics
            .push(diagnostic.with_origin(&self.manifest.file, span.clone()));
    }

    pub fn plan(&mut self) -> Plan {
        let mut provided = Vec::new();
        let mut required = Vec::new();
        for stub in &self.manifest.stubs {
            if !self.is_enabled(stub) {
                continue;
            }
            if stub.provide {
                provided.push(stub);
            } else {
                required.push(stub.id.value.clone());
            }
        }
        let has_stubs = self.check_target(&provided);
        self.check_names(&provided);
        let mut libraries = Vec::new();
        let mut linked = Vec::new();
        for stub in &provided {
            let is_linked = self.inputs.linked.contains(&stub.id.value);
            if !has_stubs && !is_linked {
                continue;
            }
            let Some(mut planned) = self.library(stub) else {
                continue;
            };
            if !is_linked && self.exists_on_macos(stub, &planned) {
                continue;
            }
            if is_linked {
                linked.extend_from_slice(&planned.library.link_names);
                // `gpustub.h` reports the library that the loader has loaded.
                planned.stubbed = false;
                planned.dlopen_note = DlopenNote::Off;
                planned.functions = Cow::default();
                planned.specs = vec![Spec::default()].into();
            }
            if has_stubs {
                insert_by_id(&mut libraries, planned);
            }
        }
        self.add_drivers(&mut libraries);
        self.check_functions(&libraries);
        self.check_link_names(&libraries);
        Plan {
            target: self.target.clone(),
            libraries,
            required,
            linked,
        }
    }

    /// Whether the target can have stubs. Packages must build for every target: a target without trampolines
    /// is a warning, and what links the library there stays as it is without gpustub.
    fn check_target(&mut self, provided: &[&Stub]) -> bool {
        let Some(mut diagnostic) = self.target.check().filter(|_| !provided.is_empty()) else {
            return true;
        };
        if diagnostic.code.id != UNSUPPORTED_TARGET.id {
            self.diagnostics.push(diagnostic);
            return true;
        }
        let are_linked = provided
            .iter()
            .all(|stub| self.inputs.linked.contains(&stub.id.value));
        if !are_linked {
            let Target { triple, os, .. } = self.target;
            let limit = match os.as_str() {
                "linux" => "[\"x86_64-*\", \"aarch64-*\", \"riscv64*\"]",
                "freebsd" => "[\"x86_64-*\", \"aarch64-*\"]",
                _ => "[\"linux\"]",
            };
            diagnostic.level = Level::Warning;
            diagnostic.message = format!("no stubs for the target {triple}: no trampolines");
            diagnostic.help = Some(format!(
                "`targets = {limit}` limits a [stub] table to targets that have them, for example; elsewhere the \
                 program links the library itself, or leaves its GPU code out"
            ));
            self.diagnostics.push(diagnostic);
        }
        false
    }

    /// Whether this is a library of macOS, where stubs load nothing: a warning, since a constant answer would hide it.
    fn exists_on_macos(&mut self, stub: &Stub, planned: &LibraryPlan) -> bool {
        let Target { triple, os, .. } = self.target;
        if os != "macos" || planned.load_names.is_empty() {
            return false;
        }
        let id = &planned.library.id;
        let message = format!(
            "no stubs of `{id}` for the target {triple}: it exists on macOS, where stubs load no library"
        );
        let help = "`targets = [\"linux\"]` limits a [stub] table, for example; elsewhere the program links the \
                    library itself, such as a framework";
        let warning = Diagnostic::warning(&UNSUPPORTED_TARGET, message).help(help);
        self.add(warning, &stub.id.span);
        true
    }

    /// Whether the stub exists for the target, and its cargo features are enabled.
    fn is_enabled(&self, stub: &Stub) -> bool {
        if !stub.targets.include(self.target) {
            return false;
        }
        match &self.inputs.features {
            Some(features) => stub
                .required_features
                .are_enabled(features.iter().map(String::as_str)),
            None => true,
        }
    }

    fn library(&mut self, stub: &Stub) -> Option<LibraryPlan> {
        let library = self.resolve(stub)?;
        self.check_versions(stub, &library);
        let (specs, functions) = match &library {
            PlannedLibrary::Shipped(shipped) => self.shipped_functions(stub, shipped),
            PlannedLibrary::Declared(declared) => {
                self.check_results(stub, &declared.symbols);
                self.functions(stub, declared)
            }
        };
        self.check_headers(stub, &library, &functions);
        let required_functions = self.required(stub, &library);
        Some(LibraryPlan {
            stubbed: true,
            library_type: stub.library_type,
            dlopen_note: self.dlopen_note(stub),
            load_names: self.load_names(stub, &library),
            header_version: stub.header_version(),
            min_version: stub.min_version.as_ref().map(|version| version.value),
            required_functions,
            search_dirs: self.search_dirs(stub),
            specs,
            functions,
            ..self.unstubbed(library)
        })
    }

    /// The directories that are paths of the target's system.
    fn search_dirs(&self, stub: &Stub) -> Vec<String> {
        let mut search_dirs = values(&stub.search_dirs);
        search_dirs.retain(|dir| is_of_system(dir, &self.target.os));
        search_dirs
    }

    /// Only packages of Linux are made by tools that read the notes.
    fn dlopen_note(&self, stub: &Stub) -> DlopenNote {
        if self.inputs.omit_dlopen_notes || self.target.os != "linux" {
            return DlopenNote::Off;
        }
        stub.dlopen_note
    }

    /// Plan of a library whose version is queried only.
    fn unstubbed(&self, library: PlannedLibrary) -> LibraryPlan {
        let os = &self.target.os;
        let directories = |dirs: &[String]| local_dirs(self.target, dirs);
        // All paths of a manifest are those of Unix systems.
        let fixed = |dirs: &[String]| match os.as_str() {
            "windows" => Vec::new(),
            _ => directories(dirs),
        };
        let (wheel_dirs, root_subdirs, preload) = match os.as_str() {
            "windows" => {
                let windows = &library.windows;
                (&windows.wheel_dirs, &windows.root_subdirs, &windows.preload)
            }
            _ => (&library.wheel_dirs, &library.root_subdirs, &library.preload),
        };
        LibraryPlan {
            stubbed: false,
            library_type: LibraryType::default(),
            dlopen_note: DlopenNote::Off,
            load_names: library.load_names.get(os).cloned().unwrap_or_default(),
            newest_major: library.majors(os).first().copied().unwrap_or(0),
            header_version: None,
            min_version: None,
            required_functions: Vec::new(),
            search_dirs: Vec::new(),
            wheel_dirs: directories(wheel_dirs),
            root_subdirs: directories(root_subdirs),
            roots: fixed(&library.roots),
            dirs_before_loader: fixed(&library.dirs_before_loader),
            dirs_after_loader: fixed(&library.dirs_after_loader),
            preload: preload.clone(),
            specs: vec![Spec::default()].into(),
            functions: Vec::new().into(),
            library,
        }
    }

    /// Adds driver libraries, stubbed or not: those that limit the majors of a planned one are
    /// queried for their version.
    fn add_drivers(&mut self, libraries: &mut Vec<LibraryPlan>) {
        if self.target.os == "macos" {
            return;
        }
        let mut drivers = Vec::new();
        for planned in libraries.iter() {
            if let Some(driver) = &planned.library.driver {
                drivers.push(driver.clone());
            }
        }
        for id in drivers {
            if libraries.iter().all(|planned| planned.library.id != id) {
                if let Some(driver) = Library::builtin(&id) {
                    insert_by_id(libraries, self.unstubbed(PlannedLibrary::Shipped(driver)));
                }
            }
        }
    }

    /// Accepted load names in search order: the majors as `majors` orders them, else the headers'
    /// own major first and then in the order of the library's manifest (newest first). Unversioned
    /// names come last: their major is unknown before loading.
    fn load_names(&mut self, stub: &Stub, library: &Library) -> Vec<LoadName> {
        let names = library
            .load_names
            .get(&self.target.os)
            .map_or(&[][..], Vec::as_slice);
        if names.is_empty() {
            self.check_load_names(stub, library);
            Vec::new()
        } else if stub.majors.is_empty() {
            headers_first(names, stub.header_version().map(|header| header.from.major))
        } else {
            self.load_names_of_majors(stub, library, names)
        }
    }

    /// Warns that the library has no load name on the target. No shipped one but `opencl` exists on macOS.
    fn check_load_names(&mut self, stub: &Stub, library: &Library) {
        let os = &self.target.os;
        let is_absent = os == "macos" && Library::index(&library.id).is_some();
        if self.target.check().is_none() && !is_absent {
            let message = format!(
                "`{}` has no load name on {os}, so it is never found there",
                library.id
            );
            let effect = match os.as_str() {
                "macos" => ", which leaves its stubs out",
                _ => "",
            };
            let help =
                format!("if there is one, name it: load-names = {{ {os} = [\"…\"] }}{effect}");
            let warning = Diagnostic::warning(&MISSING_LOAD_NAME, message).help(help);
            self.add(warning, &stub.id.span);
        }
    }

    /// Load names of the majors that the stub table accepts.
    fn load_names_of_majors(
        &mut self,
        stub: &Stub,
        library: &Library,
        names: &[LoadName],
    ) -> Vec<LoadName> {
        let id = &library.id;
        let mut accepted = Vec::new();
        for major in &stub.majors {
            let number: Option<u32> = major.value.parse().ok();
            let mut is_known = false;
            for name in names {
                if name.major.is_some() && name.major == number {
                    accepted.push(name.clone());
                    is_known = true;
                }
            }
            if !is_known {
                let mut majors = Vec::new();
                for name in names {
                    if let Some(major) = name.major {
                        majors.push(major);
                    }
                }
                let message = format!("`{id}` has no load name of major {}", major.value);
                let help = if majors.is_empty() {
                    format!("the load names of `{id}` have no majors: remove `majors`")
                } else {
                    format!("known majors are {}", numbers(&majors))
                };
                self.add(
                    Diagnostic::error(&UNKNOWN_VERSION, message).help(help),
                    &major.span,
                );
            }
        }
        for name in names {
            if name.major.is_none() {
                accepted.push(name.clone());
            }
        }
        accepted
    }

    fn check_versions(&mut self, stub: &Stub, library: &Library) {
        let id = &library.id;
        if let (Some(header), Some(declared)) = (stub.header_version(), &stub.header_version) {
            let major = header.from.major;
            // Headers may be older than any library whose symbols were available.
            let majors = library.header_majors(&self.target.os);
            if !majors.is_empty() && !majors.contains(&major) {
                let message = format!("unknown major {major} of `{id}`");
                let mut help = format!("known majors are {}", numbers(&majors));
                if majors.iter().all(|known| major < *known) {
                    help.push_str(
                        "; with older headers `none` refuses the functions whose meaning changed",
                    );
                }
                self.add(
                    Diagnostic::error(&UNKNOWN_VERSION, message).help(help),
                    &declared.span,
                );
            } else if let Some(release) = library.last_release_before(header) {
                let message = format!("unknown version {} of `{id}`", header.from);
                let help = format!("the last release of major {major} is {release}");
                self.add(
                    Diagnostic::error(&UNKNOWN_VERSION, message).help(help),
                    &declared.span,
                );
            }
        }
        if let Some(version) = &stub.min_version {
            if library.version_query.is_none() {
                let message = format!("`{id}` has no function that reports its version");
                let help =
                    "use `required-functions` with a function that the required version added";
                self.add(
                    Diagnostic::error(&INVALID_VALUE, message).help(help),
                    &version.span,
                );
            }
        }
    }

    /// Without a header version, functions whose ABI depends on the headers would be refused on every
    /// machine: declaring none is a choice, never a default.
    fn check_headers(&mut self, stub: &Stub, library: &Library, functions: &[Function]) {
        if stub.header_version.is_some() {
            return;
        }
        let mut refused = Vec::new();
        for Function { name, .. } in functions {
            if library.abi.depends_on_headers(name) {
                refused.push(name.as_str());
            }
        }
        let is_required_for_sharing =
            self.inputs.require_header_versions && !library.family.is_empty();
        let majors = library.majors(&self.target.os);
        let Some(newest_major) = majors
            .first()
            .filter(|_| is_required_for_sharing || !refused.is_empty())
        else {
            return;
        };
        let message = format!(
            "header version of `{}` unknown; known majors are {}",
            library.id,
            numbers(&majors)
        );
        let label = match refused.as_slice() {
            [] => "packages share its stubs only if their headers are compatible".to_owned(),
            names => format!(
                "{} functions depend on it, such as {}",
                names.len(),
                listing(&names[..names.len().min(3)])
            ),
        };
        let effect_of_none = match refused.len() {
            0 => "\"none\" leaves it undeclared".to_owned(),
            count => format!("\"none\" refuses {count} functions on every machine"),
        };
        let help = format!(
            "add the version of the headers or bindings that the program is compiled against, such as \
             `header-version = \"{newest_major}\"`; {effect_of_none}"
        );
        let error = Diagnostic::error(&MISSING_HEADER_VERSION, message);
        self.add(error.label(label).help(help), &stub.id.span);
    }
}

/// Directories of a library, with the names of the target.
fn local_dirs(target: &Target, dirs: &[String]) -> Vec<String> {
    let mut local = Vec::new();
    for dir in dirs {
        let dir = target.local_dir(dir);
        if dir.contains(CUDA_TARGET) {
            for name in target.cuda_targets() {
                local.push(dir.replace(CUDA_TARGET, &name));
            }
        } else {
            local.push(dir);
        }
    }
    local
}

/// Load names with those of the headers' major first and the unversioned ones last.
fn headers_first(names: &[LoadName], header_major: Option<u32>) -> Vec<LoadName> {
    let mut ordered = Vec::new();
    for rank in 0..=2 {
        for name in names {
            let rank_of_name = match name.major {
                None => 2,
                major => u8::from(major != header_major),
            };
            if rank_of_name == rank {
                ordered.push(name.clone());
            }
        }
    }
    ordered
}

/// Inserts a library in the order of ids.
fn insert_by_id(libraries: &mut Vec<LibraryPlan>, planned: LibraryPlan) {
    let index = libraries.partition_point(|before| before.library.id < planned.library.id);
    libraries.insert(index, planned);
}

/// `13, 12, 11`, each once, in the given order.
fn numbers(majors: &[u32]) -> String {
    let mut text = String::new();
    for (index, major) in majors.iter().enumerate() {
        if index > 0 && majors[index - 1] == *major {
            continue;
        }
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(&major.to_string());
    }
    text
}

#[cfg(test)]
mod tests;
