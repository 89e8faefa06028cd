//! Fake libraries and callers, as C, out of the same declarations as the gates.
//!
//! A fake library has each gated function of its version, which writes down its arguments, fills
//! what it may write and reads what it may read as its own header has them. A caller calls each of
//! them by the names of the header that it is compiled with, and guards what it passes. So a caller
//! and a library that misunderstand each other show it. What they are made of is in
//! `xtask/programs/*.h`.
//!
//! ```text
//! cc -shared -fPIC -Wl,-soname,libcudart.so.12 -o libcudart.so.12 fake-12.9.c
//! cc -isystem xtask/headers -isystem $WHEEL/include -o caller caller-11.8.c $STUBS
//! GPUSTUB_FAKE_LOG=log ./caller
//! ```
//!
//! The caller prints for each call `call SOURCE EXPORTED`, `passed EXPORTED ARGUMENTS`, and `result
//! STATUS filled|untouched|partly|overrun` or `signal N`; the library adds `NAME ARGUMENTS` to the
//! log. A call was understood if both say the same of the arguments and all was filled. `-per-thread`
//! ones take `-DCUDA_API_PER_THREAD_DEFAULT_STREAM`; with `-DWEAK` and no stubs, `LD_PRELOAD` names
//! the library, and what it lacks is `absent`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use gpustub_core::version::Version;

use super::headers::{self, Declared};
use super::history::{Evidence, declarations, history};
use super::recipes::RECIPES;
use super::reviewed::Reviewed;
use super::text::Gates;
use super::types::{Type, TypeId, Types};

/// Versions of the fake libraries, and of the headers that their callers are compiled with.
const PROGRAMS: [Version; 3] = [
    Version::new(11, 8),
    Version::new(12, 9),
    Version::new(13, 5),
];

/// The modes of the callers, by the ends of their names.
const CALLERS: [(&str, &[&str]); 2] = [
    ("", &[]),
    ("-per-thread", &["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]),
];

/// `cargo xtask gate-programs`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let (folder, rest) = match arguments {
        [folder, rest @ ..] if !folder.starts_with("--") => (folder, rest),
        _ => return Err("`gate-programs` takes a folder to write to".into()),
    };
    let crate::recipes::Options {
        check, components, ..
    } = crate::recipes::Options::parse("gate-programs", rest)?;
    if check {
        return Err("`gate-programs` does not know `--check`".into());
    }
    write_programs(Path::new(folder), &components)?;
    Ok(true)
}

/// Writes the fake libraries and their callers into a folder.
fn write_programs(folder: &Path, components: &Path) -> Result<(), String> {
    let recipe = RECIPES.iter().find(|recipe| recipe.id == "cudart");
    let recipe = recipe.ok_or("cudart has no recipe")?;
    let evidence = recipe.evidence(components, |version| PROGRAMS.contains(&version))?;
    let gates = history(&evidence, &recipe.reviewed).gates;
    let mut files = vec![
        (
            "fake.h".to_owned(),
            include_str!("../../programs/fake.h").to_owned(),
        ),
        (
            "caller.h".to_owned(),
            include_str!("../../programs/caller.h").to_owned(),
        ),
    ];
    for (index, Evidence { version, .. }) in evidence.iter().enumerate() {
        let fake = fake(&gates, &evidence, index, &recipe.reviewed);
        files.push((format!("fake-{version}.c"), fake));
        for (end, mode) in CALLERS {
            let include = recipe.include(components, *version)?;
            let read = recipe.headers.read_modes(&include, &[mode])?;
            let caller = caller(&gates, recipe.header, *version, &read);
            files.push((format!("caller-{version}{end}.c"), caller));
        }
    }
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| format!("`{}`: {e}", path.display()))?;
    }
    Ok(())
}

/// What is done with an argument. Sizes are in bytes.
enum Argument {
    Integer(u64),
    /// A struct by value.
    Value(u64),
    /// A handle, text or buffer, which is passed and not looked at.
    Address,
    Input(u64),
    Output(u64),
}

impl Argument {
    fn new(types: &Types, id: TypeId) -> Self {
        let pointee = match types.get(id) {
            Type::Pointer(pointee) => *pointee,
            Type::Record { size, .. } => return Self::Value(size / 8),
            other => return Self::Integer(size(other) / 8),
        };
        match (types.get(pointee), types.is_constant(pointee)) {
            // Text, or the buffer for one.
            (Type::Integer(8), _) => Self::Address,
            (of, constant) => match (size(of) / 8, constant) {
                (0, _) => Self::Address,
                (size, true) => Self::Input(size),
                (size, false) => Self::Output(size),
            },
        }
    }

