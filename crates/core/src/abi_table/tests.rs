use super::*;
use crate::library::{Library, VersionEncoding};
use crate::version::HeaderVersion;

const FILE: &str = "\
@gpustub-abi 1
# Comments and empty lines are allowed anywhere.
@headers 11.7 11.8 12.0 12.9 13.0

instantiate 11.7=1 12.0=2
instantiateWithFlags 11.7=2

properties 11.7=1 13.0=3
properties_v2 12.0=2 13.0=-

grown 11.7=1 11.8=2

stays 11.7=1
vanished 11.7=1 13.0=-

late 12.0=1 13.0=2

later 12.9=1 13.0=2

@null-argument 1 2 3
add 11.7=1 13.0=2
add_v2 12.0=2 13.0=-

@null-argument 1 2 0
moved 11.7=1 13.0=-
moved_v2 13.0=2

@passes 2 1
@adapter 1 2 by_size
desc 11.7=1 13.0=2

@passes 1 2
@adapter 2 1 neutral
filled 12.0=1 12.9=2

@adapter 1 2 by_version 12.5
@adapter 1 2 by_lookup
@adapter 1 3 by_version
@refused 3 2 the library lacks what the call needs
@refused 3 - never
entry 11.7=1 12.0=2 13.0=3

@adapter 2 1 older
@adapter 3 2 without_flags
@adapter 3 1 older
create 11.7=1
create_v2 12.0=2
create_v3 12.5=3

@refused 2 1 the older function has no flags
@refused 2 - the library has no batches
batch 12.0=1
batch_v2 12.9=2

@adapter 1 1 within
@adapter 2 2 within 12.9
@adapter 2 1 older
address 11.7=1
address_v2 12.0=2
address_alias 12.9=2

list_v2 11.7=1
list_v3 11.7=1 12.0=! 12.9=1
";

/// `from..below=name`, or `!` for a refusal, with `+` and the argument that is null or the adapter; between
/// them the own name.
fn entries(name: &str, header: &str) -> String {
    let (table, diagnostics) = AbiTable::parse("x.abi", FILE);
    assert_eq!(diagnostics, []);
    entries_of(&table, name, header)
}

fn entries_of(table: &AbiTable, name: &str, header: &str) -> String {
    let mut words = Vec::new();
    for entry in table.entries(name, HeaderVersion::parse(header)) {
        let name = entry.name.as_deref().unwrap_or("!");
        let adapter = match &entry.adapter {
            None => String::new(),
            Some(Adapter::NullArgument(argument)) => format!("+{argument}"),
            Some(Adapter::Code(code)) => format!("+{code}"),
        };
        let reason = match &entry.reason {
            None => String::new(),
            Some(reason) => format!(" ({reason})"),
        };
        words.push(format!(
            "{}..{}={name}{adapter}{reason}",
            decoded(entry.from),
            decoded(entry.below)
        ));
    }
    words.join(" ")
}

/// A version code as `major.minor`; empty if it is the end of all versions.
fn decoded(code: i32) -> String {
    match code {
        i32::MAX => String::new(),
        code => format!("{}.{}", code / 1000, code % 1000 / 10),
    }
}

/// The example of `entries.rs`.
#[test]
fn entries_of_a_real_function() {
    let cudart = Library::builtin("cudart").unwrap();
    for (header, expected) in [
        (
            "12",
            "0.0..11.0=! 13.0..14.0=cudaGraphAddDependencies+3 14.0..=!",
        ),
        (
            "13",
            "0.0..11.0=! 11.0..12.3=cudaGraphAddDependencies+dependencies_without_data \
             12.3..13.0=cudaGraphAddDependencies_v2 14.0..=!",
        ),
    ] {
        let entries = entries_of(&cudart.abi, "cudaGraphAddDependencies", header);
        assert_eq!(entries, expected, "headers {header}");
    }
}

