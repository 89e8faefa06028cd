//! The trampolines for Windows, with their table in one text: rustc assembles it, without a preprocessor.

use std::fmt::Write as _;

use super::adapted::{Adapted, adapted};
use super::libraries::Tables;
use crate::abi_table::Adapter;
use crate::abi_table::headers::HeadersMark;
use crate::library::c_name;
use crate::plan::Plan;

/// `stubs.rs`, which makes rustc an assembler: each machine with Rust has it, and not every one with the compiler of
/// MSVC another.
pub(super) const SOURCE: &str = "#![no_std]
core::arch::global_asm!(include_str!(\"stubs.s\"), options(att_syntax, raw));
";

/// `stubs.s`: the template, then a macro call for each function.
pub(super) fn assembly(template: &str, plan: &Plan, tables: &[Tables]) -> String {
    let mut text = template.to_owned();
    let queried: Vec<_> = (plan.libraries.iter().zip(tables))
        .filter(|(planned, _)| !planned.stubbed)
        .map(|(planned, tables)| (c_name(&planned.library.id), &tables.hash))
        .collect();
    for (planned, Tables { hash, .. }) in plan.libraries.iter().zip(tables) {
        let id = c_name(&planned.library.id);
        // Writing to a String cannot fail.
        let _ = writeln!(text, " gpustub_known {id}, {hash}");
        if !planned.stubbed {
            let _ = writeln!(text, " gpustub_queried {id}, {hash}");
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