    /// How C spells a type that is passed in the same way.
    fn spelled(&self) -> String {
        match self {
            Self::Integer(1) => "unsigned char".into(),
            Self::Integer(2) => "unsigned short".into(),
            Self::Integer(4) => "unsigned int".into(),
            Self::Integer(_) => "unsigned long".into(),
            Self::Value(size) => format!("struct value{size}"),
            _ => "void *".into(),
        }
    }
}

/// In bits; 0 of what is not known.
fn size(of: &Type) -> u64 {
    match of {
        Type::Integer(size) | Type::Float(size) => *size,
        Type::Array { size, .. } | Type::Enum { size, .. } => *size,
        Type::Record { size, members, .. } => members.as_ref().map_or(0, |_| *size),
        Type::Pointer(_) => 64,
        Type::Void | Type::Function(_) => 0,
    }
}

fn arguments(declared: &Declared) -> Vec<Argument> {
    let Type::Function(parts) = declared.types.get(declared.function) else {
        return Vec::new();
    };
    let parts = parts.iter().skip(1);
    parts
        .map(|id| Argument::new(&declared.types, *id))
        .collect()
}

/// `struct valueN`, for structs that are passed by value: their bytes go where its go.
fn values<'a>(functions: impl Iterator<Item = &'a Declared>) -> String {
    let sizes: BTreeSet<u64> = functions
        .flat_map(arguments)
        .filter_map(|argument| match argument {
            Argument::Value(size) => Some(size),
            _ => None,
        })
        .collect();
    let lines = sizes.iter().map(|size| {
        // The alignment of its integers decides the registers that a struct is passed in.
        format!(
            "struct value{size} {{ unsigned int of[{}]; }};\n",
            size.div_ceil(4)
        )
    });
    lines.collect()
}

/// A library of the version at `index`.
fn fake(gates: &Gates, evidence: &[Evidence], index: usize, reviewed: &Reviewed) -> String {
    let version = evidence[index].version;
    let mut functions = Vec::new();
    for group in gates.groups.iter().filter(|group| group.is_listed) {
        for name in group.names.keys() {
            let known = declarations(name, evidence, reviewed);
            if let Some(declared) = known.and_then(|known| known[index].clone()) {
                functions.push((name, declared));
            }
        }
    }
    let mut text =
        format!("/* Made by `cargo xtask gate-programs`: {version}. */\n#include \"fake.h\"\n\n");
    text += &values(functions.iter().map(|(_, declared)| declared));
    let _ = write!(
        text,
        "\nint cudaRuntimeGetVersion(int *version)\n{{\n    *version = {};\n    return 0;\n}}\n",
        version.code()
    );
    for (name, declared) in functions {
        let arguments = arguments(&declared);
        let (mut list, mut body) = (Vec::new(), String::new());
        for (at, argument) in arguments.iter().enumerate() {
            list.push(format!("{} a{at}", argument.spelled()));
            body += "    ";
            body += &match argument {
                Argument::Integer(_) => format!("integer({at}, a{at});\n"),
                Argument::Value(size) => format!("value({at}, &a{at}, {size});\n"),
                Argument::Address => format!("address({at}, a{at});\n"),
                Argument::Input(size) => format!("input({at}, a{at}, {size});\n"),
                Argument::Output(size) => format!("output({at}, a{at}, {size});\n"),
            };
        }
        let list = if list.is_empty() {
            "void".into()
        } else {
            list.join(", ")
        };
        let _ = write!(
            text,
            "\nint {name}({list})\n{{\n    begin(\"{name}\");\n{body}    return end();\n}}\n"
        );
    }
    text
}

