//! Calls of stubs without their ABI table: each change must be noticed.

use std::collections::BTreeSet;
use std::fs;

use gpustub_core::abi_table::Adapter;
use gpustub_core::library::Library;
use gpustub_core::version::HeaderVersion;
use gpustub_tests::Result;
use gpustub_tests::scratch::scratch;

use super::programs::{
    CUFFT, CUFILE, CUSPARSE, HIPBLAS, HIPSPARSE, Programs, ROCBLAS, calls, exported,
};
use super::{Outcome, expected, is_understood};

/// Makes the stubs bind each function under its own name.
fn without_table(resolve: &str) -> Result<String> {
    let condition = "if (!apply_abi_table(binding, library, spec, result)) {";
    if !resolve.contains(condition) {
        return Err(format!("resolve.c has no `{condition}`").into());
    }
    Ok(resolve.replace(condition, "if (0) {"))
}

/// Changed functions that a program calls under their own names, and those of which a library understood each call.
fn changes(programs: &Programs) -> Result<[BTreeSet<String>; 2]> {
    let dir = scratch()?;
    let dir = dir.path();
    programs.write(dir)?;
    let shipped = Library::builtin(programs.id).expect("a shipped library");
    let symbols = programs.symbols(dir, shipped)?;
    let (mut changed, mut noticed) = (BTreeSet::new(), BTreeSet::new());
    for header in programs.headers() {
        let declares = HeaderVersion::parse(&header.to_string());
        for mode in programs.modes {
            let caller = programs.caller(dir, header, *mode, true, &symbols)?;
            let stubs = programs.stubs(dir, header, *mode, true, &symbols)?;
            let file = stubs.sources.join("resolve.c");
            fs::write(&file, without_table(&fs::read_to_string(&file)?)?)?;
            let caller = Programs::link(caller.parent().unwrap_or(dir), &stubs)?;
            for (version, library) in programs.libraries(dir) {
                let exported = exported(&library)?;
                let (printed, log) = programs.run(dir, &caller, &library, None)?;
                let recorded: BTreeSet<&str> = log.lines().collect();
                for call in calls(&printed).filter(|call| exported.contains(call.name)) {
                    match expected(shipped, call.name, declares, version, &exported) {
                        Outcome::Called(name) if name == call.name => continue,
                        _ => changed.insert(call.name.to_owned()),
                    };
                    if !is_understood(call.name, &call, &recorded) {
                        noticed.insert(call.name.to_owned());
                    }
                }
            }
        }
    }
    let unnoticed = changed.difference(&noticed).cloned().collect();
    Ok([changed, unnoticed])
}

/// Whether adapters map the numbers in the arguments of a function. Only the calls of `adapters.toml` show such a change:
/// `mutations.rs` breaks these adapters.
fn is_renumbered(programs: &Programs, name: &str) -> bool {
    let shipped = Library::builtin(programs.id).expect("a shipped library");
    programs.headers().iter().any(|header| {
        let header = HeaderVersion::parse(&header.to_string());
        shipped.abi.entries(name, header).into_iter().any(|entry| {
            matches!(entry.adapter, Some(Adapter::Code(code)) if code.starts_with("numbers_"))
        })
    })
}

#[test]
#[ignore = "needs clang, the headers of all versions and packages of suites that move on: ./tests/run --all"]
fn heavy_each_change_is_noticed_without_the_table() -> Result<()> {
    for programs in [CUFFT, CUFILE, CUSPARSE, ROCBLAS, HIPSPARSE, HIPBLAS] {
        let [changed, unnoticed] = changes(&programs)?;
        let (numbers, unnoticed): (Vec<_>, Vec<_>) = unnoticed
            .into_iter()
            .partition(|name| is_renumbered(&programs, name));
        println!(
            "{}: {} functions changed, {} in numbers only",
            programs.id,
            changed.len(),
            numbers.len()
        );
        assert!(changed.len() > numbers.len(), "{changed:?}");
        assert!(unnoticed.is_empty(), "{}: {unnoticed:?}", programs.id);
    }
    Ok(())
}
