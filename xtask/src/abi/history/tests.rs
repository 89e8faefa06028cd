use gpustub_cdecl::{Clang, functions};

use super::super::reviewed::NONE;
use super::*;

/// Table of versions 1.0, 2.0, ..., each with declarations of the header and exports of the library.
fn table_of(versions: &[(&str, &str)], reviewed: &Reviewed) -> String {
    try_table_of(versions, reviewed).unwrap_or_else(|error| panic!("{error}"))
}

fn try_table_of(versions: &[(&str, &str)], reviewed: &Reviewed) -> Result<String, String> {
    text_of(&all_evidence(versions), reviewed)
}

fn all_evidence(versions: &[(&str, &str)]) -> Vec<Evidence> {
    (1..)
        .zip(versions)
        .map(|(major, (header, exports))| evidence_of(major, header, exports))
        .collect()
}

/// Evidence of version MAJOR.0 from declarations.
pub fn declared(major: u32, header: &str) -> Evidence {
    let functions = functions(&Clang::new("clang"), header, &[], &|_| true).unwrap();
    Evidence {
        version: Version::new(major, 0),
        own_version: None,
        headers: headers::Declarations {
            functions: functions.into_iter().collect(),
            ..headers::Declarations::default()
        },
        exports: None,
    }
}

fn evidence_of(major: u32, header: &str, exports: &str) -> Evidence {
    Evidence {
        exports: Some(exports.split(' ').map(String::from).collect()),
        ..declared(major, header)
    }
}

