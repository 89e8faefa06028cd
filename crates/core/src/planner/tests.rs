use super::*;
use crate::diag::Level;
use crate::library::{Returns, Status};

const LIST: &str = "\
@gpustub-symbols 1
_ZN4acme4copyEv weak
_ZTV4acme kind=object weak size=40
acmeClose returns=null
acmeFast kind=ifunc returns=null
acmeOld version=V1 compat returns=null
acmeOld version=V2 compat returns=null
acmeOpen version=V1 compat returns=null
acmeOpen version=V2 returns=null
acmeRaw kind=notype returns=null
acmeWeak weak returns=null
";

const OWN: &str = "\
[stub.acme]
load-names = { linux = ['libacme.so.3', 'libacme.so', 'libacme.so.4', 'libacme.so.2'] }
symbols = 'acme.symbols'
";

fn plan_for(triple: &str, body: &str, features: Option<&[&str]>) -> (Plan, Vec<Diagnostic>) {
    let (manifest, diagnostics) = Manifest::parse("GpuStub.toml", &format!("schema = 1\n{body}"));
    assert_eq!(diagnostics, [], "{body}");
    let inputs = Inputs {
        features: features.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        symbol_files: [("acme.symbols".to_owned(), LIST.to_owned())]
            .into_iter()
            .collect(),
        ..Inputs::default()
    };
    plan(&manifest, &Target::from_triple(triple).unwrap(), &inputs)
}

fn plan_of(body: &str) -> Plan {
    let (plan, diagnostics) = plan_for("x86_64-unknown-linux-gnu", body, None);
    assert!(
        diagnostics
            .iter()
            .all(|diagnostic| diagnostic.level == Level::Note),
        "{diagnostics:?}"
    );
    plan
}

#[test]
fn search_dirs_are_those_of_the_target() {
    let body = r"[stub.nvrtc]
header-version = '12'
search-dirs = ['$ORIGIN/lib', '/opt/gpu', 'C:\gpu', '$ORIGIN\gpu']";
    for (triple, dirs) in [
        ("x86_64-unknown-linux-gnu", "$ORIGIN/lib /opt/gpu"),
        ("x86_64-pc-windows-gnu", r"$ORIGIN/lib C:\gpu $ORIGIN\gpu"),
    ] {
        let (plan, diagnostics) = plan_for(triple, body, None);
        let mut libraries = plan.libraries.iter();
        let planned = libraries.find(|planned| planned.library.id == "nvrtc");
        assert_eq!(planned.unwrap().search_dirs.join(" "), dirs, "{triple}");
        let mut levels = diagnostics.iter().map(|diagnostic| diagnostic.level);
        assert!(levels.all(|level| level == Level::Note), "{diagnostics:?}");
    }
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.libraries
        .iter()
        .map(|planned| planned.library.id.as_str())
        .collect()
}

fn names(library: &LibraryPlan) -> Vec<&str> {
    library
        .load_names
        .iter()
        .map(|name| name.name.as_str())
        .collect()
}

#[test]
fn majors_are_tried_in_order() {
    for (more, expected) in [
        // User-defined libraries: as given; unversioned last.
        (
            "",
            ["libacme.so.3", "libacme.so.4", "libacme.so.2", "libacme.so"].as_slice(),
        ),
        (
            "header-version = '2'",
            &["libacme.so.2", "libacme.so.3", "libacme.so.4", "libacme.so"],
        ),
        (
            "majors = ['4', '3']",
            &["libacme.so.4", "libacme.so.3", "libacme.so"],
        ),
        (
            "majors = ['4', '3']\nheader-version = '3'",
            &["libacme.so.4", "libacme.so.3", "libacme.so"],
        ),
    ] {
        let plan = plan_of(&format!("{OWN}{more}"));
        assert_eq!(names(&plan.libraries[0]), expected, "{more}");
        assert_eq!(plan.libraries[0].newest_major, 4);
    }
    let newest_first = cudart_majors("none");
    assert!(newest_first.is_sorted_by(|a, b| a >= b), "{newest_first:?}");
    assert_eq!(cudart_majors("12")[0], Some(12));
    assert_eq!(cudart_majors("11.8")[0], Some(11));
}

/// Majors of the CUDA runtime's load names, in the order in which they are tried.
fn cudart_majors(header: &str) -> Vec<Option<u32>> {
    let plan = plan_of(&format!("[stub.cudart]\nheader-version = '{header}'"));
    let cudart = plan
        .libraries
        .iter()
        .find(|planned| planned.library.id == "cudart")
        .unwrap();
    cudart.load_names.iter().map(|name| name.major).collect()
}

