//! C code of callers and fake libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use gpustub_core::library::{VersionEncoding, VersionQuery};
use gpustub_core::version::Version;

use super::arguments::{Argument, Mark, Part, Returned, Value};
use super::fields::Field;
use super::shapes::shape;

/// A function of a fake library, or a call of one.
pub struct Function {
    /// The name in sources.
    pub source: String,
    pub name: String,
    pub arguments: Vec<Argument>,
    /// Fields of each argument; empty for functions of no ABI table.
    pub fields: Vec<Vec<Field>>,
    pub result: Returned,
}

/// A library that is written.
pub struct Fake<'a> {
    pub id: &'a str,
    pub version: Version,
    /// Number of the library's own, if it is not the version.
    pub own: Option<&'a str>,
    /// `None`: its version is in its name.
    pub query: Option<&'a VersionQuery>,
    pub functions: &'a [Function],
}

fn head(version: Version) -> String {
    format!("/* Made by `cargo xtask abi-programs`: {version}. */\n")
}

/// `struct valueN`, which is passed in the same registers as the structs of an API.
fn values(functions: &[Function]) -> String {
    let results = functions
        .iter()
        .filter_map(|function| match &function.result {
            Returned::Other(other) => Some(other),
            _ => None,
        });
    let arguments = functions.iter().flat_map(|function| &function.arguments);
    let values: BTreeSet<&Value> = arguments
        .chain(results)
        .filter_map(|argument| match argument {
            Argument::Value(value) => Some(value),
            _ => None,
        })
        .collect();
    let lines = values
        .iter()
        .map(|value| format!("struct value{} {{ {} }};\n", value.name(), value.fields()));
    lines.collect()
}

/// A number of the size of a field, derived from its name.
fn number(field: &str, size: u64) -> u64 {
    let mixed = field
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |mixed, byte| {
            (mixed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
    mixed >> (64 - 8 * size)
}

/// A list that ends with an empty one; the C for none.
fn list(of: &str, items: Vec<String>) -> String {
    if items.is_empty() {
        return "0".into();
    }
    format!("(const struct {of}[]){{{}, {{0}}}}", items.join(", "))
}

/// Names of numbers. A number with several names has the wanted one.
fn names(wanted: &str, values: &BTreeMap<String, i128>) -> String {
    let mut names: Vec<_> = values.iter().collect();
    names.sort_by_key(|(name, _)| *name != wanted);
    let items = names
        .iter()
        .map(|(name, number)| format!("{{\"{name}\", {number}}}"));
    list("enumerator", items.collect())
}

/// The marks as a fake library reads and fills them.
fn library_marks(marks: &[Mark]) -> String {
    let items = marks.iter().map(|Mark { offset, size, part }| match part {
        Part::Enumerator(name, values) => format!(
            "{{\"@{offset}\", {offset}, {size}, {}, {}}}",
            values[name],
            names(name, values)
        ),
        Part::Field(path) => format!(
            "{{\"{path}\", {offset}, {size}, {:#x}, 0}}",
            number(path, *size)
        ),
    });
    list("mark", items.collect())
}

/// The marks as a caller fills and expects them: enumerators of its header.
fn caller_marks(marks: &[Mark]) -> String {
    let items = marks.iter().map(|Mark { offset, size, part }| match part {
        Part::Enumerator(name, _) => {
            format!("{{\"@{offset}={name}\", {offset}, {size}, {name}}}")
        }
        Part::Field(path) => {
            let number = number(path, *size);
            format!("{{\"{path}={number:#x}\", {offset}, {size}, {number:#x}}}")
        }
    });
    list("mark", items.collect())
}

/// Fields of an argument. `numbers` has the C for the number of an enumerator.
fn fields(function: &Function, at: usize, number_of: impl Fn(&str, i128) -> String) -> String {
    let fields = function.fields.get(at).into_iter().flatten();
    let items = fields.map(|field| {
        let Field {
            path, offset, size, ..
        } = field;
        let (number, names) = match &field.enumerator {
            Some((name, values)) => {
                let names = values.iter();
                let names = names
                    .map(|(name, value)| format!("{{\"{name}\", {}}}", number_of(name, *value)));
                let names = list("enumerator", names.collect());
                (number_of(name, values[name]), names)
            }
            None => (format!("{:#x}", number(path, (*size).min(8))), "0".into()),
        };
        format!("{{\"{path}\", {offset}, {size}, {number}, {names}}}")
    });
    list("field", items.collect())
}

/// Parameter list; `void` if empty.
fn parameters(list: Vec<String>) -> String {
    if list.is_empty() {
        "void".into()
    } else {
        list.join(", ")
    }
}

/// The number that a library returns as its version, unless that is a number of its own.
fn code(encoding: VersionEncoding, version: Version) -> u32 {
    match encoding {
        VersionEncoding::Hip => 10_000_000 * version.major + 100_000 * version.minor,
        _ => version.code(),
    }
}

/// Source of a fake library.
pub fn fake(fake: &Fake<'_>) -> String {
    let mut text = head(fake.version);
    let code = match fake.query {
        Some(query) => code(query.encoding, fake.version),
        None => fake.version.code(),
    };
    let _ = writeln!(text, "#define LIBRARY_{} {code}", fake.id);
    text += "#include \"fake.h\"\n\n";
    text += &values(fake.functions);
    if let Some(VersionQuery { function, encoding }) = fake.query {
        let (parameters, body) = match (encoding, fake.own) {
            (VersionEncoding::Property, Some(own)) => {
                let parts = own.replace('.', ", ");
                let body = format!("*version = (const int[]){{{parts}}}[property]");
                ("int property, int *version", body)
            }
            (VersionEncoding::Driver, Some(branch)) => {
                let body = format!("snprintf(text, size, \"12.{branch}.01\")");
                ("char *text, unsigned size", body)
            }
            _ => ("int *version", format!("*version = {code}")),
        };
        let _ = write!(
            text,
            "\nint {function}({parameters})\n{{\n    {body};\n    return 0;\n}}\n",
        );
    }
    for of in fake.functions {
        let Function {
            name,
            arguments,
            result,
            ..
        } = of;
        let (mut list, mut body) = (Vec::new(), String::new());
        for (at, argument) in arguments.iter().enumerate() {
            list.push(format!("{} a{at}", argument.spelled()));
            let fields = fields(of, at, |_, value| value.to_string());
            body += "    ";
            body += &match argument {
                Argument::Integer(_) => format!("integer({at}, a{at});\n"),
                Argument::Float(_) => format!("real({at}, a{at});\n"),
                Argument::Value(Value { size, .. }) => {
                    format!("value({at}, &a{at}, {size}, {fields});\n")
                }
                Argument::Address => format!("address({at}, a{at});\n"),
                Argument::Input(size, marks) => {
                    let marks = library_marks(marks);
                    format!("input({at}, a{at}, {size}, {marks}, {fields});\n")
                }
                Argument::Output(size, marks) => {
                    let marks = library_marks(marks);
                    format!("output({at}, a{at}, {size}, {marks}, {fields});\n")
                }
            };
        }
        let list = parameters(list);
        let spelled = result.spelled();
        let first = if name.starts_with("cudaGetDriverEntryPoint") {
            let last = arguments.len() - 1;
            let status = match &arguments[last] {
                Argument::Output(..) => format!("a{last}"),
                _ => "0".into(),
            };
            format!("    if (hands_out(a0, a1, {status}))\n        return 0;\n")
        } else {
            String::new()
        };
        body += &match result {
            Returned::Status => "    return end();\n".to_owned(),
            Returned::Nothing => "    end();\n".to_owned(),
            Returned::Other(_) => format!(
                "    {spelled} result;\n    memset(&result, FILLED, sizeof result);\n    end();\n    return result;\n"
            ),
        };
        let _ = write!(
            text,
            "\n{spelled} {name}({list})\n{{\n{first}    begin(\"{name}\");\n{body}}}\n"
        );
    }
    text
}

/// The linker script that assigns the version nodes of the real library to the functions.
pub fn nodes<'a>(names: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut nodes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, node) in names {
        if let Some(node) = node {
            nodes.entry(node).or_default().push(name);
        }
    }
    if nodes.is_empty() {
        return "{ global: *; };\n".into();
    }
    let lines = nodes
        .iter()
        .map(|(node, names)| format!("{node} {{ global: {}; }};\n", names.join("; ")));
    lines.collect()
}