/// A program for one set of macros, out of the headers as they are with these.
fn caller(gates: &Gates, header: &str, version: Version, read: &headers::Version) -> String {
    let mut calls = Vec::new();
    for group in gates.groups.iter().filter(|group| group.is_listed) {
        for (name, declared) in &read.functions {
            if !group.names.contains_key(name) {
                continue;
            }
            // By each name of the source that means it, or by its own if no macro takes that.
            let macros = read.meant.iter().filter(|(_, meant)| meant.contains(name));
            let mut sources: Vec<&String> = macros.map(|(source, _)| source).collect();
            if !read.meant.contains_key(name) {
                sources.push(name);
            }
            calls.extend(sources.into_iter().map(|source| (source, name, declared)));
        }
    }
    let mut text = format!(
        "/* Made by `cargo xtask gate-programs`: {version}. */\n#include \"caller.h\"\n\n#include <{header}>\n\n"
    );
    text += &values(calls.iter().map(|(_, _, declared)| *declared));
    // So that a library that lacks some can be tried without stubs.
    text += "\n#ifdef WEAK\n";
    for name in calls
        .iter()
        .map(|(_, name, _)| name)
        .collect::<BTreeSet<_>>()
    {
        let _ = writeln!(text, "#pragma weak {name}");
    }
    text += "#endif\n";
    let mut table = String::new();
    for (number, (source, name, declared)) in calls.into_iter().enumerate() {
        let arguments = arguments(declared);
        let _ = write!(
            text,
            "\nstatic void call_{number}(void)\n{{\n    begin(\"{name}\");\n"
        );
        for (at, argument) in arguments.iter().enumerate() {
            let spelled = argument.spelled();
            let _ = match argument {
                Argument::Integer(size) => {
                    writeln!(text, "    {spelled} a{at} = integer({at}, {size});")
                }
                Argument::Value(size) => {
                    writeln!(
                        text,
                        "    {spelled} a{at};\n    value({at}, &a{at}, {size});"
                    )
                }
                Argument::Address => writeln!(text, "    {spelled} a{at} = address({at});"),
                Argument::Input(size) => {
                    writeln!(text, "    {spelled} a{at} = input({at}, {size});")
                }
                Argument::Output(size) => {
                    writeln!(text, "    {spelled} a{at} = output({at}, {size});")
                }
            };
        }
        let types: Vec<_> = arguments.iter().map(Argument::spelled).collect();
        let names: Vec<_> = (0..arguments.len()).map(|at| format!("a{at}")).collect();
        let types = if types.is_empty() {
            "void".into()
        } else {
            types.join(", ")
        };
        let names = names.join(", ");
        let _ = write!(
            text,
            // GCC would trap a call through the cast name itself.
            "    int (*function)({types}) = (void *){source};\n    ready((void *)function);\n    done(function({names}));\n}}\n"
        );
        let _ = writeln!(table, "    {{\"{source} {name}\", call_{number}}},");
    }
    let _ = write!(
        text,
        "\nstatic const struct call calls[] = {{\n{table}}};\n\nint main(void)\n{{\n    return run(calls, sizeof calls / sizeof *calls);\n}}\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::headers::STAND_INS;
    use super::super::tests::{components, shipped};
    use super::*;

    /// Runs a command that must succeed.
    fn output(command: &mut Command) -> String {
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}\n{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    #[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their folder (tests/run)"]
    fn callers_and_fake_libraries_agree_just_where_the_gates_say_so() {
        let components = components();
        let recipe = RECIPES.iter().find(|recipe| recipe.id == "cudart").unwrap();
        let gates = Gates::parse(&shipped(recipe)).unwrap();
        let folder = std::env::temp_dir().join(format!("gpustub-gates-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        write_programs(&folder, &components).unwrap();
        let cc = || {
            let mut cc = Command::new("cc");
            cc.current_dir(&folder)
                .args(["-O1", "-Wall", "-Wextra", "-Werror"]);
            cc
        };
        for version in PROGRAMS {
            let mut library = cc();
            library.args(["-shared", "-fPIC", "-o", &format!("fake-{version}.so")]);
            output(library.arg(format!("fake-{version}.c")));
            for (end, mode) in CALLERS {
                let mut caller = cc();
                caller
                    .args(["-Wno-deprecated-declarations", "-DWEAK"])
                    .args(mode);
                caller.args(["-isystem", STAND_INS, "-isystem"]);
                caller.arg(recipe.include(&components, version).unwrap());
                caller.args(["-o", &format!("caller-{version}{end}")]);
                output(caller.arg(format!("caller-{version}{end}.c")));
            }
        }
        let (mut agreed, mut wrong) = (0, Vec::new());
        for (of, library) in PROGRAMS
            .iter()
            .flat_map(|of| PROGRAMS.map(|library| (*of, library)))
        {
            for (end, _) in CALLERS {
                let log = folder.join("log");
                std::fs::write(&log, "").unwrap();
                let printed = output(
                    Command::new(folder.join(format!("caller-{of}{end}")))
                        .env("LD_PRELOAD", folder.join(format!("fake-{library}.so")))
                        .env("GPUSTUB_FAKE_LOG", &log),
                );
                let seen = std::fs::read_to_string(&log).unwrap();
                let seen: BTreeSet<&str> = seen.lines().collect();
                for call in printed.split("call ").skip(1) {
                    let (names, rest) = call.split_once('\n').unwrap();
                    let name = names.split(' ').nth(1).unwrap();
                    let is_understood = rest.strip_prefix("passed ").is_some_and(|rest| {
                        let (passed, result) = rest.split_once('\n').unwrap();
                        seen.contains(passed) && result == "result 0 filled\n"
                    });
                    let mut groups = gates.groups.iter();
                    let group = groups.find(|group| group.names.contains_key(name)).unwrap();
                    let is_same = group.at(name, of) == group.at(name, library);
                    agreed += usize::from(is_same);
                    // Types do not tell what this one gives out.
                    if is_same != is_understood && !recipe.reviewed.is_library_bound(name) {
                        wrong.push(format!("{name}, {of}{end} on {library}: {rest}"));
                    }
                }
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(agreed > 300, "{agreed} calls were understood");
    }
}