#[test]
fn notes_have_the_accepted_names_newest_first() {
    for (keys, expected) in [
        (
            "header-version = '2'\n",
            &["libacme.so.4", "libacme.so.3", "libacme.so.2"][..],
        ),
        ("majors = ['2', '3']\n", &["libacme.so.3", "libacme.so.2"]),
        ("dlopen-note = 'off'\n", &[]),
    ] {
        let plan = plan_of(&format!("{OWN}{keys}"));
        assert_eq!(plan.libraries[0].noted_names(), expected, "{keys}");
    }
}

/// The environment of a build turns the notes of all packages off.
#[test]
fn notes_are_omitted_on_request() {
    let (manifest, _) = Manifest::parse("GpuStub.toml", "schema = 1\n[stub.opencl]\n");
    let inputs = Inputs {
        omit_dlopen_notes: true,
        ..Inputs::default()
    };
    let target = Target::from_triple("x86_64-unknown-linux-gnu").unwrap();
    let (plan, _) = plan(&manifest, &target, &inputs);
    assert_eq!(plan.libraries[0].dlopen_note, DlopenNote::Off);
}

#[test]
fn only_callable_symbols_become_functions() {
    let (plan, diagnostics) = plan_for("x86_64-unknown-linux-gnu", OWN, None);
    let acme = &plan.libraries[0];
    let nodes: Vec<_> = acme
        .functions
        .iter()
        .map(|function| {
            let spec = &acme.specs[usize::from(function.spec)];
            (function.name.as_str(), spec.symbol_version.as_deref())
        })
        .collect();
    assert_eq!(
        nodes,
        [
            ("acmeClose", None),
            ("acmeFast", None),
            ("acmeOld", Some("V2")),
            ("acmeOpen", None),
            ("acmeRaw", None),
            ("acmeWeak", None),
        ]
    );
    // Number 0 is the plain status function.
    assert_eq!(acme.specs[0], Spec::default());
    let returns = acme
        .functions
        .iter()
        .map(|function| &acme.specs[usize::from(function.spec)].fallback.returns);
    assert!(returns.eq([&Returns::Null; 6]));
    let [note] = &diagnostics[..] else {
        panic!("{diagnostics:?}")
    };
    assert_eq!((note.level, note.code.id), (Level::Note, "weak-symbol"));
    assert!(
        note.message.contains("2 weak") && note.message.contains("_ZTV4acme"),
        "{note}"
    );
}

#[test]
fn drivers_are_planned_for_their_version() {
    let plan = plan_of("[stub.cudart]\nheader-version = 'none'\n[stub.opencl]");
    assert_eq!(ids(&plan), ["cuda", "cudart", "opencl"]);
    let cuda = &plan.libraries[0];
    assert!(!cuda.stubbed && cuda.functions.is_empty() && cuda.library.version_query.is_some());
    assert_eq!(plan.libraries[1].library.driver.as_deref(), Some("cuda"));
    assert!(plan.libraries[1].functions.len() > 100);
    let both =
        plan_of("[stub.cudart]\nheader-version = 'none'\n[stub.cuda]\nheader-version = 'none'");
    assert_eq!(ids(&both), ["cuda", "cudart"]);
    assert!(both.libraries[0].stubbed);
}

#[test]
fn features_and_providers_select_stubs() {
    let body = "[stub.nvrtc]\nrequired-features = ['gpu-nvrtc']\n[stub.opencl]\nprovide = false\n";
    let triple = "x86_64-unknown-linux-gnu";
    for (features, has_nvrtc) in [
        (None, true),
        (Some(&["gpu-nvrtc"][..]), true),
        // Spelling of build scripts: CARGO_FEATURE_GPU_NVRTC.
        (Some(&["GPU_NVRTC"]), true),
        (Some(&[]), false),
    ] {
        let (plan, _) = plan_for(triple, body, features);
        assert_eq!(ids(&plan).contains(&"nvrtc"), has_nvrtc, "{features:?}");
        assert_eq!(plan.required, ["opencl"]);
        assert!(!ids(&plan).contains(&"opencl"));
    }
}

