//! The trampolines for Windows, with their table in one text: rustc assembles it, without a preprocessor.

use std::fmt::Write as _;

use super::adapted::{Adapted, adapted};
use super::assembler::rustc_source;
use super::libraries::{Tables, families, family_symbol};
use crate::abi_table::Adapter;
use crate::abi_table::headers::HeadersMark;
use crate::by_name::ByName;
use crate::library::c_name;
use crate::plan::{LibraryPlan, Plan};

/// Keeps a symbol out of the exports of a DLL that names none: GNU ld and lld then export each global symbol, except those
/// of this directive, which clang emits for hidden symbols. GNU ld has it since 2.40 ("Changes in 2.40"), and warns of an
/// unknown one: GNU as of the same version stands for it.
const HIDE_FROM_AUTOMATIC_EXPORTS: &str = "\
.macro gpustub_hide symbol
 .ifdef gpustub_by_rustc
 .exitm
 .endif
 .ifdef .gasversion.
 .if .gasversion. < 24000
 .exitm
 .endif
 .endif
 .section .drectve, \"yn\"
 .ascii \" -exclude-symbols:\\symbol\"
.endm
";

/// The linkers of MSVC export nothing by themselves, and warn of an unknown directive (LNK4229).
const HIDE_NOTHING: &str = ".macro gpustub_hide symbol\n.endm\n";

/// Adds the stubs: their text, and the source by which rustc assembles it.
pub(super) fn add_files(
    templates: [&str; 2],
    plan: &Plan,
    tables: &[Tables],
    sources: &mut ByName<String>,
) {
    sources.insert("stubs.s", assembly(templates, plan, tables, None));
    sources.insert("stubs.rs", rustc_source(&plan.target));
}

/// `stubs.s`: the templates, sections before instructions, then a macro call for each function, of all libraries or only
/// one.
pub(super) fn assembly(
    templates: [&str; 2],
    plan: &Plan,
    tables: &[Tables],
    only: Option<&str>,
) -> String {
    let has_stubs = |planned: &LibraryPlan| {
        planned.stubbed && only.is_none_or(|only| planned.library.id == only)
    };
    let mut text = match plan.target.env.as_str() {
        "msvc" => HIDE_NOTHING.to_owned(),
        _ => HIDE_FROM_AUTOMATIC_EXPORTS.to_owned(),
    };
    text.extend(templates);
    let queried: Vec<_> = (plan.libraries.iter().zip(tables))
        .filter(|(planned, _)| !has_stubs(planned))
        .map(|(planned, tables)| (c_name(&planned.library.id), &tables.hash))
        .collect();
    for family in families(plan) {
        let _ = writeln!(text, " gpustub_hide {}", family_symbol(family));
    }
    for (planned, Tables { hash, .. }) in plan.libraries.iter().zip(tables) {
        let id = c_name(&planned.library.id);
        // Writing to a String cannot fail.
        let _ = writeln!(text, " gpustub_known {id}, {hash}");
        let _ = writeln!(text, " gpustub_part {id}, {hash}");
        targets(&mut text, planned);
        if !has_stubs(planned) {
            continue;
        }
        let _ = writeln!(text, " gpustub_library {id}, {hash}");
        for (other, other_hash) in &queried {
            let _ = writeln!(text, " gpustub_keep {id}, {hash}, {other}, {other_hash}");
        }
        match HeadersMark::new(Some(&planned.library), planned.header_version) {
            HeadersMark::Unmarked => {}
            HeadersMark::Undeclared => {
                let _ = writeln!(text, " gpustub_declares {id}, no");
            }
            HeadersMark::Version(mark) => {
                let _ = writeln!(text, " gpustub_headers {id}, {mark}");
            }
        }
        for function in planned.functions.iter() {
            let (name, spec) = (&function.name, function.spec);
            let _ = writeln!(text, " gpustub_fn {id}, {hash}, {name}, {spec}");
        }
        for Adapted { name, adapters, .. } in adapted(planned) {
            let _ = writeln!(text, " gpustub_adapted {id}, {hash}, {name}");
            for adapter in adapters {
                let _ = match adapter {
                    Adapter::NullArgument(argument) => writeln!(
                        text,
                        " gpustub_null_argument {id}, {hash}, {name}, {argument}"
                    ),
                    Adapter::Code(code) => {
                        writeln!(text, " gpustub_adapter {id}, {hash}, {name}, {code}")
                    }
                };
            }
        }
    }
    text
}

/// The targets of a library's adapters, in each object, and the names of adapters in C, which the run time beside it has.
fn targets(text: &mut String, planned: &LibraryPlan) {
    for Adapted { name, adapters, .. } in adapted(planned) {
        let _ = writeln!(text, " gpustub_targets {name}");
        for adapter in adapters {
            if let Adapter::Code(code) = adapter {
                let _ = writeln!(text, " gpustub_hide gpustub1_adapter_{name}_{code}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sources::tests::render_text;

    /// Linkers of MSVC warn of the directive.
    #[test]
    fn names_are_hidden_from_linkers_that_export_all() {
        let manifest = "schema = 1\n[stub.cudart]\nheader-version = \"12\"\n";
        for (target, is_hidden) in [("gnu", true), ("gnullvm", true), ("msvc", false)] {
            let sources = render_text(manifest, &format!("x86_64-pc-windows-{target}"));
            let text = &sources["stubs.s"];
            assert_eq!(text.contains("-exclude-symbols:"), is_hidden, "{target}");
            assert!(text.contains(" gpustub_hide gpustub1_family_cuda\n"));
        }
    }

    /// On Windows the table is a part of the assembly, which has no preprocessor, and the system's files are others.
    #[test]
    fn windows_has_one_text_of_assembly() {
        let manifest = "schema = 1\n[stub.cudart]\nheader-version = \"12\"\n";
        let sources = render_text(manifest, "x86_64-pc-windows-gnu");
        let text = &sources["stubs.s"];
        let hash = text
            .lines()
            .find_map(|line| line.strip_prefix(" gpustub_library cudart, "))
            .expect("the library");
        for line in [
            format!(" gpustub_known cudart, {hash}\n"),
            " gpustub_headers cudart, 12.0\n".to_owned(),
            format!(" gpustub_fn cudart, {hash}, cudaMalloc, "),
            format!(" gpustub_null_argument cudart, {hash}, cudaGraphAddDependencies, 3\n"),
            format!(" gpustub_keep cudart, {hash}, cuda, "),
        ] {
            assert!(text.contains(&line), "{line}");
        }
        assert!(
            text.lines().all(|line| !line.starts_with('#')),
            "no preprocessor"
        );
        assert!(sources["stubs.rs"].contains("include_str!(\"stubs.s\")"));
        assert!(
            !sources
                .iter()
                .any(|(path, _)| path == "stubs.S" || path == "gpustub_table.inc")
        );
        for template in gpustub_templates::WINDOWS {
            let (_, name) = template.path.rsplit_once('/').expect("a directory");
            assert_eq!(sources[name], template.text);
        }
        let libraries = &sources["gpustub_libraries.inc"];
        assert!(libraries.contains("\"nvidia/cu13/bin/x86_64\", \"nvidia/cuda_runtime/bin\""));
        assert!(libraries.contains("\"bin/x64\", \"bin\""));
        assert!(
            !libraries.contains("\"/usr"),
            "no directory of Unix systems"
        );
    }
}
