//! Programs of `tests/traps`, unchanged, for Windows.

use gpustub_tests::Result;

use crate::trial::{Abi, Trial, expect_errors};

/// Trap of `tests/traps`, by its directory.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    flags: &'static [&'static str],
    library_flags: &'static [&'static str],
    /// Links the stubs of two packages: the first has every other function, the second all.
    merged: bool,
    abi: Abi,
    /// Compiles the library again with these flags before the program runs.
    replacement: Option<&'static [&'static str]>,
    missing: bool,
    environment: &'static [(&'static str, &'static str)],
    errors: &'static [&'static str],
    times: usize,
}

const CASE: Case = Case {
    name: "",
    flags: &[],
    library_flags: &[],
    merged: false,
    abi: Abi::Gnu,
    replacement: None,
    missing: false,
    environment: &[],
    errors: &[],
    times: 1,
};

const TRACED: &[(&str, &str)] = &[("GPUSTUB_TRACE", "1")];

/// Builds and runs the program of a case.
fn passes(cases: &[Case]) -> Result<()> {
    for case in cases {
        check(case).map_err(|failure| format!("{}: {failure:?}", case.name))?;
    }
    Ok(())
}

fn check(case: &Case) -> Result<()> {
    let trial = Trial::with(case.abi)?;
    let directory = gpustub_tests::repository()
        .join("tests/traps")
        .join(case.name);
    let extension = if directory.join("main.cc").exists() {
        "cc"
    } else {
        "c"
    };
    let source = |name: &str| format!("traps/{}/{name}.{extension}", case.name);
    let flags = [case.flags, case.library_flags].concat();
    let library = trial.library("trap1.dll", &source("lib"), &flags)?;
    let list = trial.functions("trap1.dll")?;
    let mut archives = Vec::new();
    if case.merged {
        let mut half = list.clone();
        half.symbols = half.symbols.into_iter().step_by(2).collect();
        archives.push(trial.trap_stubs("first", &half, None)?);
    }
    archives.push(trial.trap_stubs("", &list, None)?);
    trial.link("program.exe", &[&source("main")], &archives, case.flags)?;
    if case.missing {
        std::fs::remove_file(library)?;
    } else if let Some(replacement) = case.replacement {
        trial.library("trap1.dll", &source("lib"), replacement)?;
    }
    for _ in 0..case.times {
        let ran = trial.run(case.environment)?;
        if !ran.stdout.ends_with("passed\n") || case.errors.is_empty() != ran.stderr.is_empty() {
            return Err(ran.error("unexpected output"));
        }
        expect_errors(&ran, case.errors)?;
    }
    Ok(())
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn arguments_and_results() -> Result<()> {
    let case = Case {
        name: "arguments",
        ..CASE
    };
    passes(&[
        case,
        Case {
            merged: true,
            ..case
        },
        Case {
            environment: TRACED,
            errors: &["trap_many = 1325\n"],
            ..case
        },
    ])
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn variadic_functions() -> Result<()> {
    let case = Case {
        name: "variadic",
        ..CASE
    };
    passes(&[
        case,
        Case {
            environment: TRACED,
            errors: &["trap_format = 22\n"],
            ..case
        },
    ])
}

/// With the compiler's exceptions library as a DLL, as needed to catch what another image throws.
#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn exceptions() -> Result<()> {
    let case = Case {
        name: "exceptions",
        library_flags: &["-DWITHOUT_CONSTRUCTOR"],
        ..CASE
    };
    passes(&[
        case,
        Case {
            environment: TRACED,
            errors: &["trap_throw(", "trap_call = 7\n"],
            ..case
        },
    ])
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn threads_that_race_for_the_first_call() -> Result<()> {
    let case = Case {
        name: "race",
        flags: &["-DTHREADS=16", "-pthread", "-static"],
        environment: &[("GPUSTUB_LOG", "json")],
        errors: &["trap1.dll"],
        times: 5,
        ..CASE
    };
    passes(&[
        case,
        Case {
            merged: true,
            ..case
        },
        Case {
            environment: TRACED,
            errors: &["trap_add = 2\n"],
            times: 1,
            ..case
        },
    ])
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn state_that_a_first_call_preserves() -> Result<()> {
    let errno = Case {
        name: "errno",
        ..CASE
    };
    let floating_point = Case {
        name: "floating-point",
        ..CASE
    };
    passes(&[
        errno,
        Case {
            flags: &["-DABSENT"],
            missing: true,
            ..errno
        },
        floating_point,
        Case {
            environment: TRACED,
            errors: &["trap_divide"],
            ..floating_point
        },
    ])
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn addresses_of_functions() -> Result<()> {
    let case = Case {
        name: "linking",
        ..CASE
    };
    passes(&[
        case,
        Case {
            flags: &["-O2", "-flto"],
            ..case
        },
        Case {
            flags: &["-DABSENT"],
            missing: true,
            ..case
        },
    ])
}

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn tracing_and_failures() -> Result<()> {
    let case = Case {
        name: "trace",
        ..CASE
    };
    passes(&[
        Case {
            environment: TRACED,
            errors: &[
                "trap_add(0x1, 0x2, ",
                "trap_add = 3\n",
                "trap_negative = -5\n",
                "called 2 times trap_add\n",
            ],
            ..case
        },
        Case {
            environment: &[("GPUSTUB_TRACE", "0")],
            ..case
        },
        Case {
            flags: &["-DFAILING"],
            environment: &[("GPUSTUB_FAIL", "trap_add:2=-7, trap_negative=9")],
            ..case
        },
        Case {
            merged: true,
            environment: &[("GPUSTUB_FAIL", "trap_ad=1,trap_add:x=1")],
            errors: &[
                "no function of that name by a stub: trap_ad\n",
                "trap_add:x=1\n",
            ],
            ..case
        },
    ])
}

/// The stubs as cl's options and the ABI of MSVC make them.
#[test]
#[ignore = "needs mingw-w64, clang and wine: ./tests/run"]
fn objects_of_the_abi_of_msvc() -> Result<()> {
    let case = Case {
        abi: Abi::Msvc,
        ..CASE
    };
    let arguments = Case {
        name: "arguments",
        ..case
    };
    passes(&[
        arguments,
        Case {
            merged: true,
            environment: TRACED,
            errors: &["trap_many = 1325\n"],
            ..arguments
        },
        Case {
            name: "exceptions",
            library_flags: &["-DWITHOUT_CONSTRUCTOR"],
            ..case
        },
        Case {
            name: "race",
            flags: &["-DTHREADS=16", "-pthread", "-static"],
            environment: &[("GPUSTUB_LOG", "json")],
            errors: &["trap1.dll"],
            times: 3,
            ..case
        },
        Case {
            name: "errno",
            flags: &["-DABSENT"],
            missing: true,
            ..case
        },
        Case {
            name: "floating-point",
            ..case
        },
        Case {
            name: "linking",
            ..case
        },
        Case {
            name: "trace",
            flags: &["-DFAILING"],
            environment: &[("GPUSTUB_FAIL", "trap_add:2=-7, trap_negative=9")],
            ..case
        },
    ])
}

#[test]
#[ignore = "needs zig and wine for ARM64: tests/run --all"]
fn heavy_programs_for_arm64() -> Result<()> {
    let case = Case {
        abi: Abi::Arm64,
        ..CASE
    };
    let named = |name| Case { name, ..case };
    let traced = |name, errors| Case {
        environment: TRACED,
        errors,
        ..named(name)
    };
    passes(&[
        named("arguments"),
        Case {
            merged: true,
            ..traced("arguments", &["trap_many = 1325\n"])
        },
        named("variadic"),
        traced("variadic", &["trap_format = 22\n"]),
        Case {
            library_flags: &["-DWITHOUT_CONSTRUCTOR"],
            ..named("exceptions")
        },
        Case {
            library_flags: &["-DWITHOUT_CONSTRUCTOR"],
            ..traced("exceptions", &["trap_throw(", "trap_call = 7\n"])
        },
        Case {
            flags: &["-DTHREADS=16", "-pthread", "-static"],
            environment: &[("GPUSTUB_LOG", "json")],
            errors: &["trap1.dll"],
            times: 3,
            ..named("race")
        },
        Case {
            flags: &["-DABSENT"],
            missing: true,
            ..named("errno")
        },
        named("floating-point"),
        traced("floating-point", &["trap_divide"]),
        named("linking"),
        Case {
            flags: &["-DABSENT"],
            missing: true,
            ..named("linking")
        },
        traced(
            "trace",
            &[
                "trap_add(0x1, 0x2, ",
                "trap_negative = -5\n",
                "called 2 times trap_add\n",
            ],
        ),
        Case {
            flags: &["-DFAILING"],
            environment: &[("GPUSTUB_FAIL", "trap_add:2=-7, trap_negative=9")],
            ..named("trace")
        },
    ])
}
