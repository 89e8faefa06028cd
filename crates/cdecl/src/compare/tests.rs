use super::*;
use crate::{Clang, functions};

/// Function declared by a header in one line.
fn declared(text: &str) -> DeclaredFunction {
    functions(&Clang::new("clang"), text, &[], &|_| true)
        .unwrap()
        .remove(0)
        .1
}

/// Difference between two declarations.
fn difference(older: &str, newer: &str) -> Option<String> {
    check_call(&declared(older), &declared(newer)).err()
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn incompatible_types_are_differences() {
    let cases = [
        ("int gpuA(int);", "int gpuA(int, int);", "1 -> 2 arguments"),
        (
            "int gpuA(int);",
            "int gpuA(long);",
            "argument 0: 4 bytes -> 8 bytes",
        ),
        (
            "void gpuA(int);",
            "int gpuA(int);",
            "result: nothing -> 4 bytes",
        ),
        (
            "int gpuA(long);",
            "int gpuA(double);",
            "argument 0: 8 bytes -> 8 bytes of a float",
        ),
        (
            "int gpuA(long *);",
            "int gpuA(int *);",
            "argument 0: 8 bytes -> 4 bytes",
        ),
        (
            "struct s { int a; }; int gpuA(int);",
            "struct s { int a; }; int gpuA(struct s);",
            "argument 0: 4 bytes -> s of 4 bytes",
        ),
        (
            "struct s { int a; }; struct t { const struct s *s; }; int gpuA(const struct t *);",
            "struct s { int a, b; }; struct t { const struct s *s; }; int gpuA(const struct t *);",
            "argument 0: t.s: s: 4 -> 8 bytes",
        ),
        (
            "struct s { int a, reserved; }; int gpuA(struct s *);",
            "struct s { int a, b; }; int gpuA(struct s *);",
            "argument 0: s.b takes reserved bytes",
        ),
        (
            "struct s { int a, b; }; int gpuA(struct s *);",
            "struct s { int b, a; }; int gpuA(struct s *);",
            "argument 0: s.a: byte 0 -> 4",
        ),
        (
            "struct s { int a; long b; }; int gpuA(struct s *);",
            "struct s { int a, c; long b; }; int gpuA(struct s *);",
            "argument 0: s.c takes padding",
        ),
        (
            "struct s { int a, b; }; int gpuA(struct s *);",
            "struct s { int a, reserved; }; int gpuA(struct s *);",
            "argument 0: s.b is gone",
        ),
        (
            "struct s { int a, b, reservedBytes; }; int gpuA(struct s *);",
            "struct s { int a, reservedBytes, c; }; int gpuA(struct s *);",
            "argument 0: s.reservedBytes: byte 8 -> 4",
        ),
        (
            "struct s { unsigned a : 3, b : 2; }; int gpuA(struct s *);",
            "struct s { unsigned a : 3, c : 1, b : 2; }; int gpuA(struct s *);",
            "argument 0: s.b: byte 0 -> 0",
        ),
        (
            "enum e { ONE, TWO }; int gpuA(enum e);",
            "enum e { ZERO, ONE, TWO }; int gpuA(enum e);",
            "argument 0: e: ONE 0 -> 1",
        ),
        (
            "typedef enum { ONE, TWO } e; int gpuA(e);",
            "typedef enum { ZERO, ONE, TWO } e; int gpuA(e);",
            "argument 0: e: ONE 0 -> 1",
        ),
        // Only the names of these show whether the last one counts the others.
        (
            "enum e { RED, GREEN, BLUE }; int gpuA(enum e);",
            "enum e { RED, GREEN, GREY, BLUE }; int gpuA(enum e);",
            "argument 0: e: BLUE 2 -> 3",
        ),
        // A maximum as an operation.
        (
            "enum e { opSum, opMax, opMin }; int gpuA(enum e);",
            "enum e { opMax, opSum, opMin }; int gpuA(enum e);",
            "argument 0: e: opMax 1 -> 0",
        ),
        (
            "enum e { A, E_NUM_X, B }; int gpuA(enum e);",
            "enum e { A, B = 2, E_NUM_X }; int gpuA(enum e);",
            "argument 0: e: E_NUM_X 1 -> 3",
        ),
        (
            "typedef enum { A_R_16 = 150, A_R_32 } old; int gpuA(int, old);",
            "typedef enum { B_R_32, B_R_16 = 2 } new; int gpuA(int, new);",
            "argument 1: old -> new: 16 150 -> 2",
        ),
        (
            "enum a { A_TYPE_X, A_TYPE_Y }; int gpuA(enum a);",
            "enum b { B_COLOR_RED, B_COLOR_GREEN }; int gpuA(enum b);",
            "argument 0: a -> b: 0 of 2 enumerators in common",
        ),
    ];
    for (older, newer, reason) in cases {
        assert_eq!(
            difference(older, newer).as_deref(),
            Some(reason),
            "{older}\n{newer}"
        );
    }
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn compatible_types_are_no_difference() {
    let cases = [
        (
            "int gpuA(const char *);",
            "typedef int status; status gpuA(char *name);",
        ),
        ("int gpuA(unsigned long);", "int gpuA(void *);"),
        (
            "struct s; int gpuA(struct s *);",
            "struct s { int a; }; int gpuA(struct s *);",
        ),
        ("int gpuA(int (*)(int));", "int gpuA(int (*)(long, long));"),
        (
            "struct s { int a, b; }; int gpuA(struct s *);",
            "typedef struct { int a, better; } t; int gpuA(t *);",
        ),
        (
            "struct s { int a; int reserved[7]; }; int gpuA(const struct s *);",
            "struct s { int a, b; int reserved[6]; }; int gpuA(const struct s *);",
        ),
        (
            "struct s { int a; union { int b; char pad[64]; } u; }; int gpuA(struct s *);",
            "struct s { int a; union { int b; int c[8]; char pad[64]; } u; }; int gpuA(struct s *);",
        ),
        (
            "struct s { int a; }; int gpuA(struct s *);",
            "struct s { union { int a; float f; }; }; int gpuA(struct s *);",
        ),
        (
            "struct s { struct s *next; }; int gpuA(struct s *);",
            "struct s { struct s *next; }; int gpuA(struct s *);",
        ),
        (
            "enum e { ONE, E_MAX }; int gpuA(enum e);",
            "enum e { ONE, TWO, E_MAX }; int gpuA(enum e);",
        ),
        (
            "enum e { ONE, eNumKinds, eForce = 0x7fffffff }; int gpuA(enum e);",
            "enum e { ONE, TWO, eNumKinds, eForce = 0x7fffffff }; int gpuA(enum e);",
        ),
        (
            "enum e { ONE, NUM_A, B = 100, NUM_B }; int gpuA(enum e);",
            "enum e { ONE, TWO, NUM_A, B = 100, C, NUM_B }; int gpuA(enum e);",
        ),
        (
            "enum e { A = 1, B = 2, A_FLAGS_MASK = 3 }; int gpuA(enum e);",
            "enum e { A = 1, B = 2, C = 4, A_FLAGS_MASK = 7 }; int gpuA(enum e);",
        ),
        (
            "enum a { A_OP_N = 111, A_OP_T }; int gpuA(enum a);",
            "enum b { BB_OP_N = 111, BB_OP_T, BB_OP_C }; int gpuA(enum b);",
        ),
        (
            "enum a { A_JIT_IN_CUBIN, A_JIT_IN_PTX, A_JIT_NUM_KINDS = 2 }; int gpuA(enum a);",
            "enum b { bJitInCubin, bJitInPtx, bJitInFat, bJitNumKinds }; int gpuA(enum b);",
        ),
        (
            "enum e { OPS = 3, OPS_V2 = 9 }; int gpuA(enum e);",
            "enum e { OPS_V1 = 3, OPS = 9 }; int gpuA(enum e);",
        ),
    ];
    for (older, newer) in cases {
        assert_eq!(difference(older, newer), None, "{older}\n{newer}");
    }
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn all_differences_are_listed() {
    let older = "struct s { int a, b, c; }; struct t { struct s *s; char p; };
        enum e { ONE, TWO, E_NUM_ALL }; enum e gpuA(struct t *, const struct s *, float);";
    let newer = "struct s { int a, x, b; }; struct t { struct s *s; char p, q; long r; };
        enum e { TWO, ONE, SIX, E_NUM_ALL }; enum e gpuA(struct t *, const struct s *, int);";
    let differences: Vec<_> = differences(&declared(older), &declared(newer), Reserved::Written)
        .iter()
        .map(|difference| (difference.kind, difference.to_string()))
        .collect();
    let expected = [
        (DifferenceKind::Enumerator, "result: e: ONE 0 -> 1"),
        (DifferenceKind::Enumerator, "result: e: TWO 1 -> 0"),
        (DifferenceKind::Size, "argument 0: t: 16 -> 24 bytes"),
        (DifferenceKind::Field, "argument 0: t.s: s.b: byte 4 -> 8"),
        (DifferenceKind::Padding, "argument 0: t.q takes padding"),
        (DifferenceKind::Field, "argument 1: s.b: byte 4 -> 8"),
        (
            DifferenceKind::Type,
            "argument 2: 4 bytes of a float -> 4 bytes",
        ),
    ];
    assert_eq!(
        differences,
        expected.map(|(kind, text)| (kind, text.to_owned()))
    );
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn the_number_of_differences_is_limited() {
    let [older, newer] = [0, 1].map(|first| {
        let fields: Vec<_> = (0..1000)
            .map(|n| format!("int x{};", (first + n) % 1000))
            .collect();
        declared(&format!(
            "struct s {{ {} }}; int gpuA(struct s *);",
            fields.concat()
        ))
    });
    let differences = differences(&older, &newer, Reserved::Written);
    assert_eq!(differences.len(), MAX_DIFFERENCES + 1);
    assert_eq!(differences[MAX_DIFFERENCES].kind, DifferenceKind::Limit);
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn the_depth_of_a_comparison_is_limited() {
    let mut chain = "struct s0 { int x; };".to_owned();
    for n in 1..2000 {
        chain += &format!("struct s{n} {{ struct s{} *p; }};", n - 1);
    }
    chain += "int gpuA(struct s1999 *);";
    let error = difference(&chain, &chain).unwrap();
    assert!(error.ends_with(": more than 256 types deep"), "{error}");

    for field in ["", "int x;"] {
        let mut text = format!("struct s0 {{ {field} }};");
        for n in 1..30 {
            text += &format!("struct s{n} {{ struct s{} a, b; }};", n - 1);
        }
        text += "int gpuA(struct s29 *);";
        assert_eq!(
            difference(&text, &text).unwrap(),
            "argument 0: s29: more than 65536 fields"
        );
    }

    let mut text = String::from("struct s0 { int x; };");
    for n in 1..300 {
        text += &format!("struct s{n} {{ struct s{} a; }};", n - 1);
    }
    text += "int gpuA(struct s299 *);";
    assert_eq!(
        difference(&text, &text).unwrap(),
        "argument 0: s299: more than 256 structs in each other"
    );

    // A field of 2^33 bits must be stored as one range.
    let large = "struct s { char a[1 << 30]; }; int gpuA(struct s *);";
    assert_eq!(difference(large, large), None);
}
