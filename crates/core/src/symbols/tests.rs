use super::*;
use crate::diag::{LineColumn, line_column};

const LIST: &str = "\
@gpustub-symbols 1
@soname libcudart.so.13
@machine x86_64
@releases 11.8 12.9 13.0
_ZN6helperEv weak
cudaBindTexture releases=11.8
cudaFree
cudaGetName returns=string
cudaNew returns=value:-1 releases=12.9-
cudaOld releases=11.8-12.9
fast kind=ifunc returns=null
hipGetDeviceProperties version=hip_4.2 compat
hipGetDeviceProperties version=hip_6.0
someTable kind=object size=64
someThread kind=tls weak version=V1 size=8 releases=11.8,13.0-
";

fn parse(text: &str) -> SymbolList {
    let (list, diagnostics) = SymbolList::parse("list.symbols", text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    list
}

#[test]
fn reads_and_writes_the_same() {
    let list = parse(LIST);
    assert_eq!(list.to_text(), LIST);
    assert_eq!(list.soname.as_deref(), Some("libcudart.so.13"));
    assert_eq!(
        list.lookup("cudaNew")[0].releases,
        [(Version::new(12, 9), Version::new(13, 0))]
    );
    assert_eq!(list.lookup("hipGetDeviceProperties").len(), 2);
    assert!(list.lookup("cudaFre").is_empty());
    assert!(list.lookup("zzz").is_empty());
}

#[test]
fn order_comments_and_line_ends_do_not_matter() {
    let mut lines: Vec<&str> = LIST.lines().collect();
    lines[4..].reverse();
    lines.insert(4, "# a comment");
    lines.insert(5, "   ");
    assert_eq!(parse(&lines.join("\r\n")), parse(LIST));
}

#[test]
fn functions_are_each_named_once() {
    let list = parse(LIST);
    let names: Vec<_> = list
        .functions()
        .map(|symbol| (symbol.name.as_str(), symbol.version.as_deref()))
        .collect();
    assert_eq!(
        names,
        [
            ("_ZN6helperEv", None),
            ("cudaBindTexture", None),
            ("cudaFree", None),
            ("cudaGetName", None),
            ("cudaNew", None),
            ("cudaOld", None),
            ("fast", None),
            ("hipGetDeviceProperties", Some("hip_6.0")),
        ]
    );
    let compat = parse("@gpustub-symbols 1\nf version=V2 compat\nf version=V1 compat\n");
    assert_eq!(
        compat
            .functions()
            .next()
            .and_then(|symbol| symbol.version.as_deref()),
        Some("V2")
    );
}

#[test]
fn normalised_lists_parse() {
    let mut list = SymbolList {
        symbols: ["b", "a", "b"]
            .iter()
            .enumerate()
            .map(|(index, name)| Symbol {
                name: (*name).into(),
                weak: index == 0,
                ..Symbol::default()
            })
            .collect(),
        ..SymbolList::default()
    };
    list.normalise();
    assert_eq!(parse(&list.to_text()), list);
    assert_eq!(list.symbols.len(), 2);
    assert!(!list.lookup("b")[0].weak, "the strong one stays");
}

#[test]
fn errors_have_the_location_of_the_mistake() {
    for (body, expected) in [
        (
            "f kind=func",
            "2:3 `kind=` takes one of ifunc, notype, object, tls",
        ),
        ("f wek", "2:3 unknown attribute `wek`"),
        ("f weak weak", "2:8 a second `weak`"),
        ("f size=8", "2:1 `f` is a function and has `size=`"),
        ("f kind=tls size=-1", "2:12 `size=` takes a number of bytes"),
        (
            "f kind=tls size=99999999999999999999999",
            "2:12 `size=` takes a number of bytes",
        ),
        ("f version=", "2:3 `version=` takes a symbol version"),
        ("f system=dos", "2:3 `system=` takes one of linux, freebsd"),
        (
            "f releases=11.8",
            "2:3 `releases=` takes ascending releases",
        ),
        (
            "@releases 11.8 12\nf releases=12-11.8",
            "3:3 `releases=` takes ascending releases",
        ),
        (
            "@releases 11.8 12\nf releases=12,11.8",
            "3:3 `releases=` takes ascending releases",
        ),
        (
            "f returns=text",
            "2:3 `returns=` takes one of status, null, string, void",
        ),
        ("f returns=zeroed-struct:0", "2:3 `returns=` takes one of"),
        ("f returns=zeroed-hfa:7", "2:3 `returns=` takes one of"),
        ("f returns=zeroed-hfa:80", "2:3 `returns=` takes one of"),
        ("f returns=value:2147483648", "2:3 `returns=` takes one of"),
        (
            "f kind=tls returns=null",
            "2:1 `f` is data and has `returns=`",
        ),
        (
            "f kind=object size=8 updates",
            "2:1 `f` is data and has `updates`",
        ),
        ("f callback=1", "2:1 `f` has `callback=` without `updates`"),
        (
            "f updates callback=12",
            "2:11 `callback=` takes the index of an argument, from 0 to 11",
        ),
        (
            "f copied",
            "2:1 `f` is `copied`, but only data of `kind=object`",
        ),
        (
            "f kind=tls size=8 copied",
            "2:1 `f` is `copied`, but only data of `kind=object`",
        ),
        (
            "f kind=object copied",
            "2:1 `f` is `copied` without a `size=` of 1 to 65536 bytes",
        ),
        (
            "_ZTV4Acme kind=object size=40 copied",
            "2:1 `_ZTV4Acme` describes a C++ type, whose address must be that in the library",
        ),
        ("@releases 12.0 11.8", "2:16 the releases are not ascending"),
        ("@releases twelve", "2:11 invalid release `twelve`"),
        ("@sonam x", "2:1 unknown line `@sonam`"),
        ("@soname", "2:1 `@soname` without a usable value"),
        ("@soname a\n@soname b", "3:1 a second `@soname`"),
        ("f\n@soname a", "3:1 `@soname` after the first symbol"),
        ("f\ng\nf", "4:1 `f` is listed a second time"),
        (
            "f version=V\nf version=V compat",
            "3:1 `f@V` is listed a second time",
        ),
        ("a\u{7}b", "2:1 invalid symbol name `a\\u{7}b`"),
    ] {
        let text = format!("@gpustub-symbols 1\n{body}\n");
        let (_, diagnostics) = SymbolList::parse("x", &text);
        let origin = diagnostics[0].origin.as_ref().expect("a place");
        let LineColumn { line, column } = line_column(&text, origin.span.start);
        let error = format!("{line}:{column} {}", diagnostics[0].message);
        assert!(error.starts_with(expected), "{body:?}: {error}");
        assert_eq!(diagnostics.len(), 1, "{body:?}: {diagnostics:?}");
    }
}

#[test]
fn the_format_line_decides() {
    for (text, code) in [
        ("", "malformed-symbol-list"),
        ("\n@gpustub-symbols 1\n", "malformed-symbol-list"),
        ("cudaFree\n", "malformed-symbol-list"),
        ("@gpustub-symbols 1 2\n", "malformed-symbol-list"),
        ("@gpustub-symbols 2\ncudaFree fancy\n", "unsupported-format"),
        ("\u{7f}ELF\u{2}\u{1}\u{1}\0\0\0", "malformed-symbol-list"),
    ] {
        let (list, diagnostics) = SymbolList::parse("x", text);
        assert_eq!(diagnostics.len(), 1, "{text:?}");
        assert_eq!(diagnostics[0].code.id, code, "{text:?}");
        assert!(list.symbols.is_empty());
    }
}

#[test]
fn garbage_is_not_reported_line_by_line() {
    let text = format!("@gpustub-symbols 1\n{}", "f oops\n".repeat(100_000));
    let (_, diagnostics) = SymbolList::parse("x", &text);
    assert!(
        (2..=40).contains(&diagnostics.len()),
        "{}",
        diagnostics.len()
    );
}

/// Uses the encoding of Windows editors.
#[test]
fn a_byte_order_mark_and_crlf_are_accepted() {
    let text = "\u{feff}@gpustub-symbols 1\r\nb\r\na\r\na\r\n";
    let (list, diagnostics) = SymbolList::parse("x", text);
    assert_eq!(list.to_text(), "@gpustub-symbols 1\na\nb\n");
    let origins: Vec<_> = diagnostics
        .iter()
        .filter_map(|diagnostic| diagnostic.origin.as_ref())
        .collect();
    assert_eq!(origins.len(), 1);
    let LineColumn { line, column } = line_column(text, origins[0].span.start);
    assert_eq!((line, column), (4, 1));
}
