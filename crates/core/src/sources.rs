//! Sources: the plan as files, before any of them is written.
//!
//! The templates are copied unchanged; two tables are generated: `gpustub_table.inc`, a macro call
//! for each function, included by the trampolines, and `gpustub_libraries.inc`, C data of each
//! library, included by the run time. Windows and macOS have one text of assembly instead of the first, macOS no
//! run time.

mod adapted;
mod assembler;
mod coff;
mod errors;
mod initializers;
mod libraries;
mod macho;
mod names;
mod notes;

use std::fmt::Write as _;

use gpustub_templates::Template;

use crate::abi_table::Adapter;
use crate::abi_table::headers::HeadersMark;
use crate::by_name::ByName;
use crate::library::c_name;
use crate::plan::Plan;
use adapted::{Adapted, adapted};
use initializers::quote;
use libraries::Tables;

/// Files by path, with `/`, below one directory.
pub type SourceSet = ByName<String>;

/// Sources of a plan: unchanged templates, and the generated tables that they include. A target
/// without trampolines (which is an error of the plan) has no `stubs.S`.
pub fn render(plan: &Plan) -> SourceSet {
    // No function refers to the part of a library that the program links itself.
    with_table(plan, u8::from(!plan.linked.is_empty()))
}

/// As [`render`], for C projects, which split the stubs into an object per library: with lld's default
/// (`-z start-stop-gc`), `gpustub.h` would not know libraries of which a program uses no function.
pub fn render_for_c(plan: &Plan) -> SourceSet {
    with_table(plan, 1)
}

/// The file with the functions, by its path, for an object with the stubs of one library only; the other sources are
/// those of [`render_for_c`]. It declares the other libraries of the plan, so that an image with one such object knows all
/// of them, as with [`render_for_c`], whose run time serves all these objects.
pub fn functions_of(plan: &Plan, id: &str) -> (&'static str, String) {
    let tables = all_tables(plan);
    if plan.target.os != "windows" {
        return ("gpustub_table.inc", table(plan, &tables, 1, Some(id)));
    }
    let templates = coff_templates(&plan.target.arch).unwrap_or_default();
    (
        "stubs.s",
        coff::assembly(templates, plan, &tables, Some(id)),
    )
}

/// Sources of a plan, with this value of `GPUSTUB_RETAIN` (`elf_table.h`).
fn with_table(plan: &Plan, retain: u8) -> SourceSet {
    let tables = all_tables(plan);
    let mut sources = SourceSet::new();
    match plan.target.os.as_str() {
        "macos" => {
            if let Some(template) = assembly(&plan.target.arch, "_macho") {
                macho::add_files(template, plan, &tables, &mut sources);
            }
        }
        "windows" => {
            if let Some(templates) = coff_templates(&plan.target.arch) {
                coff::add_files(templates, plan, &tables, &mut sources);
            }
            add_run_time(gpustub_templates::WINDOWS, plan, &tables, &mut sources);
        }
        _ => {
            if let Some(template) = assembly(&plan.target.arch, "") {
                sources.insert("stubs.S", template.to_owned());
            }
            sources.insert("gpustub_table.inc", table(plan, &tables, retain, None));
            add_run_time(gpustub_templates::UNIX, plan, &tables, &mut sources);
        }
    }
    sources
}

/// Template of an architecture's stubs, for an object format.
fn assembly(arch: &str, format: &str) -> Option<&'static str> {
    let path = format!("asm/{arch}{format}.S");
    gpustub_templates::ASM
        .iter()
        .find(|template| template.path == path)
        .map(|template| template.text)
}

/// Templates of an architecture's stubs for Windows: sections, then instructions.
fn coff_templates(arch: &str) -> Option<[&'static str; 2]> {
    Some([assembly("coff", "_table")?, assembly(arch, "_coff")?])
}

