//! Properties of every input: no panic, written lists parse to the same list, the same input gives
//! the same output.

use gpustub_core::fuzz;
use gpustub_core::library::Returns;
use gpustub_core::manifest::Manifest;
use gpustub_core::plan::Inputs;
use gpustub_core::planner::plan;
use gpustub_core::sources::render;
use gpustub_core::suggest::nearest;
use gpustub_core::symbols::{Symbol, SymbolKind, SymbolList, is_name};
use gpustub_core::target::Target;
use gpustub_core::version::{HeaderVersion, Version};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

const NAME: &str = "[A-Za-z_$.é][A-Za-z0-9_$.@#=]{0,12}";

fn kind() -> impl Strategy<Value = SymbolKind> {
    prop::sample::select(vec![
        SymbolKind::Function,
        SymbolKind::Ifunc,
        SymbolKind::NoType,
        SymbolKind::Object,
        SymbolKind::Tls,
    ])
}

fn version() -> impl Strategy<Value = Version> {
    (0..100_u32, 0..20_u32).prop_map(|(major, minor)| Version::new(major, minor))
}

/// Ascending ranges over the versions: cut points, two by two.
fn ranges(
    versions: &[Version],
    cuts: &std::collections::BTreeSet<usize>,
) -> Vec<(Version, Version)> {
    let cuts: Vec<Version> = cuts
        .iter()
        .filter_map(|&index| versions.get(index).copied())
        .collect();
    cuts.chunks(2)
        .map(|pair| (pair[0], pair[pair.len() - 1]))
        .collect()
}

fn returns() -> impl Strategy<Value = Option<Returns>> {
    option::of(prop_oneof![
        Just(Returns::Status),
        Just(Returns::Null),
        Just(Returns::String),
        Just(Returns::Void),
        any::<i32>().prop_map(Returns::Value),
        (1..=65_536_u32).prop_map(Returns::ZeroedStruct),
        (1..=4_u32, 1..=4).prop_map(|(count, log)| Returns::ZeroedHfa(count << log)),
    ])
}

fn symbol(releases: Vec<Version>) -> impl Strategy<Value = Symbol> {
    (
        NAME,
        kind(),
        any::<bool>(),
        option::of(NAME),
        any::<bool>(),
        any::<u64>(),
        option::of(proptest::sample::select(vec!["linux", "windows"])),
        returns(),
        btree_set(0..8_usize, 0..5),
    )
        .prop_map(
            move |(name, kind, weak, version, compat, size, system, returns, cuts)| Symbol {
                name,
                kind,
                weak,
                version,
                compat,
                size: if kind.is_data() { size } else { 0 },
                system,
                returns: returns.filter(|_| !kind.is_data()),
                // `weak` and `compat` say nothing of these.
                copied: kind == SymbolKind::Object && compat && (1..=65_536).contains(&size),
                updates: !kind.is_data() && weak,
                callback: (!kind.is_data() && weak && compat).then_some((size % 12) as u8),
                releases: ranges(&releases, &cuts),
            },
        )
}

fn list() -> impl Strategy<Value = SymbolList> {
    btree_set(version(), 0..6).prop_flat_map(|releases| {
        let releases: Vec<Version> = releases.into_iter().collect();
        (
            option::of("[a-z][a-z. ]{0,8}[a-z]"),
            option::of("[a-z0-9_]{1,8}"),
            vec(symbol(releases.clone()), 0..20),
        )
            .prop_map(move |(soname, machine, symbols)| {
                let mut list = SymbolList {
                    soname,
                    machine,
                    releases: releases.clone(),
                    symbols,
                };
                list.normalise();
                list
            })
    })
}

/// Text that passes the first line of a parser more often than chance would.
fn nearly(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => prop::sample::select(words).prop_map(str::to_owned),
        1 => "\\PC{0,6}",
        1 => any::<String>(),
    ];
    vec(word, 0..40).prop_map(|words| words.concat())
}

const TOML: &[&str] = &[
    "schema = 1\n",
    "schema",
    " = ",
    "[stub.cudart]\n",
    "[stub.acme]\n",
    "[",
    "]",
    "{",
    "}",
    "\n",
    ",",
    "majors",
    "header-version",
    "required-functions",
    "search-dirs",
    "zero-out",
    "fallback",
    "load-names",
    "symbols",
    "required-features",
    "[policy]\n",
    "[[policy.allow]]\n",
    "\"12\"",
    "\"",
    "12",
    "true",
    "linux",
    "arg",
    "bytes",
    "\"acme.symbols\"",
    "1.5",
    "0x7f",
    "\"cudaFree\"",
    "[0]",
    ".",
    "feature",
    "status",
    "\u{feff}",
    "[status]\n",
    "id = \"acme\"\n",
    "title = \"T\"\n",
    "role = \"loader\"\n",
    "library-missing = 1\n",
    "[fallback]\n",
    "f = { returns = \"null\" }\n",
    "[hooks]\n",
    "f = { kind = \"record\", args = 8 }\n",
    "[fallback-symbols]\n",
    "\0",
    "@gpustub-abi 1\n",
    "@headers 11.8 12.0\n",
    "f 11.8=1 12.0=2\n",
    "@null-argument 1 2 3\n",
    "@passes 2 1\n",
    "@adapter 2 1 code 12.0\n",
    "@refused 2 1 reason\n",
];

