//! C code of callers and fake libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use gpustub_core::library::{VersionEncoding, VersionQuery};
use gpustub_core::version::Version;

use super::arguments::{Argument, Mark, Part, Returned, Value};
use super::fields::ArgumentField;
use super::shapes::shape;

/// A function of a fake library, or a call of one.
pub struct Function {
    /// The name in sources.
    pub source: String,
    pub name: String,
    pub arguments: Vec<Argument>,
    /// Fields of each argument; empty for functions of no ABI table.
    pub fields: Vec<Vec<ArgumentField>>,
    pub result: Returned,
}

/// A library that is written.
pub struct Fake<'a> {
    pub id: &'a str,
    pub version: Version,
    /// Number of the library's own, if it is not the version.
    pub own_version: Option<&'a str>,
    /// `None`: its version is in its name.
    pub query: Option<&'a VersionQuery>,
    pub functions: &'a [Function],
}

fn head(version: Version) -> String {
    format!("/* Made by `cargo xtask abi-programs`: {version}. */\n")
}

/// `struct valueN`, which is passed in the same registers as the structs of an API.
fn values(functions: &[Function]) -> String {
    let mut values: BTreeSet<&Value> = BTreeSet::new();
    for function in functions {
        for argument in &function.arguments {
            if let Argument::Value(value) = argument {
                values.insert(value);
            }
        }
        if let Returned::Other(Argument::Value(value)) = &function.result {
            values.insert(value);
        }
    }
    values
        .iter()
        .map(|value| format!("struct value{} {{ {} }};\n", value.name(), value.fields()))
        .collect()
}

/// A number of the size of a field, derived from its name.
fn number(field: &str, size: u64) -> u64 {
    let hash = field.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    hash >> (64 - 8 * size)
}

/// An array that ends with an empty element; the C for none.
fn array(element: &str, elements: Vec<String>) -> String {
    if elements.is_empty() {
        return "0".into();
    }
    format!(
        "(const struct {element}[]){{{}, {{0}}}}",
        elements.join(", ")
    )
}

/// Names of numbers. A number with several names has the preferred one.
fn names(preferred: &str, values: &BTreeMap<String, i128>) -> String {
    let mut enumerators: Vec<_> = values.iter().collect();
    enumerators.sort_by_key(|(name, _)| *name != preferred);
    let elements = enumerators
        .iter()
        .map(|(name, number)| format!("{{\"{name}\", {number}}}"));
    array("enumerator", elements.collect())
}

