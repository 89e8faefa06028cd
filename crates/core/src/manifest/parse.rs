//! Decodes `GpuStub.toml`. The known keys are those of [`crate::fields`].

#[cfg(feature = "archive")]
mod archive;
#[cfg(feature = "device-link")]
mod archs;
#[cfg(feature = "device-link")]
mod cuda_clang;
#[cfg(feature = "device-link")]
mod device_link;
#[cfg(feature = "device-link")]
mod device_module;
#[cfg(feature = "tools")]
mod policy;
#[cfg(feature = "tools")]
mod toolkit;
mod values;

use super::{Custom, DlopenNote, LibraryType, Manifest, Stub, Targets};
use crate::by_name::ByName;
use crate::decode::{Decoder, Table, Value};
use crate::diag::{Diagnostic, INVALID_VALUE};
use crate::fields;
use crate::library::{Out, Returns, Status, is_id};
use crate::reserved::{self, Owner};
use crate::search_dir::is_search_dir;
use crate::spanned::Spanned;
use crate::suggest::nearest;
use crate::text::join;
use crate::version::{HeaderChoice, Version};
use values::{checked_strings, path_below, required_features, version};

const LIBRARY_TYPES: [(&str, LibraryType); 2] = [
    ("static", LibraryType::Static),
    ("shared", LibraryType::Shared),
];

const DLOPEN_NOTES: [(&str, DlopenNote); 3] = [
    ("suggested", DlopenNote::Suggested),
    ("recommended", DlopenNote::Recommended),
    ("off", DlopenNote::Off),
];

const LIST_HELP: &str =
    "the symbol list is a part of the package, such as \"symbols/acme.symbols\"";

impl Manifest {
    /// Decodes `text`. The value holds all tables that could be read; if a diagnostic is an error,
    /// it must not be built from.
    pub fn parse(file: &str, text: &str) -> (Self, Vec<Diagnostic>) {
        manifest(file, text)
    }
}

fn manifest(file: &str, text: &str) -> (Manifest, Vec<Diagnostic>) {
    let mut decoder = Decoder::new(file);
    let mut manifest = Manifest {
        file: file.to_owned(),
        ..Manifest::default()
    };
    if let Some(document) = decoder.document(text) {
        let top = document.top();
        if decoder.schema(&top) {
            read(&mut decoder, &top, &mut manifest);
        }
    }
    (manifest, decoder.finish())
}

fn read(decoder: &mut Decoder<'_>, top: &Table<'_>, manifest: &mut Manifest) {
    decoder.check_keys(top, &fields::keys(""));
    if let Some(stubs) = top.get("stub").and_then(|value| decoder.map(&value)) {
        for (id, value) in stubs.entries() {
            // A table with an error is left out: planning the rest of it would only report
            // consequences, while the other tables should be validated in the same run.
            let count_before = decoder.count();
            let stub = stub(decoder, id, &value);
            if let (Some(stub), true) = (stub, decoder.count() == count_before) {
                manifest.stubs.push(stub);
            }
        }
    }
    if let Some(links) = top.get("device-link").and_then(|value| decoder.map(&value)) {
        manifest.device_link_names = links.keys();
        #[cfg(feature = "device-link")]
        {
            let (libraries, modules) = device_link::read(decoder, &links);
            manifest.device_links = libraries;
            manifest.device_modules = modules;
        }
    }
    #[cfg(feature = "device-link")]
    {
        manifest.link_archs = archs::link_archs(decoder, top);
    }
    if let Some(archives) = top.get("archive").and_then(|value| decoder.map(&value)) {
        manifest.archive_names = archives.keys();
        #[cfg(feature = "archive")]
        {
            manifest.archives = archive::read(decoder, &archives);
        }
    }
    #[cfg(feature = "tools")]
    if let Some(value) = top.get("policy") {
        manifest.policy = Some(Spanned {
            value: policy::policy(decoder, &value),
            span: value.key_span,
        });
    }
    #[cfg(feature = "tools")]
    if let Some(value) = top.get("toolkit") {
        let count_before = decoder.count();
        manifest.toolkit = toolkit::toolkit(decoder, &value)
            .filter(|_| decoder.count() == count_before)
            .map(|toolkit| Spanned {
                value: toolkit,
                span: value.key_span,
            });
    }
}