fn text_of(evidence: &[Evidence], reviewed: &Reviewed) -> Result<String, String> {
    let text = history(evidence, reviewed, &[])?
        .table
        .to_text("", &Default::default(), |_| Vec::new());
    let lines: Vec<_> = text
        .lines()
        .skip(3)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    Ok(lines.join("\n"))
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn names_replace_others() {
    let int = "int gpuA(int);";
    let both = "int gpuA(int); int gpuA_v2(long);";
    let long = "int gpuA(long); int gpuB(void);";
    assert_eq!(
        table_of(
            &[
                (int, "gpuA gpuB"),
                (both, "gpuA gpuA_v2 gpuB"),
                (long, "gpuA gpuB")
            ],
            &NONE
        ),
        "gpuA 1.0=1 3.0=2\ngpuA_v2 2.0=2 3.0=-"
    );
    // The second header maps to the other name; the library keeps the first one unchanged.
    assert_eq!(
        table_of(
            &[
                (int, "gpuA"),
                ("int gpuA_v2(long);", "gpuA gpuA_v2"),
                (long, "gpuA")
            ],
            &NONE
        ),
        "gpuA 1.0=1 3.0=2\ngpuA_v2 2.0=2 3.0=-"
    );
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn names_side_by_side_are_equal_only_if_reviewed() {
    let both = "int gpuA(int); int gpuA_v2(int);";
    let versions = [(both, "gpuA gpuA_v2"), ("int gpuA(int);", "gpuA")];
    assert_eq!(table_of(&versions, &NONE), "");
    let reviewed = Reviewed {
        interchangeable: &[("gpuA", "gpuA_v2")],
        ..NONE
    };
    assert_eq!(
        table_of(&versions, &reviewed),
        "gpuA 1.0=1\ngpuA_v2 1.0=1 2.0=-"
    );
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn reviews_decide_where_headers_do_not() {
    let header = "int gpuA(int); int gpuA_ptsz(int);";
    let versions = [(header, "gpuA gpuA_ptsz"); 2];
    let bound = Reviewed {
        library_bound: &["gpuA"],
        ..NONE
    };
    assert_eq!(table_of(&versions, &NONE), "");
    assert_eq!(
        table_of(&versions, &bound),
        "gpuA 1.0=1 2.0=2\ngpuA_ptsz 1.0=1 2.0=2"
    );
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn superseded_declarations_have_the_meaning_of_others() {
    let (int, long) = ("int gpuA(int);", "int gpuA(long);");
    // Headers, and whether their declarations are superseded.
    for (headers, expected) in [
        (&[(int, false), (long, false)][..], "gpuA 1.0=1 2.0=2"),
        (&[(int, false), (long, true)], ""),
        (&[(int, true), (long, true)], ""),
        (
            &[(int, false), (long, true), (long, false)],
            "gpuA 1.0=1 3.0=2",
        ),
        (
            &[(long, true), (int, true), (long, false)],
            "gpuA 1.0=1 3.0=2",
        ),
    ] {
        let mut evidence = Vec::new();
        for (major, (header, is_superseded)) in (1..).zip(headers) {
            let mut version = evidence_of(major, header, "gpuA");
            if *is_superseded {
                version.headers.superseded.insert("gpuA".into());
            }
            evidence.push(version);
        }
        assert_eq!(text_of(&evidence, &NONE).unwrap(), expected, "{headers:?}");
    }
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn null_arguments_are_reviewed_and_fit() {
    let nullable = |argument| Reviewed {
        nullable: Box::leak(Box::new([("gpuA", argument)])),
        ..NONE
    };
    let old = "struct s { int a, b; }; int gpuA(int *, long); int gpuA_ptsz(int *, long);";
    let table_with = |arguments: &str, reviewed| {
        let new =
            format!("struct s {{ int a, b; }}; int gpuA({arguments}); int gpuA_ptsz({arguments});");
        let versions = [(old, "gpuA gpuA_ptsz"), (&new, "gpuA gpuA_ptsz")];
        try_table_of(&versions, &reviewed)
    };
    let fits = "int *, struct s *, long";
    assert_eq!(
        table_with(fits, NONE).unwrap(),
        "gpuA 1.0=1 2.0=2\ngpuA_ptsz 1.0=1 2.0=2"
    );
    assert_eq!(
        table_with(fits, nullable(1)).unwrap(),
        "@null-argument 1 2 1\ngpuA 1.0=1 2.0=2\n@null-argument 1 2 1\ngpuA_ptsz 1.0=1 2.0=2"
    );
    let seven = "int *, struct s *, long, int, int, int, int";
    for (arguments, argument, reason) in [
        (fits, 0, "argument 0: 4 bytes -> s of 8 bytes"),
        (fits, 2, "argument 2 is no pointer"),
        (fits, 5, "argument 5 is no pointer"),
        ("int *, long, long", 1, "argument 1 is no pointer"),
        (
            "int *, struct s *, int",
            1,
            "argument 1: 8 bytes -> 4 bytes",
        ),
        (
            "int *, struct s *, double",
            1,
            "not 6 integers and pointers",
        ),
        ("int *, struct s *, long, int", 1, "2 -> 3 arguments"),
        (seven, 1, "not 6 integers and pointers"),
        ("int *, long", 1, "0 pairs of variants fit: "),
    ] {
        let error = table_with(arguments, nullable(argument)).unwrap_err();
        assert!(
            error.starts_with("nullable: gpuA: 0 pairs of variants fit"),
            "{error}"
        );
        assert!(error.contains(reason), "{arguments}: {error}");
    }
    let versions = [("int gpuB(int);", "gpuB")];
    let error = try_table_of(&versions, &nullable(1)).unwrap_err();
    assert_eq!(error, "nullable: no version has gpuA");
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn marked_names_are_one_line() {
    let reviewed = Reviewed {
        mark: Some("_v2"),
        ..NONE
    };
    let old = "int gpuA(int); int gpuB(int); int gpuB_64(int);";
    let plain = "gpuA gpuB gpuB_64";
    let with_marked = "gpuA gpuB gpuB_64 gpuA_v2 gpuB_v2 gpuB_v2_64";
    let table = |argument: &str, new: &str, exports: &str| {
        let both = format!("{old} int gpuA_v2(int); int gpuB_v2(int); int gpuB_v2_64({argument});");
        let evidence = all_evidence(&[(old, plain), (&both, with_marked), (new, exports)]);
        let renamed = history(&evidence, &reviewed, &[])?.table.renamed;
        Ok::<_, String>((renamed, text_of(&evidence, &reviewed)?))
    };
    let renamed = Some(("_v2", Version::new(2, 0), Version::new(3, 0)));
    assert_eq!(table("int", old, plain), Ok((renamed, String::new())));
    // A function that changed is listed.
    let new = "int gpuA(long); int gpuB(int); int gpuB_64(int);";
    assert_eq!(
        table("int", new, plain),
        Ok((renamed, "gpuA 1.0=1 3.0=2\ngpuA_v2 2.0=1 3.0=-".to_owned()))
    );
    // A name that is another function than the plain one, or that stays.
    for (argument, exports, expected) in [
        ("long", plain, "gpuB_v2_64 is not gpuB_64"),
        ("int", with_marked, "gpuA_v2 has no end"),
    ] {
        let error = table(argument, old, exports).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}
