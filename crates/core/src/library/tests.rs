use gpustub_manifests::LIBRARIES;

use super::*;
use crate::diag::{LineColumn, line_column};

const SYMBOLS: &str = "\
@gpustub-symbols 1
@releases 11.8 12.9
acmeCount
acmeName
acmeOpen
acmeSize
acmeVersion
";

const MANIFEST: &str = r#"schema = 1
id = "acme"
title = "Acme library"
family = "acme"
role = "toolkit"
link-names = ["acme"]
driver = "cuda"
version-query = { function = "acmeVersion", encoding = "cuda" }
preload = ["libacme-extra.so."]

[load-names]
linux = [{ major = 12, name = "libacme.so.12" }, { major = 11, name = "libacme.so.11.0" }, { name = "libacme.so" }]

[search]
wheel-dirs = ["acme/lib"]
root-subdirs = ["targets/{arch}-linux/lib"]

[status]
library-missing = 35
missing = 302
refused = 801
unloading = -4
string = "{title} is not installed"

[fallback]
acmeName = { returns = "string" }
acmeOpen = { returns = { unknown-error = 1 }, out = [{ arg = 1, error-string = true }] }
acmeSize = { returns = { zeroed-struct = 20 }, status-if-missing = -1001 }
acmeVersion = { returns = { value = 0 }, out = [{ arg = 1, string = true }, { arg = 0, status = true }] }

[zero-out]
acmeCount = [{ arg = 2, size = 4 }, 0]
acmeSize = [1]

[hooks]
acmeOpen = { kind = "record", args = 8 }

[fallback-symbols]
acmeCount = "acmeSize"
"#;

#[test]
fn majors_are_known_by_headers_too() {
    // No driver of 11 was available, only its headers.
    let cuda = Library::builtin("cuda").unwrap();
    assert_eq!(cuda.majors("linux"), [13, 12, 11]);
}

#[test]
fn headers_have_the_majors_of_the_toolkit() {
    // The file names of NVML and hipRAND contain no major of the toolkit, whose headers they come with.
    for (id, major) in [("nvml", 13), ("hiprand", 6), ("cudart", 13)] {
        let library = Library::builtin(id).unwrap();
        let majors = library.header_majors("linux");
        assert!(majors.contains(&major), "{id}: {majors:?}");
        assert!(majors.is_sorted_by(|a, b| a > b), "{id}: {majors:?}");
    }
    // cuDNN's majors are its own.
    let cudnn = Library::builtin("cudnn").unwrap();
    assert_eq!(cudnn.header_majors("linux"), cudnn.majors("linux"));
}

fn outs(outs: &[(u8, OutKind)]) -> Vec<Out> {
    (outs.iter())
        .map(|&(arg, kind)| Out {
            arg,
            position: arg,
            kind,
        })
        .collect()
}

#[test]
fn reads_a_whole_manifest() {
    let (library, diagnostics) = Library::parse("acme.toml", MANIFEST, SYMBOLS, ABI);
    assert_eq!(diagnostics, []);
    let library = library.unwrap();
    assert_eq!(library.status_string, "Acme library is not installed");
    assert_eq!(library.status.unloading, -4);
    assert_eq!(
        library.version_query,
        Some(VersionQuery {
            function: "acmeVersion".into(),
            encoding: VersionEncoding::Cuda
        })
    );
    assert_eq!(
        library.load_names["linux"][1],
        LoadName::new("libacme.so.11.0")
    );
    assert_eq!(library.load_names["linux"][2].major, None);
    assert_eq!(library.majors("linux"), [12, 11]);
    assert_eq!(library.root_subdirs, ["targets/{arch}-linux/lib"]);
    let expected = [
        (
            "acmeCount",
            Returns::Status,
            outs(&[(0, OutKind::Zero(0)), (2, OutKind::Zero(4))]),
            None,
        ),
        ("acmeName", Returns::String, outs(&[]), None),
        (
            "acmeOpen",
            Returns::UnknownError(1),
            outs(&[(1, OutKind::ErrorString)]),
            None,
        ),
        (
            "acmeSize",
            Returns::ZeroedStruct(20),
            outs(&[(1, OutKind::Zero(0))]),
            Some(-1001),
        ),
        (
            "acmeVersion",
            Returns::Value(0),
            outs(&[(0, OutKind::Status), (1, OutKind::String)]),
            None,
        ),
    ];
    let expected: ByName<Fallback> = expected
        .into_iter()
        .map(|(name, returns, outs, status_if_missing)| {
            (
                name.into(),
                Fallback {
                    returns,
                    outs,
                    wide: Vec::new(),
                    status_if_missing,
                },
            )
        })
        .collect();
    assert_eq!(library.fallbacks, expected);
    assert_eq!(
        library.hooks["acmeOpen"],
        Hook {
            kind: HookKind::Record,
            args: 8
        }
    );
}