fn stub(decoder: &mut Decoder<'_>, id: &str, value: &Value<'_>) -> Option<Stub> {
    if !is_id(id) {
        let message = format!(
            "invalid library id `{}`: lower-case letters, digits, `-` and `_`, at most 64",
            id.escape_debug()
        );
        decoder.error(&INVALID_VALUE, value.key_span.clone(), message);
        return None;
    }
    let table = decoder.table(value, &fields::keys("stub"))?;
    let version_takes = "a version such as \"12\" or \"11.8\"";
    let header_takes = format!("{version_takes}, or \"none\"");
    let mut stub = Stub {
        id: Spanned {
            value: id.to_owned(),
            span: value.key_span.clone(),
        },
        majors: checked_strings(decoder, &table, "majors", |major| {
            let is_major = !major.contains('.') && Version::parse(major).is_some();
            (!is_major).then_some("takes majors such as \"12\"")
        }),
        header_version: version(
            decoder,
            &table,
            "header-version",
            &header_takes,
            HeaderChoice::parse,
        ),
        required_functions: checked_strings(decoder, &table, "required-functions", |_| None),
        min_version: version(
            decoder,
            &table,
            "min-version",
            version_takes,
            Version::parse,
        ),
        search_dirs: checked_strings(decoder, &table, "search-dirs", search_dir),
        library_type: LibraryType::default(),
        dlopen_note: DlopenNote::default(),
        provide: true,
        required_features: required_features(decoder, &table),
        targets: targets(decoder, id, &table),
        custom: custom(decoder, id, &table),
    };
    if let Some(library_type) = table
        .get("type")
        .and_then(|value| decoder.one_of(&value, &LIBRARY_TYPES))
    {
        stub.library_type = library_type;
    }
    if let Some(note) = table
        .get("dlopen-note")
        .and_then(|value| decoder.one_of(&value, &DLOPEN_NOTES))
    {
        stub.dlopen_note = note;
    }
    if let Some(provide) = table
        .get("provide")
        .and_then(|value| decoder.boolean(&value))
    {
        stub.provide = provide;
    }
    Some(stub)
}

fn search_dir(dir: &str) -> Option<&'static str> {
    if !is_search_dir(dir) {
        Some("takes directories that are absolute or start with $ORIGIN")
    } else if dir.contains(char::is_control) {
        Some("takes directories without control characters")
    } else if dir.len() > 4095 {
        Some("takes directories of at most 4095 bytes")
    } else {
        None
    }
}

/// Operating systems and triples. A word that is neither is probably misspelt.
fn targets(decoder: &mut Decoder<'_>, id: &str, table: &Table<'_>) -> Targets {
    let targets = checked_strings(decoder, table, "targets", |target| {
        let is_pattern = !target.is_empty()
            && target.len() <= 100
            && target
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.*".contains(&byte));
        (!is_pattern).then_some("takes operating systems and target triples")
    });
    for target in &targets {
        let word = target.value.as_str();
        if word.contains(['-', '*']) || fields::SYSTEMS.contains(&word) {
            continue;
        }
        let message = format!("unknown operating system `{word}` in `stub.{id}.targets`");
        let help = match nearest(word, fields::SYSTEMS.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!(
                "known are {}; a target triple may have `*` for any text, such as \"*-linux-gnu\"",
                join(fields::SYSTEMS, ", ")
            ),
        };
        decoder.error_with_help(&INVALID_VALUE, target.span.clone(), message, help);
    }
    Targets(targets)
}

fn custom(decoder: &mut Decoder<'_>, id: &str, table: &Table<'_>) -> Custom {
    let mut custom = Custom {
        symbols: table
            .get("symbols")
            .and_then(|value| path_below(decoder, &value, LIST_HELP)),
        link_names: checked_strings(decoder, table, "link-names", |name| {
            let is_link_name = !name.is_empty()
                && name.len() <= 200
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-.+".contains(&byte));
            (!is_link_name).then_some("takes names as they follow -l")
        }),
        allowed_symbols: checked_strings(decoder, table, "allowed-symbols", |name| {
            (reserved::owner(name) != Some(Owner::Runtime))
                .then_some("takes names of the C and C++ run time")
        }),
        ..Custom::default()
    };
    if let Some(value) = table.get("load-names") {
        custom.load_names = decoder.load_names(&value, Decoder::load_name);
    }
    if let Some(fallback) = table
        .get("fallback")
        .and_then(|value| decoder.table(&value, &fields::keys("stub.fallback")))
    {
        custom.status = fallback
            .get("status")
            .and_then(|value| decoder.status(&value))
            .map(Status::all);
        let text = fallback
            .get("string")
            .and_then(|value| decoder.string(&value));
        if let Some(text) = text.as_ref().filter(|text| text.value.contains('\0')) {
            let message = format!("`stub.{id}.fallback.string` has a NUL in it");
            decoder.error(&INVALID_VALUE, text.span.clone(), message);
        }
        custom.status_string = text.map(|text| text.value);
        custom.returns = version(
            decoder,
            &fallback,
            "returns",
            Returns::CLASSES,
            Returns::parse,
        );
    }
    if let Some(functions) = table.get("zero-out").and_then(|value| decoder.map(&value)) {
        custom.zero_out = zero_out(decoder, &functions);
    }
    custom
}