#[test]
fn targets_without_trampolines_are_errors_if_stubs_are_built() {
    for (triple, body, code) in [
        (
            "sparc64-unknown-linux-gnu",
            "[stub.cuda]\nheader-version = 'none'",
            Some("unsupported-target"),
        ),
        (
            "x86_64-unknown-linux-musl",
            "[stub.cuda]\nheader-version = 'none'",
            Some("static-libc"),
        ),
        (
            "i686-pc-windows-msvc",
            "[stub.cuda]\nheader-version = 'none'",
            Some("unsupported-target"),
        ),
        ("i686-pc-windows-msvc", "[stub.cuda]\nprovide = false", None),
        ("i686-pc-windows-msvc", "", None),
        (
            "x86_64-pc-windows-msvc",
            "[stub.cuda]\nheader-version = 'none'",
            None,
        ),
        ("x86_64-unknown-freebsd", OWN, Some("missing-load-name")),
        ("aarch64-apple-darwin", OWN, Some("missing-load-name")),
        (
            "aarch64-apple-darwin",
            "[stub.cudart]\nheader-version = '12'",
            None,
        ),
        // No driver of CUDA 11 was available, only its headers.
        (
            "x86_64-unknown-linux-gnu",
            "[stub.cuda]\nheader-version = \"11.8\"",
            None,
        ),
        (
            "x86_64-unknown-linux-gnu",
            "[stub.cuda]\nheader-version = \"10\"",
            Some("unknown-version"),
        ),
    ] {
        let (_, diagnostics) = plan_for(triple, body, None);
        let codes: Vec<&str> = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.level != Level::Note)
            .map(|diagnostic| diagnostic.code.id)
            .collect();
        assert_eq!(codes, Vec::from_iter(code), "{triple} {body}");
    }
}

#[test]
fn directories_are_those_of_the_architecture() {
    for (triple, arch) in [
        ("x86_64-unknown-linux-gnu", "x86_64"),
        ("aarch64-unknown-linux-gnu", "aarch64"),
    ] {
        let (plan, _) = plan_for(triple, "[stub.cudart]\n[stub.cuda]", None);
        let dirs: Vec<&String> = plan
            .libraries
            .iter()
            .flat_map(|planned| {
                [
                    &planned.root_subdirs,
                    &planned.dirs_after_loader,
                    &planned.dirs_before_loader,
                    &planned.wheel_dirs,
                ]
            })
            .flatten()
            .collect();
        assert!(dirs.iter().any(|dir| dir.contains(arch)), "{dirs:?}");
        assert!(dirs.iter().all(|dir| !dir.contains('{')), "{dirs:?}");
    }
}

/// NVIDIA's toolkit for AArch64 servers is in `targets/sbsa-linux`, that for Jetson in
/// `targets/aarch64-linux`.
#[test]
fn toolkits_of_both_aarch64_platforms_are_searched() {
    for (triple, expected) in [
        (
            "x86_64-unknown-linux-gnu",
            &["lib64", "targets/x86_64-linux/lib", "lib"][..],
        ),
        (
            "aarch64-unknown-linux-gnu",
            &[
                "lib64",
                "targets/sbsa-linux/lib",
                "targets/aarch64-linux/lib",
                "lib",
            ],
        ),
    ] {
        let (plan, _) = plan_for(triple, "[stub.cudart]", None);
        let cudart = plan
            .libraries
            .iter()
            .find(|planned| planned.library.id == "cudart")
            .unwrap();
        assert_eq!(cudart.root_subdirs, expected);
    }
}

#[test]
fn a_stub_table_overrides_the_manifest() {
    let plan = plan_of(
        "[stub.opencl]\nload-names = { linux = ['libMyCL.so.1'] }\nlink-names = ['MyCL']\n\
         fallback = { status = 7, string = 'none' }\nzero-out = { clGetPlatformIDs = [1] }",
    );
    let opencl = &plan.libraries[0];
    assert_eq!(names(opencl), ["libMyCL.so.1"]);
    assert_eq!(opencl.library.link_names, ["MyCL"]);
    assert_eq!(
        (opencl.library.status, opencl.library.status_string.as_str()),
        (Status::all(7), "none")
    );
    let function = opencl
        .functions
        .iter()
        .find(|function| function.name == "clGetPlatformIDs")
        .unwrap();
    let fallback = &opencl.specs[usize::from(function.spec)].fallback;
    assert_eq!(
        (
            fallback.status_if_missing,
            fallback.outs.len(),
            fallback.outs[0].arg
        ),
        (None, 1, 1)
    );
    assert_eq!(plan_of(OWN).libraries[0].library.status, Status::all(-1));
}

#[test]
fn the_class_of_a_list_replaces_that_of_the_manifest() {
    let list = "@gpustub-symbols 1\nclCreateContext\nclFinish returns=value:7\n\
                clGetPlatformIDs returns=null\nclNew\n";
    let text = "schema = 1\n[stub.opencl]\nsymbols = 'cl.symbols'\n";
    let (manifest, _) = Manifest::parse("GpuStub.toml", text);
    let inputs = Inputs {
        symbol_files: [("cl.symbols".to_owned(), list.to_owned())]
            .into_iter()
            .collect(),
        ..Inputs::default()
    };
    let target = Target::from_triple("x86_64-unknown-linux-gnu").unwrap();
    let (plan, diagnostics) = plan(&manifest, &target, &inputs);
    assert_eq!(diagnostics, []);
    let opencl = &plan.libraries[0];
    let fallbacks: Vec<_> = opencl
        .functions
        .iter()
        .map(|function| &opencl.specs[usize::from(function.spec)].fallback)
        .map(|fallback| (fallback.returns.clone(), fallback.outs.len()))
        .collect();
    let shipped = Library::builtin("opencl")
        .unwrap()
        .fallbacks
        .get("clCreateContext")
        .unwrap();
    assert_eq!(
        fallbacks,
        [
            (shipped.returns.clone(), shipped.outs.len()),
            (Returns::Value(7), 0),
            (Returns::Null, 1),
            (Returns::Status, 0),
        ]
    );
    assert_eq!(shipped.returns, Returns::Null);
}

