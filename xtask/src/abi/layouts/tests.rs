//! Layouts and copies of small structs, in versions 1.0, 2.0 and so on.

use gpustub_cdecl::Clang;
use gpustub_core::version::Version;

use super::data::Struct;
use super::{layout, section};

fn plain() -> Struct {
    Struct {
        name: "s".into(),
        ..Struct::default()
    }
}

fn generate(row: &Struct, versions: &[&str]) -> Result<String, String> {
    let clang = Clang::new("clang");
    let structs = std::slice::from_ref(row);
    let mut samples = Vec::new();
    for (major, text) in (1..).zip(versions) {
        let version = Version::new(major, 0);
        let read = layout::samples(&clang, text, &[], (version, version), structs)?;
        samples.extend(read.into_iter().flatten());
    }
    section(row, samples)
}

/// Layouts, fields and copies, without the parts that all have: `1_0 8, b 4; 1_0_to_2_0 0 0 4`.
fn summary(row: &Struct, versions: &[&str]) -> Result<String, String> {
    let text = generate(row, versions)?;
    let mut parts: Vec<String> = Vec::new();
    let mut mark = "";
    for line in text.lines() {
        if let Some(constant) = line.trim().strip_suffix(',') {
            let (name, value) = constant.split_once(" = ").unwrap();
            let name = name.strip_prefix("s_").unwrap();
            if let Some(layout_mark) = name.strip_suffix("_size") {
                mark = layout_mark;
                parts.push(format!("{mark} {value}"));
            } else {
                let field = name.strip_prefix(mark).unwrap();
                *parts.last_mut().unwrap() += &format!(", {} {value}", &field[1..]);
            }
        } else if let Some(name) = line.strip_prefix("static inline void copy_s_") {
            parts.push(name.split('(').next().unwrap().to_owned());
        } else if let Some(run) = line.trim().strip_prefix("COPY(") {
            let run = run.trim_end_matches(");").replace(", ", " ");
            *parts.last_mut().unwrap() += &format!(" {run},");
        }
    }
    let parts: Vec<_> = parts
        .iter()
        .map(|part| part.trim_end_matches(','))
        .collect();
    Ok(parts.join("; "))
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn sections_have_this_form() {
    let old = "struct s { int kept, clock; long size; };";
    let new = "struct s { int kept; long size; struct { int id; } node; };";
    let expected = "\
/* s_1_0: s in 1.0. */
enum {
    s_1_0_size = 16,
    s_1_0_clock = 4,
};
/* s_2_0: s in 2.0, 3.0. */
enum {
    s_2_0_size = 24,
    s_2_0_node_id = 16,
};

/* s, 1_0 and 2_0. Only in 1_0: clock. Only in 2_0: node.id. */
static inline void copy_s_1_0_to_2_0(void *to, const void *from)
{
    COPY(0, 0, 4);
    COPY(8, 8, 8);
}
static inline void copy_s_2_0_to_1_0(void *to, const void *from)
{
    COPY(0, 0, 4);
    COPY(8, 8, 8);
}
";
    assert_eq!(generate(&plain(), &[old, new, new]).unwrap(), expected);
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn fields_are_copied_and_nothing_else() {
    let cases = [
        // A field moves, another is added.
        (
            &[
                "struct s { int a, b; long c; };",
                "struct s { int a, n; int b; long c; };",
            ][..],
            "1_0 16; 2_0 24, n 4; 1_0_to_2_0 0 0 4, 8 4 4, 16 8 8; 2_0_to_1_0 0 0 4, 4 8 4, 8 16 8",
        ),
        // A field in reserved bytes makes another layout, since the function may write it. Reserved bytes are not
        // copied.
        (
            &[
                "struct s { int a; int reserved[3]; };",
                "struct s { int a, b; int reserved[2]; };",
                "struct s { int a, b; int reserved[6]; };",
            ],
            "1_0 16; 2_0 16, b 4; 3_0 32, b 4; 1_0_to_2_0 0 0 4; 2_0_to_1_0 0 0 4; 1_0_to_3_0 0 0 4; \
             3_0_to_1_0 0 0 4; 2_0_to_3_0 0 0 8; 3_0_to_2_0 0 0 8",
        ),
        (
            &[
                "struct s { int a; int reserved[3]; };",
                "struct s { int a, b; int reserved[2]; };",
                "struct s { int a; int reserved1[7]; };",
            ],
            "1_0 16; 2_0 16, b 4; 3_0 32; 1_0_to_2_0 0 0 4; 2_0_to_1_0 0 0 4; 1_0_to_3_0 0 0 4; \
             3_0_to_1_0 0 0 4; 2_0_to_3_0 0 0 4; 3_0_to_2_0 0 0 4",
        ),
        // The tail padding of the older one is a field of the newer one.
        (
            &[
                "struct s { long a; int b; };",
                "struct s { long a; int b, c; int reserved[8]; };",
            ],
            "1_0 16; 2_0 48, c 12; 1_0_to_2_0 0 0 12; 2_0_to_1_0 0 0 12",
        ),
        // Longer names are fields.
        (
            &[
                "struct s { int a, reservedBytes; };",
                "struct s { int a, reservedBytes; int hipReserved[9], pad; };",
            ],
            "1_0 8; 2_0 48; 1_0_to_2_0 0 0 8; 2_0_to_1_0 0 0 8",
        ),
        // The members of a union are copied together.
        (
            &[
                "struct s { int kind; union { struct { int a; long b; } x; int y; } u; };",
                "struct s { int kind; union { struct { int a; long b; } x; int y; short z; int reserved[8]; } u; };",
            ],
            "1_0 24; 2_0 40; 1_0_to_2_0 0 0 4, 8 8 4, 16 16 8; 2_0_to_1_0 0 0 4, 8 8 4, 16 16 8",
        ),
        // A longer one is not.
        (
            &[
                "struct s { union { int a; } u; };",
                "struct s { union { int a; char b[8]; } u; };",
            ],
            "1_0 4; 2_0 8, u_b 0; 1_0_to_2_0 0 0 4; 2_0_to_1_0 0 0 4",
        ),
        // A field grows.
        (
            &[
                "struct s { int a, width; };",
                "struct s { int a; long width; };",
            ],
            "1_0 8, width 4; 2_0 16, width 8; 1_0_to_2_0 0 0 4; 2_0_to_1_0 0 0 4",
        ),
        // An enumerator gets another number, another one is added.
        (
            &[
                "enum e { eA, eB }; struct s { int a; enum e b; };",
                "enum e { eA, eB, eC }; struct s { int a; enum e b; };",
                "enum e { eA, eB = 3 }; struct s { int a; enum e b; };",
            ],
            "1_0 8, b 4; 3_0 8, b 4; 1_0_to_3_0 0 0 4; 3_0_to_1_0 0 0 4",
        ),
        // Neighbours in one layout only.
        (
            &[
                "struct s { int a, b, c; };",
                "struct s { int b, a, c, d; };",
            ],
            "1_0 12; 2_0 16, d 12; 1_0_to_2_0 0 4 4, 4 0 4, 8 8 4; 2_0_to_1_0 0 4 4, 4 0 4, 8 8 4",
        ),
        // Bit-fields.
        (
            &[
                "struct s { int a; unsigned b : 1, c : 9; };",
                "struct s { int n, a; unsigned b : 1, c : 9; };",
            ],
            "1_0 8; 2_0 12, n 0; 1_0_to_2_0 4 0 6; 2_0_to_1_0 0 4 6",
        ),
        // The first layout returns.
        (
            &[
                "struct s { int a, b; };",
                "struct s { int a; };",
                "struct s { int a, b; };",
            ],
            "1_0 8, b 4; 2_0 4; 1_0_to_2_0 0 0 4; 2_0_to_1_0 0 0 4",
        ),
        // A field that two of three layouts have.
        (
            &[
                "struct s { int a; };",
                "struct s { int a, b; };",
                "struct s { int a, b, c; };",
            ],
            "1_0 4; 2_0 8, b 4; 3_0 12, b 4, c 8; 1_0_to_2_0 0 0 4; 2_0_to_1_0 0 0 4; \
             1_0_to_3_0 0 0 4; 3_0_to_1_0 0 0 4; 2_0_to_3_0 0 0 8; 3_0_to_2_0 0 0 8",
        ),
    ];
    for (versions, expected) in cases {
        assert_eq!(
            summary(&plain(), versions).as_deref(),
            Ok(expected),
            "{versions:#?}"
        );
    }
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn doubtful_structs_stop_the_generator() {
    let cases = [
        (
            [
                "struct s { int a, b; };",
                "struct s { int a; float b; int c; };",
            ],
            "1_0 and 2_0: b: integer -> float: if that is right, add it to `expected` in layouts.toml",
        ),
        (
            [
                "struct s { int a; long b; };",
                "struct s { int a; char *b; int c; };",
            ],
            "1_0 and 2_0: b: integer -> pointer: if that is right, add it to `expected` in layouts.toml",
        ),
        (
            ["struct s { int a, b[2]; };", "struct s { int a, b; };"],
            "1_0 and 2_0: b: array of integer -> integer: if that is right, add it to `expected` in layouts.toml",
        ),
        (
            [
                "struct s { struct { int x; long y; } a[2]; };",
                "struct s { struct { int x; long y; } a[2]; int b; };",
            ],
            "1_0 and 2_0: a: structs that would be copied with their padding",
        ),
        (
            [
                "struct s { int n; union { int a; int b; }; };",
                "struct s { int n; union { int a; }; int b; };",
            ],
            "1_0 and 2_0: byte 4 of 1_0 shares bytes with a field that is copied otherwise",
        ),
        (
            [
                "struct s { int n; union { int a; long b; }; };",
                "struct s { int n; union { int a; int b; }; };",
            ],
            "1_0 and 2_0: b shares bytes with a field that is copied otherwise",
        ),
        (
            [
                "struct s { unsigned a : 1; };",
                "struct s { unsigned a : 1, b : 1; long c; };",
            ],
            "1_0 and 2_0: b shares bytes with a field that is copied otherwise",
        ),
        (
            [
                "struct s { unsigned a : 1, b : 2; };",
                "struct s { unsigned b : 2, a : 1; int c; };",
            ],
            "1_0 and 2_0: a: bit 0 -> 2",
        ),
        (
            [
                "struct s { int a; };",
                "struct s { int a; unsigned b : 1; };",
            ],
            "b: a bit-field that is not copied",
        ),
        (
            ["struct s { int a; };", "struct s { int a, size; };"],
            "size: two constants are named s_2_0_size",
        ),
        (
            [
                "struct s { int a; };",
                "struct s { int a; struct { int d; } b_c; struct { int c_d; } b; };",
            ],
            "b.c_d: two constants are named s_2_0_b_c_d",
        ),
        (
            ["struct s { int a; };", "struct s { long b; };"],
            "1_0 and 2_0: no field is copied",
        ),
        (
            ["struct s { int a; };", "struct s { int b; };"],
            "1 layouts: nothing to adapt",
        ),
        (["struct t;", "struct s;"], "0 layouts: nothing to adapt"),
    ];
    for (versions, expected) in cases {
        let result = summary(&plain(), &versions);
        assert_eq!(result, Err(expected.to_owned()), "{versions:#?}");
    }
}

fn row(keys: &str) -> Struct {
    toml::from_str(&format!("library = 'gpu'\nname = 's'\n{keys}")).unwrap()
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn data_decides_where_headers_do_not() {
    let retyped = [
        "struct s { int a, b; };",
        "struct s { int a; float b; int c; };",
    ];
    assert_eq!(
        summary(&row("expected = ['b']"), &retyped).unwrap(),
        "1_0 8, b 4; 2_0 12, b 4, c 8; 1_0_to_2_0 0 0 4; 2_0_to_1_0 0 0 4"
    );
    assert_eq!(
        summary(&row("expected = ['b', 'c']"), &retyped),
        Err("`expected` has c, which needs no review".into())
    );
    let renamed = [
        "struct s { int a, b; };",
        "struct s { long n; struct { int b; } in; int a; };",
    ];
    assert_eq!(
        summary(&row("renamed = { b = 'in.b' }"), &renamed).unwrap(),
        "1_0 8; 2_0 16, n 0; 1_0_to_2_0 8 4 4, 12 0 4; 2_0_to_1_0 0 12 4, 4 8 4"
    );
    assert_eq!(
        summary(&row("renamed = { c = 'in.b' }"), &renamed),
        Err("`renamed` has c, which no version has".into())
    );
    let [t, both] = [
        "struct t { int a, b; };",
        "struct s { int a; }; struct t { int a, b; };",
    ];
    assert_eq!(
        summary(&row("tags = ['s', 't']"), &[t, both]).unwrap(),
        "1_0 8, b 4; 2_0 4; 1_0_to_2_0 0 0 4; 2_0_to_1_0 0 0 4"
    );
    let marked = row("tags = ['s', 't']\nmarks = { s = 'v1', t = 'v2' }");
    assert_eq!(
        summary(&marked, &[t, both]).unwrap(),
        "v2 8, b 4; v1 4; v2_to_v1 0 0 4; v1_to_v2 0 0 4"
    );
    assert_eq!(
        summary(&marked, &[t, both, "struct s { int a, b, c; };"]),
        Err("two layouts are named v1".into())
    );
    let versions = [both, t, "struct t { int a, b, c; };"];
    assert_eq!(
        summary(&row("tags = ['s', 't']\nsince = { t = '3.0' }"), &versions).unwrap(),
        "1_0 4; 3_0 12, b 4, c 8; 1_0_to_3_0 0 0 4; 3_0_to_1_0 0 0 4"
    );
    assert_eq!(
        summary(&row("since = { s = 'x' }"), &versions),
        Err("`since` of s: `x` is no version".into())
    );
}