/// Source of a caller for one set of macros, from the headers read with them.
pub fn caller(version: Version, headers: &[&str], calls: &[Function]) -> String {
    let mut text = head(version) + "#include \"caller.h\"\n\n";
    for header in headers {
        let _ = writeln!(text, "#include <{header}>");
    }
    text += "#include \"shapes.h\"\n";
    text += "\n";
    text += &values(calls);
    // Allows tests of a library that lacks some functions, without stubs.
    text += "\n#ifdef WEAK\n";
    let names: BTreeSet<&String> = calls.iter().map(|call| &call.name).collect();
    for name in names {
        let _ = writeln!(text, "#pragma weak {name}");
    }
    text += "#endif\n";
    let mut table = String::new();
    for (number, call) in calls.iter().enumerate() {
        let Function {
            source,
            name,
            arguments,
            result,
            ..
        } = call;
        let _ = write!(
            text,
            "\nstatic void call_{number}(void)\n{{\n    begin(\"{name}\");\n"
        );
        for (at, argument) in arguments.iter().enumerate() {
            let spelled = argument.spelled();
            let fields = fields(call, at, |name, _| name.to_owned());
            let value = match argument {
                Argument::Integer(size) => format!("integer({at}, {size})"),
                Argument::Float(size) => format!("real({at}, {size})"),
                Argument::Value(Value { size, .. }) => {
                    let _ = writeln!(
                        text,
                        "    {spelled} a{at};\n    value({at}, &a{at}, {size}, {fields});"
                    );
                    continue;
                }
                Argument::Address => format!("address({at})"),
                Argument::Input(size, marks) => {
                    format!("input({at}, {size}, {}, {fields})", caller_marks(marks))
                }
                Argument::Output(size, marks) => {
                    format!("output({at}, {size}, {}, {fields})", caller_marks(marks))
                }
            };
            let _ = writeln!(text, "    {spelled} a{at} = {value};");
        }
        let types = parameters(arguments.iter().map(Argument::spelled).collect());
        let names: Vec<_> = (0..arguments.len()).map(|at| format!("a{at}")).collect();
        let names = names.join(", ");
        let returned = result.spelled();
        let end = match result {
            Returned::Status => format!("done(function({names}));"),
            Returned::Nothing => format!("function({names});\n    done(0);"),
            Returned::Other(_) => format!(
                "{returned} result = function({names});\n    done(returned(&result, sizeof result));"
            ),
        };
        let _ = write!(
            text,
            // GCC would trap a call through the cast name itself.
            "    {returned} (*function)({types}) = (void *){source};\n    ready((void *)function);\n    {end}\n}}\n"
        );
        let shape = shape(arguments, result);
        let _ = writeln!(table, "    {{\"{source} {name} {shape}\", call_{number}}},");
    }
    let _ = write!(
        text,
        "\nstatic const struct call calls[] = {{\n{table}}};\n\nint main(void)\n{{\n    return run(calls, sizeof calls / sizeof *calls);\n}}\n"
    );
    text
}