/// Replaces, in each case, a part of the manifest, and names the one error that follows.
#[test]
fn errors_have_the_location_of_the_mistake() {
    for (from, to, expected) in [
        (
            "id = \"acme\"\n",
            "",
            "1:1 missing-key `the file` has no `id`",
        ),
        (
            "id = \"acme\"",
            "id = \"Acme\"",
            "2:6 invalid-value `id` takes lower-case letters",
        ),
        (
            "role = \"toolkit\"",
            "role = \"tolkit\"",
            "5:8 invalid-value `role` does not take \"tolkit\"",
        ),
        (
            "preload =",
            "prelod =",
            "9:1 unknown-key unknown key `prelod` at the top of the file",
        ),
        (
            "\"cuda\" }",
            "\"hips\" }",
            "8:56 invalid-value `version-query.encoding` does not take \"hips\"",
        ),
        (
            "preload = [",
            "oldest-headers = { 13 = \"0.x\" }\npreload = [",
            "9:25 invalid-value `oldest-headers.13` takes a version",
        ),
        (
            "\"acmeVersion\",",
            "\"acmeVersio\",",
            "8:30 unknown-function `acmeVersio` is not in",
        ),
        (
            "{ major = 12,",
            "{ major = 10,",
            "11:2 invalid-value the load names for linux are not ordered",
        ),
        (
            "{ major = 12, name",
            "{ name",
            "11:2 invalid-value the load names for linux are not ordered",
        ),
        (
            "refused = 801\n",
            "",
            "18:2 missing-key `status` has no `refused`",
        ),
        (
            "refused = 801",
            "refused = 3000000000",
            "21:11 invalid-value `status.refused` takes a whole number",
        ),
        (
            "acmeName =",
            "acmeNam =",
            "26:1 unknown-function `acmeNam` is not in the symbol list",
        ),
        (
            "\"string\" }",
            "\"strng\" }",
            "26:24 invalid-value `fallback.acmeName.returns` does not take",
        ),
        (
            "status-if-missing = -1001",
            "status-if-mising = -1001",
            "28:48 unknown-key unknown key `status-if-mising` in",
        ),
        (
            "{ zeroed-struct = 20 }",
            "{ zeroed-struct = 2, value = 1 }",
            "28:24 invalid-value `fallback.acmeSize.returns` takes",
        ),
        (
            "{ zeroed-struct = 20 }",
            "{ zeroed-struct = 0 }",
            "28:42 invalid-value",
        ),
        (
            "acmeSize = [1]",
            "acmeVersion = [1]",
            "33:1 invalid-value `acmeVersion` has out-parameters in",
        ),
        (
            "acmeSize = [1]",
            "acmeSize = [1, 1]",
            "33:16 invalid-value argument 1 appears twice in",
        ),
        (
            "acmeSize = [1]",
            "acmeSize = [64]",
            "33:13 invalid-value `zero-out.acmeSize` takes a whole number",
        ),
        (
            "args = 8",
            "args = 13",
            "36:38 invalid-value `hooks.acmeOpen.args` takes a whole number",
        ),
        (
            "args = 8",
            "args = 8, arg = 8",
            "36:41 unknown-key unknown key `arg` in",
        ),
        (
            "\"record\"",
            "\"recrd\"",
            "36:21 invalid-value `hooks.acmeOpen.kind` does not take \"recrd\"",
        ),
        (
            "\"acmeSize\"",
            "\"acmeSiz\"",
            "39:13 unknown-function `acmeSiz` is not in the symbol list",
        ),
        (
            "schema = 1",
            "schema = 2",
            "1:10 unsupported-format unsupported schema 2",
        ),
    ] {
        let text = MANIFEST.replacen(from, to, 1);
        assert_ne!(text, MANIFEST, "{from}");
        let (library, diagnostics) = Library::parse("acme.toml", &text, SYMBOLS, ABI);
        let [error] = &diagnostics[..] else {
            panic!("{to:?}: {diagnostics:#?}");
        };
        let start = error.origin.as_ref().map_or(0, |origin| origin.span.start);
        let LineColumn { line, column } = line_column(&text, start);
        let message = format!("{line}:{column} {} {}", error.code.id, error.message);
        assert!(message.starts_with(expected), "{to:?}: {message}");
        assert!(library.is_none());
    }
}

