//! The `[device-link.<name>]` tables of `GpuStub.toml`.

use std::path::Path;

use super::archs;
use super::cuda_clang;
use super::device_module::{self, Settings};
use super::values::{checked_strings, is_below, is_path, path_below, required_features, shorten};
use crate::by_name::ByName;
use crate::decode::{Decoder, Table, Value};
use crate::define_id;
use crate::diag::{INVALID_VALUE, MISSING_KEY, REQUIRES_CYCLE};
use crate::fields;
use crate::ids::{Id, IndexVec};
use crate::library::is_id;
use crate::manifest::{
    Cudart, DeviceCode, DeviceLink, DeviceModule, LibraryType, SharedFiles, is_device_source,
};
use crate::spanned::Spanned;

/// Values of `type`; `None` is a module, which no program links.
pub(super) const TYPES: [(&str, Option<LibraryType>); 3] = [
    ("static", Some(LibraryType::Static)),
    ("shared", Some(LibraryType::Shared)),
    ("module", None),
];

pub(super) const CUDARTS: [(&str, Cudart); 3] = [
    ("shared", Cudart::Shared),
    ("static", Cudart::Static),
    ("none", Cudart::None),
];

/// Arguments that gpustub itself passes to nvcc and clang: the argument up to its value, and the help for it.
const RESERVED_OPTIONS: [(&[&str], &str); 4] = [
    (
        &[
            "-arch",
            "--gpu-architecture",
            "-code",
            "--gpu-code",
            "-gencode",
            "--generate-code",
            "--cuda-gpu-arch",
            "--offload-arch",
        ],
        "name the architectures in `archs`",
    ),
    (
        &[
            "-rdc",
            "--relocatable-device-code",
            "-dc",
            "--device-c",
            "-dlink",
            "--device-link",
            "-fgpu-rdc",
            "-fno-gpu-rdc",
            "--offload-new-driver",
            "--no-offload-new-driver",
        ],
        "remove it: these libraries are compiled as relocatable code, and gpustub links them",
    ),
    (&["-cudart", "--cudart"], "name the runtime in `cudart`"),
    (
        &[
            "-o",
            "--output-file",
            "-c",
            "--compile",
            "-lib",
            "--lib",
            "-shared",
            "--shared",
        ],
        "remove it: gpustub chooses what is made, and where",
    ),
];

const PATH_HELP: &str = "sources and headers are a part of the package, such as \"cuda/*.cu\"";

/// Reads all tables, sorted by name; those with an error are left out.
pub(super) fn read(
    decoder: &mut Decoder<'_>,
    tables: &Table<'_>,
) -> (Vec<DeviceLink>, Vec<DeviceModule>) {
    let (mut links, mut modules) = (Vec::new(), Vec::new());
    for (name, value) in tables.entries() {
        let count_before = decoder.count();
        match device_link(decoder, name, &value) {
            Some((link, settings)) if decoder.count() == count_before => match settings {
                None => links.push(link),
                Some(settings) => modules.push(settings.module(link)),
            },
            _ => {}
        }
    }
    cycles(decoder, &links);
    device_module::check(decoder, &links, &modules);
    (links, modules)
}

fn device_link(
    decoder: &mut Decoder<'_>,
    name: &str,
    value: &Value<'_>,
) -> Option<(DeviceLink, Option<Settings>)> {
    if !is_id(name) {
        let message = format!(
            "invalid library name `{}`: lower-case letters, digits, `-` and `_`, at most 64",
            name.escape_debug()
        );
        decoder.error(&INVALID_VALUE, value.key_span.clone(), message);
        return None;
    }
    let table = decoder.table(value, &fields::keys("device-link"))?;
    let declared_type = table
        .get("type")
        .and_then(|value| decoder.one_of(&value, &TYPES))
        .unwrap_or(Some(LibraryType::default()));
    let settings = device_module::settings(decoder, &table, declared_type.is_none());
    let library_type = declared_type.unwrap_or_default();
    let cudart = table
        .get("cudart")
        .and_then(|value| decoder.one_of(&value, &CUDARTS));
    let code = code(decoder, &table, value, library_type, settings.as_ref())?;
    let mut link = DeviceLink {
        name: Spanned {
            value: name.to_owned(),
            span: value.key_span.clone(),
        },
        include_dirs: include_dirs(decoder, &table, &code),
        defines: defines(decoder, &table),
        compile_options: compile_options(decoder, &table),
        requires: requires(decoder, &table, name),
        compiler: cuda_clang::compiler(decoder, &table),
        archs: archs::archs(decoder, &table, value, &code),
        code,
        library_type,
        cudart: cudart.unwrap_or_default(),
        cudadevrt: false,
        required_features: required_features(decoder, &table),
        optional: false,
    };
    if let Some(value) = table.get("cudadevrt") {
        link.cudadevrt = decoder.boolean(&value)?;
        if link.cudadevrt && library_type == LibraryType::Shared {
            let message = format!("`{}` with `type = \"shared\"`", value.name);
            let help = "write type = \"static\": programs are linked with its device library";
            decoder.error_with_help(&INVALID_VALUE, value.key_span, message, help);
        }
    }
    if let Some(value) = table.get("optional") {
        link.optional = decoder.boolean(&value)?;
    }
    archs::check_amd(decoder, &table, &link);
    cuda_clang::check(decoder, &table, &link, settings.is_some());
    if let Some(settings) = &settings {
        settings.check(decoder, &table, &link);
    }
    Some((link, settings))
}

