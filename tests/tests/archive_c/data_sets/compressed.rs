//! Super-archives of the data sets with compressed members: sizes, contents, and symbols. Prints rows for docs/archive.md.

use gpustub_archive::SuperArchive;
use gpustub_superarchive::{Plan, ViewId, verify};
use gpustub_tests::Result;

use super::inputs::{Inputs, Row, rows, write};

/// Contents and position of the member of each symbol.
fn symbols(archive: &SuperArchive<'_>) -> Result<Vec<(usize, usize)>> {
    let mut symbols = Vec::new();
    for view in archive.views() {
        let view = view?;
        for symbol in view.symbols() {
            let symbol = symbol?;
            let member = view
                .find_symbol(symbol.name)?
                .ok_or("a symbol is missing")?;
            symbols.push((member.contents().index(), member.position()));
        }
    }
    Ok(symbols)
}

fn measure(row: &Row) -> Result<()> {
    let inputs = Inputs::read(row)?;
    let mut request = inputs.request()?;
    let mut line = format!("| {} | {}", row.name, inputs.views.len());
    for default in [None, Some(ViewId(0))] {
        request.default = default;
        let plain = write(&request)?;
        let plan = Plan::compressed(&request).map_err(|error| format!("{error:?}"))?;
        let mut compressed = Vec::new();
        plan.write(&mut compressed)?;
        let archive = SuperArchive::parse(&compressed)?;
        verify(&archive)?;
        assert!(compressed.len() < plain.len(), "{}", row.name);
        assert!(
            symbols(&archive)? == symbols(&SuperArchive::parse(&plain)?)?,
            "{}",
            row.name
        );
        let ratio = compressed.len() as f64 / plain.len() as f64;
        line += &format!(" | {} | {} ({ratio:.2})", plain.len(), compressed.len());
    }
    println!("{line} |");
    Ok(())
}

#[test]
#[ignore = "needs device libraries, libgcc, newlib and others of Debian, and minutes: ./tests/run --all"]
fn heavy_compressed_sizes_of_the_data_sets() -> Result<()> {
    rows()?.iter().try_for_each(measure)
}
