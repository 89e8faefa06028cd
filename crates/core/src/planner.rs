//! Plans the libraries of an image from stub tables.

mod functions;
mod resolve;

use std::borrow::Cow;
use std::ops::Range;

use crate::by_name::ByName;
use crate::diag::{
    DUPLICATE_FUNCTION, DUPLICATE_STUB_NAME, Diagnostic, INVALID_VALUE, Level,
    MISSING_HEADER_VERSION, MISSING_LOAD_NAME, UNKNOWN_VERSION, UNSUPPORTED_TARGET, listing,
};
use crate::library::{Library, LoadName, c_name};
use crate::manifest::{DlopenNote, LibraryType, Manifest, Stub};
use crate::plan::{Function, Inputs, LibraryPlan, Plan, Spec};
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
        let manifest = self.manifest;
        let mut provided = Vec::new();
        let mut required = Vec::new();
        for stub in &manifest.stubs {
            if !self.wanted(stub) {
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
            let Some(mut library) = self.library(stub) else {
                continue;
            };
            if is_linked {
                linked.extend_from_slice(&library.library.link_names);
                // `gpustub.h` reports the library that the loader has loaded.
                library.stubbed = false;
                library.dlopen_note = DlopenNote::Off;
                library.functions = Cow::default();
                library.specs = vec![Spec::default()].into();
            }
            if has_stubs {
                add(&mut libraries, library);
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
        let Some(mut found) = self.target.check().filter(|_| !provided.is_empty()) else {
            return true;
        };
        if found.code.id != UNSUPPORTED_TARGET.id {
            self.diagnostics.push(found);
            return true;
        }
        let is_linked = |stub: &&Stub| self.inputs.linked.contains(&stub.id.value);
        if !provided.iter().all(is_linked) {
            let Target { triple, os, .. } = self.target;
            let limit = match os.as_str() {
                "linux" => "[\"x86_64-*\", \"aarch64-*\", \"riscv64*\"]",
                "freebsd" => "[\"x86_64-*\", \"aarch64-*\"]",
                _ => "[\"linux\"]",
            };
            found.level = Level::Warning;
            found.message = format!("no stubs for the target {triple}: no trampolines");
            found.help = Some(format!(
                "`targets = {limit}` limits a [stub] table to targets that have them, for example; elsewhere the \
                 program links the library itself, or leaves its GPU code out"
            ));
            self.diagnostics.push(found);
        }
        false
    }

    /// Whether the stub exists for the target, and its cargo features are enabled.
    fn wanted(&self, stub: &Stub) -> bool {
        if !stub.targets.include(self.target) {
            return false;
        }
        match &self.inputs.features {
            Some(on) => stub
                .required_features
                .are_enabled(on.iter().map(String::as_str)),
            None => true,
        }
    }

    fn library(&mut self, stub: &Stub) -> Option<LibraryPlan> {
        let library = self.resolve(stub)?;
        self.check_versions(stub, &library);
        let (specs, functions) = match &library {
            Cow::Borrowed(shipped) => self.shipped_functions(stub, shipped),
            Cow::Owned(own) => self.functions(stub, own),
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
            search_dirs: values(&stub.search_dirs),
            specs,
            functions,
            ..self.unstubbed(library)
        })
    }

    /// Only packages of Linux are made by tools that read the notes.
    fn dlopen_note(&self, stub: &Stub) -> DlopenNote {
        if self.inputs.omit_dlopen_notes || self.target.os != "linux" {
            return DlopenNote::Off;
        }
        stub.dlopen_note
    }

    /// Plan of a library whose version is queried only.
    fn unstubbed(&self, library: Cow<'static, Library>) -> LibraryPlan {
        let os = &self.target.os;
        let local = |dirs: &[String]| {
            let mut local = Vec::new();
            for dir in dirs {
                let dir = self.target.local_dir(dir);
                if dir.contains(CUDA_TARGET) {
                    for name in self.target.cuda_targets() {
                        local.push(dir.replace(CUDA_TARGET, &name));
                    }
                } else {
                    local.push(dir);
                }
            }
            local
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
            wheel_dirs: local(&library.wheel_dirs),
            root_subdirs: local(&library.root_subdirs),
            dirs_before_loader: local(&library.dirs_before_loader),
            dirs_after_loader: local(&library.dirs_after_loader),
            specs: vec![Spec::default()].into(),
            functions: Vec::new().into(),
            library,
        }
    }

    /// Adds driver libraries, stubbed or not: those that limit the majors of a planned one are
    /// queried for their version.
    fn add_drivers(&mut self, libraries: &mut Vec<LibraryPlan>) {
        let mut wanted = Vec::new();
        for library in libraries.iter() {
            if let Some(driver) = &library.library.driver {
                wanted.push(driver.clone());
            }
        }
        for id in wanted {
            if libraries.iter().all(|library| library.library.id != id) {
                if let Some(driver) = Library::builtin(&id) {
                    add(libraries, self.unstubbed(Cow::Borrowed(driver)));
                }
            }
        }
    }

    /// Accepted load names in search order: the majors as `majors` orders them, else the headers'
    /// own major first and then in the order of the library's manifest (newest first). Unversioned
    /// names come last: their major is unknown before loading.
    fn load_names(&mut self, stub: &Stub, library: &Library) -> Vec<LoadName> {
        let id = &library.id;
        let os = &self.target.os;
        let names = library.load_names.get(os).cloned().unwrap_or_default();
        if names.is_empty() {
            if self.target.check().is_none() {
                let message =
                    format!("`{id}` has no load name on {os}, so it is never found there");
                let help = format!("if there is one, name it: load-names = {{ {os} = [\"…\"] }}");
                let warning = Diagnostic::warning(&MISSING_LOAD_NAME, message).help(help);
                self.add(warning, &stub.id.span);
            }
            return names;
        }
        let header = stub.header_version().map(|header| header.from.major);
        if stub.majors.is_empty() {
            let rank = |name: &LoadName| match name.major {
                None => 2,
                major => u8::from(major != header),
            };
            let mut ordered = Vec::new();
            for wanted in 0..=2 {
                for name in names.iter().filter(|name| rank(name) == wanted) {
                    ordered.push(name.clone());
                }
            }
            return ordered;
        }
        let mut accepted = Vec::new();
        let mut accept = |major: Option<u32>| {
            let before = accepted.len();
            for name in &names {
                if name.major == major {
                    accepted.push(name.clone());
                }
            }
            accepted.len() > before
        };
        for major in &stub.majors {
            let number: Option<u32> = major.value.parse().ok();
            if number.is_none() || !accept(number) {
                let mut known = Vec::new();
                for name in &names {
                    if let Some(major) = name.major {
                        known.push(major);
                    }
                }
                let known = numbers(&known);
                let message = format!("`{id}` has no load name of major {}", major.value);
                let help = if known.is_empty() {
                    format!("the load names of `{id}` have no majors: remove `majors`")
                } else {
                    format!("known majors are {known}")
                };
                self.add(
                    Diagnostic::error(&UNKNOWN_VERSION, message).help(help),
                    &major.span,
                );
            }
        }
        accept(None);
        accepted
    }

    fn check_versions(&mut self, stub: &Stub, library: &Library) {
        let id = &library.id;
        if let (Some(header), Some(place)) = (stub.header_version(), &stub.header_version) {
            let major = header.from.major;
            // Headers may be older than any library whose symbols were available.
            let known = library.header_majors(&self.target.os);
            if !known.is_empty() && !known.contains(&major) {
                let message = format!("unknown major {major} of `{id}`");
                let help = format!("known majors are {}", numbers(&known));
                self.add(
                    Diagnostic::error(&UNKNOWN_VERSION, message).help(help),
                    &place.span,
                );
            } else if let Some(last) = library.last_release_before(header) {
                let message = format!("unknown version {} of `{id}`", header.from);
                let help = format!("the last release of major {major} is {last}");
                self.add(
                    Diagnostic::error(&UNKNOWN_VERSION, message).help(help),
                    &place.span,
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
        let is_required = self.inputs.require_header_versions && !library.family.is_empty();
        let known = library.majors(&self.target.os);
        let Some(newest) = known.first().filter(|_| is_required || !refused.is_empty()) else {
            return;
        };
        let message = format!(
            "header version of `{}` unknown; known majors are {}",
            library.id,
            numbers(&known)
        );
        let label = match refused.as_slice() {
            [] => "packages share its stubs only if their headers are compatible".to_owned(),
            names => format!(
                "{} functions depend on it, such as {}",
                names.len(),
                listing(&names[..names.len().min(3)])
            ),
        };
        let none = match refused.len() {
            0 => "\"none\" leaves it undeclared".to_owned(),
            count => format!("\"none\" refuses {count} functions on every machine"),
        };
        let help = format!(
            "add the version of the headers or bindings that the program is compiled against, such as \
             `header-version = \"{newest}\"`; {none}"
        );
        let error = Diagnostic::error(&MISSING_HEADER_VERSION, message);
        self.add(error.label(label).help(help), &stub.id.span);
    }

    /// Checks that ids differ as parts of C names as well.
    fn check_names(&mut self, stubs: &[&Stub]) {
        let mut names: ByName<String> = ByName::new();
        for stub in stubs {
            let id = &stub.id.value;
            if let Some(other) = names.insert(&c_name(id), id.clone()) {
                let message = format!("`{other}` and `{id}` are the same name in C");
                let error =
                    Diagnostic::error(&DUPLICATE_STUB_NAME, message).help("rename one of them");
                self.add(error, &stub.id.span);
            }
        }
    }

    /// Byte range of a library's id in its stub table.
    fn stub_span(&self, id: &str) -> Range<usize> {
        let stub = self.manifest.stubs.iter().find(|stub| stub.id.value == id);
        stub.map_or(0..0, |stub| stub.id.span.clone())
    }

    fn check_link_names(&mut self, libraries: &[LibraryPlan]) {
        let mut owners: ByName<String> = ByName::new();
        for library in libraries.iter().filter(|library| library.stubbed) {
            for name in &library.library.link_names {
                if let Some(other) = owners.insert(name, library.library.id.clone()) {
                    let id = &library.library.id;
                    let message = format!("`{other}` and `{id}` both have the link name `{name}`");
                    let help = "give one of them other `link-names`, or remove it";
                    let place = self.stub_span(id);
                    self.add(
                        Diagnostic::error(&DUPLICATE_STUB_NAME, message).help(help),
                        &place,
                    );
                }
            }
        }
    }

    /// Checks that no two libraries of an image have a function of one name.
    fn check_functions(&mut self, libraries: &[LibraryPlan]) {
        for (from, one) in libraries.iter().enumerate() {
            for (between, other) in libraries[from + 1..].iter().enumerate() {
                let between = &libraries[from + 1..][..between];
                let mut names = common(&one.functions, &other.functions);
                // A name in three libraries is reported for neighbours only.
                names.retain(|name| !between.iter().any(|library| has(library, name)));
                if names.is_empty() {
                    continue;
                }
                let (one, other) = (&one.library.id, &other.library.id);
                let message = format!("`{one}` and `{other}` both have {}", listing(&names));
                let help = "remove them from the symbol list of one of the two";
                let place = self.stub_span(other);
                self.add(
                    Diagnostic::error(&DUPLICATE_FUNCTION, message).help(help),
                    &place,
                );
            }
        }
    }
}

/// Inserts a library in the order of ids.
fn add(libraries: &mut Vec<LibraryPlan>, library: LibraryPlan) {
    let index = libraries.partition_point(|other| other.library.id < library.library.id);
    libraries.insert(index, library);
}

/// The names that two lists have in common.
fn common<'l>(mut one: &'l [Function], mut other: &[Function]) -> Vec<&'l str> {
    let mut names = Vec::new();
    while let ([a, after_a @ ..], [b, after_b @ ..]) = (one, other) {
        let order = a.name.cmp(&b.name);
        if order.is_eq() {
            names.push(a.name.as_str());
        }
        if order.is_le() {
            one = after_a;
        }
        if order.is_ge() {
            other = after_b;
        }
    }
    names
}

fn has(library: &LibraryPlan, name: &str) -> bool {
    let found = library
        .functions
        .binary_search_by(|function| function.name.as_str().cmp(name));
    found.is_ok()
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