fn code(
    decoder: &mut Decoder<'_>,
    table: &Table<'_>,
    value: &Value<'_>,
    library_type: LibraryType,
    module: Option<&Settings>,
) -> Option<DeviceCode> {
    let shared = table.get("prebuilt-shared");
    if let (Some(shared), None) = (&shared, table.get("prebuilt")) {
        let message = format!(
            "`{}` belongs to a `prebuilt` library, and there is none",
            shared.name
        );
        let help = "remove it: what is compiled from `sources` is shared by `type = \"shared\"`";
        decoder.error_with_help(&INVALID_VALUE, shared.key_span.clone(), message, help);
        return None;
    }
    match (table.get("sources"), table.get("prebuilt")) {
        (Some(_), Some(prebuilt)) => {
            let message = format!("`{}` has both `sources` and `prebuilt`", table.name);
            let help = "keep `sources` for a library that gpustub compiles, `prebuilt` for one built \
                        by others";
            decoder.error_with_help(&INVALID_VALUE, prebuilt.key_span, message, help);
            None
        }
        (Some(sources), None) => {
            let count_before = decoder.count();
            let globs = checked_strings(decoder, table, "sources", |glob| {
                if !is_below(glob) {
                    Some("takes globs below this file's directory, with /")
                } else {
                    (!is_device_source(Path::new(glob)))
                        .then_some("takes globs that end in .cu, .hip, .cpp, .cc or .cxx")
                }
            });
            if globs.is_empty() && decoder.count() == count_before {
                let message = format!("`{}` is empty", sources.name);
                let help = "name the files, such as [\"cuda/*.cu\"]; a library of headers alone has \
                            no `sources`";
                decoder.error_with_help(&INVALID_VALUE, sources.span, message, help);
            }
            Some(DeviceCode::Sources(globs))
        }
        (None, Some(value)) => {
            let prebuilt = file(decoder, &value)?;
            Some(DeviceCode::External {
                prebuilt_shared: shared_files(decoder, shared, &value, library_type)?,
                prebuilt,
            })
        }
        // A module may be one of the libraries that it requires.
        (None, None) if module.is_some() => Some(DeviceCode::Headers),
        (None, None) if table.get("include-dirs").is_some() => Some(DeviceCode::Headers),
        (None, None) => {
            let message = format!("`{}` has no `sources`", table.name);
            let help =
                "write sources = [\"cuda/*.cu\"], or `prebuilt` for a library built by others";
            decoder.error_with_help(&MISSING_KEY, value.key_span.clone(), message, help);
            None
        }
    }
}