#[test]
fn floating_point_structs_are_in_memory_on_one_architecture() {
    let list = "@gpustub-symbols 1\nacmePoint returns=zeroed-hfa:24\n";
    for (triple, row) in [
        (
            "x86_64-unknown-linux-gnu",
            ".returns = RETURNS_ZEROED_STRUCT, .value = 24}",
        ),
        ("aarch64-unknown-linux-gnu", ".returns = RETURNS_NULL}"),
    ] {
        let (manifest, _) = Manifest::parse("GpuStub.toml", &format!("schema = 1\n{OWN}"));
        let inputs = Inputs {
            symbol_files: [("acme.symbols".to_owned(), list.to_owned())]
                .into_iter()
                .collect(),
            ..Inputs::default()
        };
        let (plan, _) = plan(&manifest, &Target::from_triple(triple).unwrap(), &inputs);
        let libraries = &crate::sources::render(&plan)["gpustub_libraries.inc"];
        assert!(libraries.contains(row), "{libraries}");
    }
}

/// Functions that only one system has get stubs there.
#[test]
fn functions_of_one_system() {
    let body =
        "[stub.cudart]\nheader-version = \"12\"\nrequired-functions = [\"cudaD3D11GetDevice\"]\n";
    let (windows, diagnostics) = plan_for("x86_64-pc-windows-gnu", body, None);
    assert_eq!(diagnostics, []);
    let (linux, diagnostics) = plan_for("x86_64-unknown-linux-gnu", body, None);
    assert_eq!(
        diagnostics[0].message,
        "`cudart` has no function `cudaD3D11GetDevice` on linux"
    );
    assert_eq!(
        diagnostics[0].help.as_deref(),
        Some("only windows has it: limit the table by `targets`")
    );
    let [windows, linux] = [windows, linux].map(|plan| plan.libraries[1].functions.clone());
    let only: Vec<&Function> = (windows.iter())
        .filter(|function| linux.iter().all(|other| other.name != function.name))
        .collect();
    assert_eq!(only.len(), 42);
    assert!(
        only.iter()
            .all(|function| function.name.contains("D3D") || function.name == "cudaWGLGetDevice")
    );
    assert_eq!(linux.len() + only.len(), windows.len());
}

#[test]
fn twenty_thousand_functions() {
    let list: String = (0..20_000)
        .map(|number| format!("acme{number} returns=status\n"))
        .collect();
    let (manifest, _) = Manifest::parse("GpuStub.toml", &format!("schema = 1\n{OWN}"));
    let inputs = Inputs {
        symbol_files: [("acme.symbols".into(), format!("@gpustub-symbols 1\n{list}"))]
            .into_iter()
            .collect(),
        ..Inputs::default()
    };
    let target = Target::from_triple("x86_64-unknown-linux-gnu").unwrap();
    let (plan, diagnostics) = plan(&manifest, &target, &inputs);
    assert_eq!(diagnostics, []);
    assert_eq!(plan.libraries[0].functions.len(), 20_000);
    let table = &crate::sources::render(&plan)["gpustub_table.inc"];
    assert_eq!(table.matches("GPUSTUB_FN(").count(), 20_000);
}

/// On macOS a constant answer would hide a library that exists there.
#[test]
fn libraries_of_macos_have_no_stubs_there() {
    let with_macos = OWN.replace(
        "load-names = {",
        "load-names = { macos = ['libacme.dylib'],",
    );
    for (body, id) in [("[stub.opencl]", "opencl"), (&with_macos, "acme")] {
        let body = format!("{body}\n[stub.cudart]\nheader-version = '12'");
        let (plan, mut diagnostics) = plan_for("aarch64-apple-darwin", &body, None);
        diagnostics.retain(|diagnostic| diagnostic.level != Level::Note);
        // No driver is asked for its version.
        assert_eq!(ids(&plan), ["cudart"]);
        let [warning] = &diagnostics[..] else {
            panic!("{diagnostics:?}");
        };
        assert_eq!(
            (warning.code.id, warning.level),
            ("unsupported-target", Level::Warning)
        );
        assert!(warning.message.contains(&format!("no stubs of `{id}`")));
        let (plan, _) = plan_for("x86_64-unknown-linux-gnu", &body, None);
        assert!(ids(&plan).contains(&id));
    }
}
