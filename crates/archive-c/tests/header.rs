//! Compares the header with the code: functions and their types, status codes, sizes.

const HEADER: &str = include_str!("../include/gpustub_archive.h");
const CODE: &str = include_str!("../src/lib.rs");
const HANDLES: &str = include_str!("../src/handle.rs");
const STATUSES: &str = include_str!("../src/status.rs");

/// A type of the code in C.
fn c_type(rust: &str) -> String {
    let pointers = [("*const ", "const "), ("*mut ", "")];
    for (mark, word) in pointers {
        if let Some(target) = rust.strip_prefix(mark) {
            let target = c_type(target);
            // `const` qualifies the pointee, whose type comes first, or a pointer.
            return match target.strip_suffix('*') {
                Some(_) => format!("{target}*"),
                None => format!("{word}{target} *"),
            };
        }
    }
    match rust {
        "c_char" => "char",
        "c_int" => "int",
        "c_void" => "void",
        "usize" => "size_t",
        "CArchive" => "struct gpustub_archive",
        "CView" => "struct gpustub_archive_view",
        "CMember" => "struct gpustub_archive_member",
        "CSymbols" => "struct gpustub_archive_symbols",
        other => panic!("no C type for {other}"),
    }
    .to_owned()
}

fn words(text: &str) -> String {
    let text = text.replace('*', " * ").replace(['(', ')', ','], " , ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn functions_have_the_same_types() {
    let mut code: Vec<_> = CODE
        .split("extern \"C\" fn ")
        .skip(1)
        .map(|rest| {
            let (name, rest) = rest.split_once('(').unwrap();
            let (arguments, rest) = rest.split_once(')').unwrap();
            let result = rest.trim_start_matches(" -> ").split_once(" {").unwrap().0;
            let arguments = arguments
                .split(',')
                .map(str::trim)
                .filter(|one| !one.is_empty());
            let arguments: Vec<_> = arguments
                .map(|one| {
                    let (name, of) = one.split_once(": ").unwrap();
                    format!("{} {name}", c_type(of))
                })
                .collect();
            words(&format!(
                "{} {name}({})",
                c_type(result),
                arguments.join(", ")
            ))
        })
        .collect();
    let mut header: Vec<_> = HEADER
        .lines()
        .filter(|line| line.starts_with("int ") || line.starts_with("const char *"))
        .map(|line| words(line.trim_end_matches(';')))
        .collect();
    code.sort();
    header.sort();
    assert!(code.len() > 20);
    assert_eq!(header, code);
}

#[test]
fn statuses_have_the_same_numbers() {
    let mut code: Vec<_> = STATUSES
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("const "))
        .map(|line| line.trim_end_matches(';').replace(": c_int", ""))
        .collect();
    let mut header: Vec<_> = HEADER
        .lines()
        .filter_map(|line| line.strip_prefix("    GPUSTUB_ARCHIVE_"))
        .map(|line| line.trim_end_matches(',').to_owned())
        .collect();
    code.sort();
    header.sort();
    assert_eq!(header, code);
}

#[test]
fn structs_have_the_same_sizes() {
    for (name, code) in [
        ("gpustub_archive", "CArchive"),
        ("gpustub_archive_view", "CView"),
        ("gpustub_archive_member", "CMember"),
        ("gpustub_archive_symbols", "CSymbols"),
    ] {
        let (_, rest) = HEADER
            .split_once(&format!("struct {name} {{ uint64_t opaque["))
            .unwrap();
        let (size, _) = rest.split_once(']').unwrap();
        assert!(
            HANDLES.contains(&format!("    {code}, {size}, b\"")),
            "{name}: {size}"
        );
        let bytes = size.parse::<usize>().unwrap() * 8;
        assert!(
            HEADER.contains(&format!("sizeof(struct {name}) == {bytes})")),
            "{name}"
        );
    }
}
