use super::super::{Reserved, differences};
use crate::Clang;

/// Differences between two declarations of `gpuA`, with a guard or an entry of `behind`. A guarded one begins with `=`.
fn ruled(rules: &str, older: &str, newer: &str) -> Vec<String> {
    let text = format!("[x]\ninclude = []\n{rules}");
    let rules = &crate::known::parse(&text).expect(rules)["x"].rules;
    let [older, newer] = [older, newer].map(|header| {
        let is_requested = |name: &str| name == "gpuA";
        crate::headers::declared(&Clang::new("clang"), header, &[], &is_requested, rules)
            .unwrap()
            .remove(0)
            .1
    });
    differences(&older, &newer, Reserved::Written)
        .iter()
        .map(|difference| {
            let mark = if difference.guard.is_some() { "=" } else { "" };
            format!("{mark}{difference}")
        })
        .collect()
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn guards_hold_as_the_headers_show() {
    let version = "guards = [{ struct = 's*_t', version = 'version', macro = '*', words = 'w' }]";
    let size = "guards = [{ struct = 's_t', size = 'size', words = 'w' }]";
    let macro_ = "guards = [{ struct = 's_t', size = 'size', macro = 'S_SIZE', words = 'w' }]";
    let argument = "guards = [{ struct = 's_t', arguments = { gpuA = 1 }, words = 'w' }]";
    let creator = "guards = [{ struct = 's_t', creator = 'gpuNew', words = 'w' }]";
    let v1 = "typedef struct { int version, a; } s1_t; typedef s1_t s_t;
        \n#define s1 (sizeof(s1_t) | 1 << 24)\n int gpuA(s_t *);";
    let v2 = "typedef struct { int version, b; float a; } s2_t; typedef s2_t s_t;
        \n#define s2 (sizeof(s2_t) | 2 << 24)\n int gpuA(s_t *);";
    let s1 = "typedef struct { long size; int a; } s_t; int gpuA(s_t *);";
    let opaque =
        |size: u8, rest: &str| format!("typedef struct {{ long data[{size}]; }} s_t; {rest}");
    let create = "int gpuNew(s_t **); int gpuA(s_t *);";
    let cases: &[(&str, &str, &str, &[&str])] = &[
        (
            version,
            v1,
            v2,
            &[
                "=argument 0: s1_t: 8 -> 12 bytes",
                "=argument 0: s1_t.a: byte 4 -> 8",
            ],
        ),
        // The same number for another struct.
        (
            version,
            v1,
            &v2.replace("sizeof(s2_t) | 2", "8 | 1"),
            &[
                "argument 0: s1_t: 8 -> 12 bytes (s2 is 16777224 in both)",
                "argument 0: s1_t.a: byte 4 -> 8",
            ],
        ),
        (
            version,
            v1,
            &v2.replace("#define s2", "#define s3"),
            &[
                "argument 0: s1_t: 8 -> 12 bytes",
                "argument 0: s1_t.a: byte 4 -> 8",
            ],
        ),
        (
            version,
            v1,
            "typedef struct { int a, version, b; } s2_t;\n#define s2 9\nint gpuA(s2_t *);",
            &[
                "argument 0: s1_t: 8 -> 12 bytes",
                "argument 0: s1_t.version: byte 0 -> 4",
                "argument 0: s1_t.a: byte 4 -> 0",
            ],
        ),
        // The other argument has no version.
        (
            version,
            &v1.replace("int version, a;", "int version; long *a;")
                .replace("s_t *", "s_t *, long *"),
            &v1.replace("int version, a;", "int version; int *a;")
                .replace("1 << 24", "2 << 24")
                .replace("s_t *", "s_t *, int *"),
            &[
                "=argument 0: s1_t.a: 8 bytes -> 4 bytes",
                "argument 1: 8 bytes -> 4 bytes",
            ],
        ),
        // An array has elements of one size.
        (
            version,
            &v1.replace("s_t *", "s_t (*)[2]"),
            &v2.replace("s_t *", "s_t (*)[2]"),
            &["argument 0: an array of 16 bytes -> an array of 24 bytes"],
        ),
        (
            size,
            s1,
            "typedef struct { long size; int a; long b; } s_t; int gpuA(s_t *);",
            &["=argument 0: s_t: 16 -> 24 bytes"],
        ),
        (
            size,
            "typedef struct { long size; int a; long b; } s_t; int gpuA(s_t *);",
            s1,
            &["=argument 0: s_t: 24 -> 16 bytes"],
        ),
        // A library cannot know from the size what is in the padding of older structs.
        (
            size,
            s1,
            "typedef struct { long size; int a, b; long c; } s_t; int gpuA(s_t *);",
            &[
                "=argument 0: s_t: 16 -> 24 bytes",
                "argument 0: s_t.b takes padding",
            ],
        ),
        (
            size,
            s1,
            "typedef struct { long size; long b; int a; } s_t; int gpuA(s_t *);",
            &[
                "=argument 0: s_t: 16 -> 24 bytes",
                "argument 0: s_t.a: byte 8 -> 16",
                "argument 0: s_t.b takes padding",
            ],
        ),
        (
            size,
            "typedef struct { long size; char a[4]; long b; } s_t; int gpuA(s_t *);",
            "typedef struct { long size; char a[8]; long b, c; } s_t; int gpuA(s_t *);",
            &[
                "=argument 0: s_t: 24 -> 32 bytes",
                "argument 0: s_t.a: 4 -> 8 bytes",
            ],
        ),
        (
            size,
            s1,
            "typedef struct { long length; int a; long b; } s_t; int gpuA(s_t *);",
            &["argument 0: s_t: 16 -> 24 bytes"],
        ),
        (
            size,
            "typedef struct { long size; struct { int a; } b[2]; } s_t; int gpuA(s_t *);",
            "typedef struct { long size; struct { long a; } b[2]; } s_t; int gpuA(s_t *);",
            &[
                "=argument 0: s_t: 16 -> 24 bytes",
                "argument 0: s_t.b: a struct: 4 -> 8 bytes",
                "argument 0: s_t.b: a struct.a: 4 -> 8 bytes",
                "argument 0: s_t.b: 8 -> 16 bytes",
            ],
        ),
        (
            macro_,
            &format!("#define S_SIZE 12\n{s1}"),
            "#define S_SIZE 16\ntypedef struct { long size; int a, b; } s_t; int gpuA(s_t *);",
            &["=argument 0: s_t.b takes padding"],
        ),
        (
            macro_,
            &format!("#define S_SIZE 12\n{s1}"),
            "#define S_SIZE 12\ntypedef struct { long size; int a; long b; } s_t; int gpuA(s_t *);",
            &["argument 0: s_t: 16 -> 24 bytes (S_SIZE is 12 in both)"],
        ),
        (
            argument,
            &opaque(2, "int gpuA(s_t *, unsigned long);"),
            &opaque(3, "int gpuA(s_t *, unsigned long);"),
            &[
                "=argument 0: s_t: 16 -> 24 bytes",
                "=argument 0: s_t.data: 16 -> 24 bytes",
            ],
        ),
        (
            argument,
            &opaque(2, "int gpuA(s_t *, int);"),
            &opaque(3, "int gpuA(s_t *, int);"),
            &[
                "argument 0: s_t: 16 -> 24 bytes",
                "argument 0: s_t.data: 16 -> 24 bytes",
            ],
        ),
        (
            &argument.replace("gpuA", "gpuB"),
            &opaque(2, "int gpuA(s_t *, unsigned long);"),
            &opaque(3, "int gpuA(s_t *, unsigned long);"),
            &[
                "argument 0: s_t: 16 -> 24 bytes",
                "argument 0: s_t.data: 16 -> 24 bytes",
            ],
        ),
        (
            creator,
            &opaque(2, create),
            &opaque(3, create),
            &[
                "=argument 0: s_t: 16 -> 24 bytes",
                "=argument 0: s_t.data: 16 -> 24 bytes",
            ],
        ),
        // The struct is in the caller's memory.
        (
            creator,
            &opaque(2, create),
            &opaque(3, "int gpuNew(s_t *); int gpuA(s_t *);"),
            &[
                "argument 0: s_t: 16 -> 24 bytes",
                "argument 0: s_t.data: 16 -> 24 bytes",
            ],
        ),
        (
            creator,
            &opaque(2, "int gpuNew(s_t **); int gpuA(s_t);"),
            &opaque(3, "int gpuNew(s_t **); int gpuA(s_t);"),
            &[
                "argument 0: s_t: 16 -> 24 bytes",
                "argument 0: s_t.data: 16 -> 24 bytes",
            ],
        ),
    ];
    for (rules, older, newer, expected) in cases {
        assert_eq!(ruled(rules, older, newer), *expected, "{older}\n{newer}");
    }
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn types_behind_untyped_pointers_are_compared() {
    let behind = "behind = { gpuA = ['data_t', '*_params', 'record#'] }";
    let guarded =
        format!("{behind}\nguards = [{{ struct = 'record*', reader = 'gpuA', words = 'w' }}]");
    let older = "struct other { int a; }; typedef struct { struct other *o; } data_t;
        typedef struct { int a; } x_params; typedef struct { int a; } record2;
        int gpuA(void (*)(const void *));";
    let newer = "struct other { long a; }; typedef struct { struct other *o; } data_t;
        typedef struct { int a, b; } x_params; typedef struct { int a; } record2;
        typedef struct { int a, b; } record10; int gpuA(void (*)(const void *));";
    assert_eq!(ruled("", older, newer), [""; 0]);
    assert_eq!(
        ruled(behind, older, newer),
        [
            "`void *`: record2: 4 -> 8 bytes",
            "`void *`: x_params: 4 -> 8 bytes"
        ]
    );
    assert_eq!(
        ruled(&guarded, older, newer),
        [
            "=`void *`: record2: 4 -> 8 bytes",
            "`void *`: x_params: 4 -> 8 bytes"
        ]
    );
    let moved = newer.replace("{ int a, b; } record10", "{ int b, a; } record10");
    assert_eq!(
        ruled(&guarded, older, &moved)[..2],
        [
            "=`void *`: record2: 4 -> 8 bytes",
            "`void *`: record2.a: byte 0 -> 4"
        ]
    );
}