/// The marks as a fake library reads and fills them.
fn library_marks(marks: &[Mark]) -> String {
    let marks = marks.iter().map(|Mark { offset, size, part }| match part {
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
    array("mark", marks.collect())
}

/// The marks as a caller fills and expects them: enumerators of its header.
fn caller_marks(marks: &[Mark]) -> String {
    let marks = marks.iter().map(|Mark { offset, size, part }| match part {
        Part::Enumerator(name, _) => {
            format!("{{\"@{offset}={name}\", {offset}, {size}, {name}}}")
        }
        Part::Field(path) => {
            let number = number(path, *size);
            format!("{{\"{path}={number:#x}\", {offset}, {size}, {number:#x}}}")
        }
    });
    array("mark", marks.collect())
}

/// Fields of an argument. `number_of` returns the C for the number of an enumerator.
fn fields(function: &Function, index: usize, number_of: impl Fn(&str, i128) -> String) -> String {
    let mut fields = Vec::new();
    for field in function.fields.get(index).into_iter().flatten() {
        let ArgumentField {
            path, offset, size, ..
        } = field;
        let (number, names) = match &field.enumerator {
            Some((name, values)) => {
                let enumerators = values
                    .iter()
                    .map(|(name, value)| format!("{{\"{name}\", {}}}", number_of(name, *value)));
                let names = array("enumerator", enumerators.collect());
                (number_of(name, values[name]), names)
            }
            None => (format!("{:#x}", number(path, (*size).min(8))), "0".into()),
        };
        fields.push(format!(
            "{{\"{path}\", {offset}, {size}, {number}, {names}}}"
        ));
    }
    array("field", fields)
}

/// Parameter list; `void` if empty.
fn parameters(parameters: Vec<String>) -> String {
    if parameters.is_empty() {
        "void".into()
    } else {
        parameters.join(", ")
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
        let (parameters, body) = match (encoding, fake.own_version) {
            (VersionEncoding::Property, Some(version)) => {
                let parts = version.replace('.', ", ");
                let body = format!("*version = (const int[]){{{parts}}}[property]");
                ("int property, int *version", body)
            }
            (VersionEncoding::Property, None) => {
                let Version { major, minor } = fake.version;
                let body = format!("*version = (const int[]){{{major}, {minor}, 0}}[property]");
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
    for function in fake.functions {
        text += &library_function(function);
    }
    text
}

/// A function of a fake library.
fn library_function(function: &Function) -> String {
    let Function {
        name,
        arguments,
        result,
        ..
    } = function;
    let (mut declared, mut body) = (Vec::new(), String::new());
    for (index, argument) in arguments.iter().enumerate() {
        declared.push(format!("{} a{index}", argument.spelled()));
        let fields = fields(function, index, |_, value| value.to_string());
        body += "    ";
        body += &match argument {
            Argument::Integer(_) => format!("integer({index}, a{index});\n"),
            Argument::Float(_) => format!("real({index}, a{index});\n"),
            Argument::Value(Value { size, .. }) => {
                format!("value({index}, &a{index}, {size}, {fields});\n")
            }
            Argument::Address => format!("address({index}, a{index});\n"),
            Argument::Input(size, marks) => {
                let marks = library_marks(marks);
                format!("input({index}, a{index}, {size}, {marks}, {fields});\n")
            }
            Argument::Output(size, marks) => {
                let marks = library_marks(marks);
                format!("output({index}, a{index}, {size}, {marks}, {fields});\n")
            }
        };
    }
    let parameters = parameters(declared);
    let returned = result.spelled();
    let prologue = if name.starts_with("cudaGetDriverEntryPoint") {
        let last_index = arguments.len() - 1;
        let status = match &arguments[last_index] {
            Argument::Output(..) => format!("a{last_index}"),
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
            "    {returned} result;\n    memset(&result, FILLED, sizeof result);\n    end();\n    return result;\n"
        ),
    };
    format!("\n{returned} {name}({parameters})\n{{\n{prologue}    begin(\"{name}\");\n{body}}}\n")
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
    nodes
        .iter()
        .map(|(node, names)| format!("{node} {{ global: {}; }};\n", names.join("; ")))
        .collect()
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
        text += &call_function(number, call);
        let Function { source, name, .. } = call;
        let shape = shape(&call.arguments, &call.result);
        let _ = writeln!(table, "    {{\"{source} {name} {shape}\", call_{number}}},");
    }
    let _ = write!(
        text,
        "\nstatic const struct call calls[] = {{\n{table}}};\n\nint main(void)\n{{\n    return run(calls, sizeof calls / sizeof *calls);\n}}\n"
    );
    text
}

/// The function of a caller that makes one call.
fn call_function(number: usize, call: &Function) -> String {
    let Function {
        source,
        name,
        arguments,
        result,
        ..
    } = call;
    let mut text = format!("\nstatic void call_{number}(void)\n{{\n    begin(\"{name}\");\n");
    for (index, argument) in arguments.iter().enumerate() {
        let spelled = argument.spelled();
        let fields = fields(call, index, |name, _| name.to_owned());
        let value = match argument {
            Argument::Integer(size) => format!("integer({index}, {size})"),
            Argument::Float(size) => format!("real({index}, {size})"),
            Argument::Value(Value { size, .. }) => {
                let _ = writeln!(
                    text,
                    "    {spelled} a{index};\n    value({index}, &a{index}, {size}, {fields});"
                );
                continue;
            }
            Argument::Address => format!("address({index})"),
            Argument::Input(size, marks) => {
                format!("input({index}, {size}, {}, {fields})", caller_marks(marks))
            }
            Argument::Output(size, marks) => {
                format!("output({index}, {size}, {}, {fields})", caller_marks(marks))
            }
        };
        let _ = writeln!(text, "    {spelled} a{index} = {value};");
    }
    let types = parameters(arguments.iter().map(Argument::spelled).collect());
    let names: Vec<_> = (0..arguments.len())
        .map(|index| format!("a{index}"))
        .collect();
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
    text
}