/// Adds the run time with the files of one operating system, and the data of the plan. One flat directory: the files of
/// all systems have the same names.
fn add_run_time(system: &[Template], plan: &Plan, tables: &[Tables], sources: &mut SourceSet) {
    for template in gpustub_templates::RUNTIME.iter().chain(system) {
        let name = template.path.rsplit('/').next();
        sources.insert(name.unwrap_or(template.path), template.text.to_owned());
    }
    adapted::add_files(plan, sources);
    sources.insert("gpustub_libraries.inc", libraries::render(plan, tables));
}

fn all_tables(plan: &Plan) -> Vec<Tables> {
    plan.libraries
        .iter()
        .map(|planned| Tables::new(planned, plan))
        .collect()
}

/// Alignment of data of this size, as a power of 2: at least that of any type with it, up to that of vectors.
fn data_alignment(size: u32) -> u32 {
    const MAX_ALIGNMENT: u32 = 64;
    size.next_power_of_two().min(MAX_ALIGNMENT).trailing_zeros()
}

/// The functions, of all libraries or only one, as X-macros.
fn table(plan: &Plan, tables: &[Tables], retain: u8, only: Option<&str>) -> String {
    let mut text = format!(
        "/* Generated by gpustub: library, function, spec. */\n#define GPUSTUB_RETAIN {retain}\n"
    );
    for (planned, Tables { hash, .. }) in plan.libraries.iter().zip(tables) {
        let id = c_name(&planned.library.id);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "#define GPUSTUB_TABLES {hash}");
        let is_left_out = only.is_some_and(|only| planned.library.id != only);
        if !planned.stubbed || is_left_out {
            let _ = writeln!(text, "GPUSTUB_QUERIED({id})\n#undef GPUSTUB_TABLES");
            continue;
        }
        let _ = writeln!(text, "GPUSTUB_LIBRARY({id})");
        if let Some(note) = notes::json(planned) {
            let _ = writeln!(text, "GPUSTUB_NOTE({id}, {})", quote(&note));
        }
        match HeadersMark::new(Some(&planned.library), planned.header_version) {
            HeadersMark::Unmarked => {}
            HeadersMark::Undeclared => text.push_str(&format!("GPUSTUB_NO_HEADERS({id})\n")),
            HeadersMark::Version(mark) => {
                text.push_str(&format!("GPUSTUB_HEADERS({id}, {mark})\n"));
            }
        }
        let head = format!("GPUSTUB_FN({id}, ");
        for function in planned.functions.iter() {
            let data_size = planned.specs[usize::from(function.spec)].data_size;
            if data_size > 0 {
                let _ = writeln!(
                    text,
                    "GPUSTUB_DATA({id}, {}, {}, {data_size}, {})",
                    function.name,
                    function.spec,
                    data_alignment(data_size)
                );
                continue;
            }
            // Avoids a formatter: thousands of lines.
            let spec = function.spec.to_string();
            for piece in [head.as_str(), &function.name, ", ", &spec, ")\n"] {
                text.push_str(piece);
            }
            if planned.specs[usize::from(function.spec)]
                .fallback
                .names_error()
            {
                let _ = writeln!(text, "GPUSTUB_ERRORS({id}, {})", function.name);
            }
        }
        let _ = writeln!(text, "GPUSTUB_LIBRARY_END({id})");
        for Adapted { name, adapters, .. } in adapted(planned) {
            let _ = writeln!(text, "GPUSTUB_ADAPTED({id}, {name})");
            for adapter in adapters {
                let _ = match adapter {
                    Adapter::NullArgument(argument) => {
                        writeln!(text, "GPUSTUB_NULL_ARGUMENT({id}, {name}, {argument})")
                    }
                    Adapter::Code(code) => writeln!(text, "GPUSTUB_ADAPTER({id}, {name}, {code})"),
                };
            }
        }
        text.push_str("#undef GPUSTUB_TABLES\n");
    }
    text
}

#[cfg(test)]
mod tests;