#[test]
fn only_names_of_the_same_variant_are_bound() {
    for (name, header, expected) in [
        ("stable", "12", ""),
        ("stable", "", ""),
        // The form of 11 has no other name; that of 12 has.
        ("instantiate", "11", "0.0..11.0=! 12.0..=!"),
        (
            "instantiate",
            "12.9",
            "0.0..11.0=! 11.0..12.0=instantiateWithFlags 14.0..=!",
        ),
        ("instantiate", "", "0.0..=!"),
        // A name with a single variant needs no header and is refused nowhere.
        ("instantiateWithFlags", "11.8", ""),
        ("instantiateWithFlags", "", ""),
        ("vanished", "", "13.0..14.0=stays"),
        ("vanished", "12", "13.0..14.0=stays"),
        ("stays", "13", ""),
        ("stays", "", ""),
        // The library of 12 keeps the old meaning under the plain name.
        ("properties", "11.8", "0.0..11.0=! 13.0..=!"),
        ("properties", "12", "0.0..11.0=! 13.0..=!"),
        ("properties", "13", "0.0..13.0=! 14.0..=!"),
        ("properties_v2", "12", ""),
        ("properties_v2", "13", ""),
        // Libraries of 12.0 to 12.8 have another struct than their headers.
        ("list_v3", "12.0", "12.0..12.9=list_v2"),
        ("list_v3", "", "12.0..12.9=list_v2"),
        ("list_v2", "", ""),
        // Headers of 11 have either variant.
        ("grown", "11", "0.0..=!"),
        ("grown", "11.8", "0.0..11.8=! 14.0..=!"),
        ("grown", "11.7", "0.0..11.0=! 11.8..=!"),
        ("grown", "12", "0.0..11.8=! 14.0..=!"),
        // A caller has headers of 12 that declare the function, either 12.0 or 12.9.
        ("late", "11", "0.0..=!"),
        ("late", "12", "0.0..12.0=! 13.0..=!"),
        ("later", "12", "0.0..12.9=! 13.0..=!"),
        // The form of 13 takes one more argument, which may be null; the form of 11 cannot be
        // derived from its predecessor.
        ("add", "11", "0.0..11.0=! 13.0..14.0=add+3 14.0..=!"),
        ("add", "12", "0.0..11.0=! 13.0..14.0=add+3 14.0..=!"),
        ("add", "13", "0.0..12.0=! 12.0..13.0=add_v2 14.0..=!"),
        ("add_v2", "12", "13.0..14.0=add"),
        // Without a header, either variant.
        ("add", "", "0.0..=!"),
        ("moved", "", "13.0..14.0=moved_v2+0"),
        ("moved_v2", "", ""),
        // A newer struct that only has more to read is passed as it is; an older one is not.
        ("desc", "13", "0.0..11.0=! 14.0..=!"),
        ("desc", "12", "0.0..11.0=! 13.0..14.0=desc+by_size 14.0..=!"),
        // Headers of 12 have either variant; each call is one of the newer as it is.
        (
            "filled",
            "12",
            "0.0..12.0=! 12.0..12.9=filled+neutral 14.0..=!",
        ),
        ("filled", "12.0", "0.0..12.0=! 14.0..=!"),
        // The first relation that fits, from its version on.
        (
            "entry",
            "11",
            "0.0..11.0=! 12.0..12.5=entry+by_lookup 12.5..14.0=entry+by_version 14.0..=!",
        ),
        (
            "entry",
            "13",
            "0.0..11.0=! 11.0..12.0=! (never) 12.0..13.0=! (the library lacks what the call needs) 14.0..=!",
        ),
        ("entry", "12", "0.0..12.0=! 13.0..=!"),
        // Names that an older library lacks need no header.
        ("create_v2", "", "11.0..12.0=create+older"),
        (
            "create_v3",
            "12",
            "11.0..12.0=create+older 12.0..12.5=create_v2+without_flags",
        ),
        ("create", "", ""),
        // The same variant, which answers otherwise.
        ("address", "", "11.0..14.0=address+within"),
        (
            "address_v2",
            "",
            "11.0..12.0=address+older 12.9..14.0=address_v2+within",
        ),
        (
            "address_alias",
            "",
            "11.0..12.0=address+older 12.0..12.9=address_v2 12.9..14.0=address_alias+within",
        ),
        // The reason why a library lacks a function with one ABI.
        (
            "batch_v2",
            "",
            "11.0..12.0=batch_v2 (the library has no batches) 12.0..12.9=batch_v2 (the older function has no flags)",
        ),
        ("batch", "", ""),
    ] {
        assert_eq!(
            entries(name, header),
            expected,
            "{name} with headers {header}"
        );
    }
}

#[test]
fn marked_names_are_bound_without_the_mark() {
    let text = "@gpustub-abi 1\n@headers 5.5 6.4 7.2\n@renamed _v2 6.0 7.0\n\nb 5.5=1 7.0=2\nb_v2 6.0=2 7.0=-\n";
    let (table, diagnostics) = AbiTable::parse("x.abi", text);
    assert_eq!(diagnostics, []);
    for (name, plain) in [("a_v2", "a"), ("a_v2_64", "a_64"), ("a_v2_v2", "a_v2")] {
        assert_eq!(
            entries_of(&table, name, "6.4"),
            format!("5.0..6.0={plain} 7.0..8.0={plain}"),
            "{name}"
        );
        assert!(table.contains(name) && !table.depends_on_headers(name));
        assert_eq!(
            [5, 6, 7].map(|major| table.is_exported_in(name, Version::new(major, 0))),
            [false, true, false]
        );
    }
    for name in ["a", "a_64", "a_v2_32", "_v"] {
        assert_eq!(entries_of(&table, name, "6.4"), "", "{name}");
        assert!(!table.contains(name));
    }
    // A name of the table has its own variants.
    assert_eq!(entries_of(&table, "b_v2", "6.4"), "7.0..8.0=b");
}