fn zero_out(decoder: &mut Decoder<'_>, functions: &Table<'_>) -> ByName<Spanned<Vec<Out>>> {
    let mut zero_out = ByName::new();
    for (name, value) in functions.entries() {
        let outs = Spanned {
            value: decoder.outs(&value, false),
            span: value.key_span,
        };
        zero_out.insert(name, outs);
    }
    zero_out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the names known to the decoder with those of the field table.
    #[test]
    fn names_agree_with_the_field_table() {
        assert_eq!(device_link::CUDARTS.map(|(name, _)| name), fields::CUDARTS);
        assert_eq!(
            cuda_clang::COMPILERS.map(|(name, _)| name),
            fields::CUDA_COMPILERS
        );
        assert_eq!(
            device_link::TYPES.map(|(name, _)| name),
            fields::DEVICE_LINK_TYPES
        );
        assert_eq!(
            device_module::FORMATS.map(|(name, _)| name),
            fields::MODULE_FORMATS
        );
        assert_eq!(LIBRARY_TYPES.map(|(name, _)| name), fields::LIBRARY_TYPES);
        assert_eq!(DLOPEN_NOTES.map(|(name, _)| name), fields::DLOPEN_NOTES);
        assert!(DLOPEN_NOTES.iter().all(|(name, note)| note.word() == *name));
        assert_eq!(policy::LEVELS.map(|(name, _)| name), fields::LEVELS);
    }

    /// Detects fields whose example is rejected, and fields that are never read.
    #[test]
    fn every_example_of_the_field_table_is_accepted_and_read() {
        let empty = "schema = 1\n[stub.acme]\n";
        let physics = "schema = 1\n[device-link.physics]\narchs = ['sm_70']\n";
        let compiled: &str = &format!("{physics}sources = ['a.cu']\n");
        let external: &str = &format!("{physics}prebuilt = 'x.a'\ntype = 'shared'\n");
        let shared: &str =
            &format!("{external}prebuilt-shared = {{ middle = 'x', final = 'x' }}\n");
        let module: &str = &format!("{compiled}type = 'module'\n");
        let archive = "schema = 1\n[archive.builtins]\n";
        let layers: &str = &format!("{archive}layers = {{ gfx9 = ['x'], common = ['y'] }}\n");
        let views: &str = &format!("{archive}views = {{ gfx900 = ['gfx9', 'common'] }}\n");
        let builtins: &str =
            &format!("{layers}views = {{ a = ['gfx9', 'common'], gfx900 = ['common'] }}\n");
        for field in fields::FIELDS {
            let line = format!("{} = {}", field.name, field.example);
            let (text, text_without) = match field.section {
                "" if field.name == "schema" => continue,
                "" => (format!("schema = 1\n{line}\n"), "schema = 1\n"),
                "stub" => (format!("{empty}{line}\n"), empty),
                "stub.fallback" => (format!("{empty}fallback = {{ {line} }}\n"), empty),
                "stub.zero-out" if field.required => (
                    format!("{empty}zero-out = {{ f = [{{ {line} }}] }}\n"),
                    empty,
                ),
                "stub.zero-out" => (
                    format!("{empty}zero-out = {{ f = [{{ arg = 0, {line} }}] }}\n"),
                    "schema = 1\n[stub.acme]\nzero-out = { f = [0] }\n",
                ),
                "archive" => match field.name {
                    "views" => (format!("{layers}{line}\n"), builtins),
                    "layers" => (format!("{views}{line}\n"), builtins),
                    "unpack" => (format!("{layers}{line}\n"), builtins),
                    _ => (format!("{builtins}{line}\n"), builtins),
                },
                "policy" => (format!("schema = 1\n[policy]\n{line}\n"), "schema = 1\n"),
                "toolkit" => (
                    format!("schema = 1\n[toolkit]\n{line}\n"),
                    "schema = 1\n[toolkit]\n",
                ),
                "policy.allow" if field.required => continue,
                "policy.allow" => (
                    format!("schema = 1\n[[policy.allow]]\nrule = 'a'\nreason = 'b'\n{line}\n"),
                    "schema = 1\n[[policy.allow]]\nrule = 'a'\nreason = 'b'\n",
                ),
                "device-link" => match field.name {
                    "sources" => (format!("{physics}{line}\n"), compiled),
                    "archs" => (compiled.replace("archs = ['sm_70']", &line), compiled),
                    "prebuilt" => (format!("{physics}{line}\n"), compiled),
                    "prebuilt-shared" => (format!("{external}{line}\n"), shared),
                    "format" | "separable" => (format!("{module}{line}\n"), module),
                    _ => (format!("{compiled}{line}\n"), compiled),
                },
                "device-link.prebuilt-shared" => {
                    let second = if field.name == "middle" {
                        "final"
                    } else {
                        "middle"
                    };
                    (
                        format!("{external}prebuilt-shared = {{ {line}, {second} = 'x' }}\n"),
                        shared,
                    )
                }
                section => panic!("no test for section {section}"),
            };
            let (manifest, diagnostics) = Manifest::parse("GpuStub.toml", &text);
            assert_eq!(diagnostics, [], "{text}");
            // Examples of defaults cannot differ.
            if ![("stub", "type"), ("stub", "provide")].contains(&(field.section, field.name)) {
                let (manifest_without, _) = Manifest::parse("GpuStub.toml", text_without);
                assert_ne!(manifest, manifest_without, "{text}");
            }
        }
    }
}