const LIST: &[&str] = &[
    "@gpustub-symbols 1\n",
    "@releases 11.8 12.9\n",
    "@soname x\n",
    "@machine",
    " ",
    "\n",
    "f",
    "g",
    "weak",
    "kind=",
    "object",
    "tls",
    "version=V1",
    "compat",
    "size=",
    "8",
    "releases=",
    "11.8",
    "-",
    ",",
    "12.9",
    "#",
    "\r\n",
];

proptest! {
    #[test]
    fn written_lists_parse_to_the_same_list(list in list()) {
        let text = list.to_text();
        let (parsed, diagnostics) = SymbolList::parse("x", &text);
        prop_assert_eq!(diagnostics, vec![], "{}", text);
        prop_assert_eq!(&parsed, &list, "{}", text);
        prop_assert_eq!(parsed.to_text(), text);
        for symbol in &list.symbols {
            prop_assert!(is_name(&symbol.name));
            prop_assert!(list.lookup(&symbol.name).contains(symbol));
        }
        let mut names: Vec<&str> = list.functions().map(|symbol| symbol.name.as_str()).collect();
        let count = names.len();
        names.dedup();
        prop_assert_eq!(names.len(), count);
    }

    #[test]
    fn no_symbol_list_panics(text in prop_oneof![any::<String>(), nearly(LIST)]) {
        fuzz::symbols(&text);
    }

    #[test]
    fn no_manifest_panics(text in prop_oneof![any::<String>(), nearly(TOML)], symbols in nearly(LIST)) {
        fuzz::manifest(&format!("{text}\0{symbols}"));
    }

    #[test]
    fn no_library_manifest_panics(text in prop_oneof![any::<String>(), nearly(TOML)], symbols in nearly(LIST)) {
        fuzz::library(&format!("{text}\0{symbols}"));
    }

    #[test]
    fn no_word_panics(word in any::<String>(), known in vec(any::<String>(), 0..5)) {
        let suggestion = nearest(&word, known.iter().map(String::as_str));
        prop_assert!(suggestion.is_none_or(|name| known.iter().any(|known| known == name)));
        let _ = (Version::parse(&word), HeaderVersion::parse(&word), Target::from_triple(&word));
    }

    #[test]
    fn written_versions_parse_to_the_same_version(version in version()) {
        prop_assert_eq!(Version::parse(&version.to_string()), Some(version));
    }

    #[test]
    fn the_same_input_gives_the_same_bytes(list in list(), majors in vec(0..4_u32, 0..3)) {
        let majors: Vec<String> = majors.iter().map(|major| format!("'{major}'")).collect();
        let text = format!(
            "schema = 1\n[stub.opencl]\n[stub.acme]\nsymbols = 'acme.symbols'\n\
             load-names = {{ linux = ['a.so.1', 'a.so', 'a.so.2', 'a.so.3'] }}\nmajors = [{}]\n",
            majors.join(", ")
        );
        let build = || {
            let (manifest, _) = Manifest::parse("GpuStub.toml", &text);
            let inputs = Inputs {
                symbol_files: [("acme.symbols".to_owned(), list.to_text())].into_iter().collect(),
                ..Inputs::default()
            };
            let target = Target::from_triple("aarch64-unknown-linux-gnu").unwrap();
            let (plan, diagnostics) = plan(&manifest, &target, &inputs);
            (render(&plan), diagnostics)
        };
        prop_assert_eq!(build(), build());
    }
}

/// Excessive nesting is an error, not a stack overflow.
#[test]
fn deep_nesting_is_rejected() {
    for (open, times) in [
        ("[", 100_000),
        ("{a=", 100_000),
        ("a.", 100_000),
        ("[a.", 1),
    ] {
        let text = format!("schema = 1\nx = {}", open.repeat(times));
        assert!(!Manifest::parse("x", &text).1.is_empty());
        let text = format!("schema = 1\n{}a = 1\n", open.repeat(times));
        assert!(!Manifest::parse("x", &text).1.is_empty());
    }
}