#[test]
fn malformed_lines_are_reported() {
    for (line, message) in [
        ("f", "line 3 of x.abi is malformed: f"),
        ("f 12.0", "line 3 of x.abi is malformed: f 12.0"),
        ("f 12.0=x", "line 3 of"),
        ("f 12.0=!", "line 3 of"),
        ("f 11.8=1 12.0=!", "line 3 of"),
        ("f 12.0=1 11.8=2", "line 3 of"),
        ("f 12.0=1 12.0=2", "line 3 of"),
        ("@headers", "line 3 of"),
        ("@headers 13.0 12.0", "line 3 of"),
        ("@other", "line 3 of"),
        ("@renamed _v2 12.0", "line 3 of"),
        ("@renamed _v2 12.0 12.0", "line 3 of"),
        ("@renamed -v2 11.8 12.0", "line 3 of"),
        ("@renamed _v2 11.8 12.0 13.0", "line 3 of"),
        ("@drivers 11.8", "line 3 of"),
        ("@drivers 11.8=525 12.0=520", "line 3 of"),
        ("@own-versions 10.9.0", "line 3 of"),
        ("@own-versions 10.9.0 10.9", "line 3 of"),
        ("@own-versions 10.9.0 10.10.0", "line 3 of"),
        ("@own-versions 11.0.1 10.9.0", "line 3 of"),
        ("@gpustub-abi 1", "line 3 of"),
        ("f 12.0=1\nf 12.0=1", "x.abi has f twice"),
        ("@null-argument", "line 3 of"),
        ("@null-argument 1", "line 3 of"),
        ("f 11.8=1 12.0=2\n@null-argument 1 2", "line 4 of"),
        ("f 11.8=1 12.0=2\n@null-argument 1 1 0", "line 4 of"),
        ("f 11.8=1 12.0=2\n@null-argument 1 2 6", "line 4 of"),
        ("f 11.8=1 12.0=2\n@null-argument 1 2 -1", "line 4 of"),
        ("f 11.8=1 12.0=2\n@null-argument 1 2 3 4", "line 4 of"),
        ("f 11.8=1 12.0=2\n@passes 1", "line 4 of"),
        ("f 11.8=1 12.0=2\n@passes 1 2 3", "line 4 of"),
        ("f 11.8=1 12.0=2\n@adapter 1 2", "line 4 of"),
        ("f 11.8=1 12.0=2\n@adapter 1 2 a;b", "line 4 of"),
        ("f 11.8=1 12.0=2\n@adapter 1 2 code x", "line 4 of"),
        ("f 11.8=1 12.0=2\n@adapter 1 2 code 12.0 x", "line 4 of"),
        ("f 11.8=1 12.0=2\n@refused 1 1 reason", "line 4 of"),
        (
            "f 11.8=1 12.0=2\n\n@null-argument 1 2 3",
            "x.abi relates variant 1 to another: no name of their group has variant 1",
        ),
        (
            "f 11.8=1 12.0=2\n@passes 1 3",
            "x.abi relates variant 1 to another: no name of their group has variant 3",
        ),
    ] {
        let text = format!("@gpustub-abi 1\n@headers 11.8 12.0\n{line}\n");
        let (_, diagnostics) = AbiTable::parse("x.abi", &text);
        let [error] = &diagnostics[..] else {
            panic!("{line:?}: {diagnostics:?}");
        };
        assert!(error.message.starts_with(message), "{error:?}");
        let relations = ["@null-argument", "@passes", "@adapter", "@refused"];
        let is_relation = relations.iter().any(|keyword| line.contains(keyword));
        assert_eq!(
            error
                .help
                .as_ref()
                .is_some_and(|help| help.contains("0 to 5")),
            is_relation && error.message.starts_with("line"),
            "{error:?}"
        );
    }
    assert_eq!(AbiTable::parse("x.abi", "").1, []);
}

#[test]
fn releases_follow_from_own_numbers() {
    let text = "@gpustub-abi 1\n@headers 11.7 11.8 12.0\n@own-versions 10.7.2 10.9.0 11.0.1\n";
    let (table, diagnostics) = AbiTable::parse("x.abi", text);
    assert_eq!(diagnostics, []);
    // Each update of a release is above the last one of the release before.
    let expected = [
        (10_000, 11_070),
        (10_703, 11_080),
        (10_901, 12_000),
        (12_000, 0),
    ];
    assert_eq!(table.releases(), expected);
    assert_eq!(AbiTable::default().releases(), []);
    let text = "@gpustub-abi 1\n@headers 12.1 12.2\n@drivers 12.1=530 12.2=535 -=595\n";
    let (table, diagnostics) = AbiTable::parse("x.abi", text);
    assert_eq!(diagnostics, []);
    let expected = [(530, 12_010), (535, 12_020), (595, 0)];
    assert_eq!(table.releases(), expected);
    for library in Library::builtin_ids().filter_map(Library::builtin) {
        let query = library.version_query.as_ref();
        let has_own = query.is_some_and(|query| {
            [VersionEncoding::Property, VersionEncoding::Driver].contains(&query.encoding)
        });
        let has_releases = !library.abi.releases().is_empty();
        // Its numbers are its versions.
        let is_plain = library.id == "cusparselt";
        assert_eq!(has_own, has_releases || is_plain, "{}", library.id);
    }
}