const ABI: &str = "@gpustub-abi 1\n@headers 11.8 12.0\n\nacmeOpen 11.8=1 12.0=2\n";
#[test]
fn load_names_reach_the_newest_release() {
    for id in Library::builtin_ids() {
        let library = Library::builtin(id).unwrap();
        let names = library.load_names.get("linux").unwrap();
        let soname = library.symbols.soname.as_ref().unwrap();
        assert!(
            names.iter().any(|name| name.name == *soname),
            "{id}: {soname}"
        );
        // CUDA 13 has no libnvToolsExt.
        let newest = library.toolkit_releases().last().filter(|_| id != "nvtx");
        let majors: Vec<u32> = names.iter().filter_map(|name| name.major).collect();
        if let Some(newest) = newest.filter(|_| !majors.is_empty()) {
            assert!(majors.contains(&newest.major), "{id}: {majors:?}");
        }
    }
}

#[test]
fn errors_of_the_list_name_the_list() {
    let (library, diagnostics) = Library::parse("acme.toml", MANIFEST, "acmeOpen\n", ABI);
    assert!(library.is_none());
    assert_eq!(diagnostics[0].origin.as_ref().unwrap().file, "acme.symbols");
}

#[test]
fn majors_come_from_names() {
    for (name, major) in [
        ("libacme.so.3", Some(3)),
        ("libacme.so.11.0", Some(11)),
        ("libacme.so", None),
        ("libacme.so.x", None),
        ("libacme.so.99999999999", None),
        ("libacme.3.dylib", Some(3)),
        ("libacme.dylib", None),
        ("acme3.dll", None),
    ] {
        assert_eq!(LoadName::new(name).major, major, "{name}");
    }
}

#[test]
fn ids_become_names() {
    assert!(is_id("cublas-lt") && is_id("a"));
    for wrong in ["", "-a", "1a", "A", "a b", "é", "a/b", &"a".repeat(65)] {
        assert!(!is_id(wrong), "{wrong}");
    }
    assert_eq!(override_variable("cublas-lt"), "GPUSTUB_CUBLAS_LT_PATH");
}

#[test]
fn all_shipped_manifests_read() {
    let ids: Vec<_> = Library::builtin_ids().collect();
    assert!(ids.is_sorted_by(|a, b| a < b));
    for shipped in LIBRARIES {
        let (library, diagnostics) =
            Library::parse(shipped.id, shipped.manifest, shipped.symbols, shipped.abi);
        assert_eq!(diagnostics, [], "{}", shipped.id);
        let library = library.unwrap();
        assert_eq!(library.id, shipped.id);
        for name in library.abi.names() {
            assert!(
                !library.symbols.lookup(name).is_empty(),
                "{}: {name}",
                shipped.id
            );
        }
        assert!(
            library
                .driver
                .is_none_or(|driver| ids.contains(&driver.as_str())),
            "{}",
            shipped.id
        );
        // NVENC has two, which return the others in a struct.
        assert!(library.symbols.functions().count() >= 2, "{}", shipped.id);
        let names_errors = library.fallbacks.iter().any(|(_, f)| f.names_error());
        assert_eq!(names_errors, !shipped.errors.is_empty(), "{}", shipped.id);
        let mut codes: Vec<i32> = Vec::new();
        for line in shipped.errors.lines().filter(|line| !line.starts_with('#')) {
            let (code, name) = line.split_once(' ').unwrap();
            assert!(
                name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
                "{}: {name}",
                shipped.id
            );
            codes.push(code.parse().unwrap());
        }
        assert!(codes.is_sorted_by(|a, b| a < b), "{}", shipped.id);
        assert!(library.load_names.contains_key("linux"), "{}", shipped.id);
    }
    assert_eq!(Library::builtin("no-such-library"), None);
}

#[test]
fn toolkit_releases_have_the_last_of_each_major() {
    for id in Library::builtin_ids() {
        let library = Library::builtin(id).unwrap();
        let releases = library.toolkit_releases();
        for version in library.abi.headers() {
            let last_release = releases
                .iter()
                .rfind(|release| release.major == version.major);
            assert!(
                last_release.is_some_and(|release| release >= version),
                "{id}: {version}"
            );
        }
    }
}