/// Outer `None`: an error.
fn shared_files(
    decoder: &mut Decoder<'_>,
    shared: Option<Value<'_>>,
    archive: &Value<'_>,
    library_type: LibraryType,
) -> Option<Option<SharedFiles>> {
    let Some(value) = shared else {
        if library_type == LibraryType::Shared {
            let message = "a `prebuilt` library with `type = \"shared\"` has no `prebuilt-shared`";
            let help =
                "write prebuilt-shared = { middle = \"libacme.so\", final = \"libacme_final.so\" }";
            decoder.error_with_help(&MISSING_KEY, archive.key_span.clone(), message, help);
            return None;
        }
        return Some(None);
    };
    if library_type == LibraryType::Static {
        let message = format!("`{}` requires `type = \"shared\"`", value.name);
        let help = "write type = \"shared\", or remove `prebuilt-shared`";
        decoder.error_with_help(&INVALID_VALUE, value.key_span, message, help);
        return None;
    }
    let table = decoder.table(&value, &fields::keys("device-link.prebuilt-shared"))?;
    let middle = decoder.required(&table, "middle", &value.span);
    let r#final = decoder.required(&table, "final", &value.span);
    let (middle, r#final) = (middle?, r#final?);
    Some(Some(SharedFiles {
        middle: file(decoder, &middle)?,
        r#final: file(decoder, &r#final)?,
    }))
}

/// A file that was built elsewhere: any path.
fn file(decoder: &mut Decoder<'_>, value: &Value<'_>) -> Option<Spanned<String>> {
    let path = decoder.string(value)?;
    if is_path(&path.value) {
        return Some(path);
    }
    let message = format!("`{}` takes the path of a file", value.name);
    decoder.error(&INVALID_VALUE, path.span, message);
    None
}

fn include_dirs(
    decoder: &mut Decoder<'_>,
    table: &Table<'_>,
    code: &DeviceCode,
) -> Vec<Spanned<String>> {
    let Some(value) = table.get("include-dirs") else {
        return Vec::new();
    };
    if matches!(code, DeviceCode::External { .. }) {
        return checked_strings(decoder, table, "include-dirs", |dir| {
            (!is_path(dir)).then_some("takes directories")
        });
    }
    let mut dirs = Vec::new();
    for element in decoder.list(&value, "a list of strings") {
        dirs.extend(path_below(decoder, &element, PATH_HELP));
    }
    dirs
}

fn is_macro_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn defines(decoder: &mut Decoder<'_>, table: &Table<'_>) -> ByName<Spanned<String>> {
    let mut defines = ByName::new();
    let Some(map) = table.get("defines").and_then(|value| decoder.map(&value)) else {
        return defines;
    };
    for (name, value) in map.entries() {
        if !is_macro_name(name) {
            let message = format!("invalid macro name `{}`", shorten(name).escape_debug());
            decoder.error(&INVALID_VALUE, value.key_span, message);
            continue;
        }
        let Some(text) = decoder.string(&value) else {
            continue;
        };
        if text.value.contains(char::is_control) {
            let message = format!("`{}` has a control character in it", value.name);
            decoder.error(&INVALID_VALUE, text.span, message);
            continue;
        }
        let definition = Spanned {
            value: text.value,
            span: value.key_span,
        };
        defines.insert(name, definition);
    }
    defines
}

/// Arguments may repeat: `-Xcompiler` can precede each of several.
fn compile_options(decoder: &mut Decoder<'_>, table: &Table<'_>) -> Vec<Spanned<String>> {
    let Some(value) = table.get("compile-options") else {
        return Vec::new();
    };
    let mut options = decoder.strings(&value);
    options.retain(|option| {
        let name = option.value.split('=').next().unwrap_or_default();
        let reserved = RESERVED_OPTIONS
            .iter()
            .find(|(names, _)| names.contains(&name));
        let (problem, help) = match reserved {
            Some((_, help)) => ("gpustub passes this option to compilers itself", *help),
            None if option.value.trim().is_empty() || option.value.contains(char::is_control) => (
                "takes arguments without control characters",
                "write each argument as a string of its own",
            ),
            None => return true,
        };
        let message = format!("`{}`: {problem}: {:?}", value.name, shorten(&option.value));
        decoder.error_with_help(&INVALID_VALUE, option.span.clone(), message, help);
        false
    });
    options
}

fn requires(decoder: &mut Decoder<'_>, table: &Table<'_>, name: &str) -> Vec<Spanned<String>> {
    let names = checked_strings(decoder, table, "requires", |name| {
        (!is_id(name)).then_some("takes names of other `device-link` tables")
    });
    for required in names.iter().filter(|required| required.value == name) {
        let message = format!("`{}` requires itself", table.name);
        decoder.error_with_help(&REQUIRES_CYCLE, required.span.clone(), message, "remove it");
    }
    names
}

define_id! {
    /// Index of a library among those of its file.
    struct LibraryIndex;
}

/// A library on the path of the cycle search.
struct Step {
    library: LibraryIndex,
    /// Number of its `requires` followed so far.
    followed: usize,
}

impl Step {
    fn new(library: LibraryIndex) -> Self {
        Self {
            library,
            followed: 0,
        }
    }
}

/// Reports libraries of this file that require each other in a cycle: one error for each cycle, at
/// the `requires` that closes it.
fn cycles(decoder: &mut Decoder<'_>, links: &[DeviceLink]) {
    let mut done: IndexVec<LibraryIndex, bool> = IndexVec::filled(false, links.len());
    let mut on_path = done.clone();
    for start in done.ids() {
        let mut path = vec![Step::new(start)];
        while let Some(step) = path.last_mut() {
            let library = step.library;
            on_path[library] = true;
            let required = links[library.index()].requires.get(step.followed);
            let Some(required) = required.filter(|_| !done[library]) else {
                (done[library], on_path[library]) = (true, false);
                path.pop();
                continue;
            };
            step.followed += 1;
            let Ok(index) =
                links.binary_search_by(|link| link.name.value.as_str().cmp(&required.value))
            else {
                continue;
            };
            let next = LibraryIndex::from_index(index);
            if !on_path[next] {
                path.push(Step::new(next));
                continue;
            }
            let from = path
                .iter()
                .position(|step| step.library == next)
                .unwrap_or(0);
            let mut names: Vec<&str> = path[from..]
                .iter()
                .map(|step| links[step.library.index()].name.value.as_str())
                .collect();
            names.push(&links[index].name.value);
            let message = format!("libraries require each other: {}", names.join(" → "));
            let help = "move what both need into a library of its own";
            decoder.error_with_help(&REQUIRES_CYCLE, required.span.clone(), message, help);
        }
    }
}
