//! Objects of other widths, byte orders and flags: the container is such an object.

use gpustub_archive::SuperArchive;
use gpustub_tests::Result;

use crate::cases::Cases;
use crate::links::link;
use crate::sample::{Default, Sample};

#[test]
#[ignore = "needs clang and lld of several releases, a cross compiler, mold: ./tests/run"]
fn linkers_of_other_machines_accept_the_container() -> Result<()> {
    for machine in Cases::read()?.machines {
        let sample = Sample::build(Default::Objects, &machine.compiler, &machine.hidden)
            .map_err(|e| format!("{}: {}", machine.name, e.0))?;
        let archive = SuperArchive::parse(&sample.bytes).map_err(|e| e.to_string())?;
        archive
            .verify()
            .map_err(|e| format!("{}: {e}", machine.name))?;
        for linker in &machine.linkers {
            link(linker, &sample, false).map_err(|e| format!("{}: {}", machine.name, e.0))?;
        }
    }
    Ok(())
}
