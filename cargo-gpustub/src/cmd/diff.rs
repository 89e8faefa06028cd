//! `cargo gpustub diff`: differences between two versions of a library.

mod change;
mod headers;
mod show;
mod side;

use gpustub_workspace::error::Result;
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;

use crate::cli::{self, TextOrJson};
use change::{Differences, changes};
use side::side;

/// Runs the command. Returns whether the versions are equal.
pub fn run(options: &cli::Diff, shell: &mut Shell) -> Result<bool> {
    let mut found = Vec::new();
    let mut sources = Sources::new();
    let sides = [&options.old, &options.new].map(|given| side(given, &mut found, &mut sources));
    shell.diagnostics(&found, &sources)?;
    let [Some(old), Some(new)] = sides else {
        return Ok(false);
    };
    let compared = headers::compare(&options.headers, &old, &new)?;
    let differences = compared.as_ref().map(|compared| &compared.differences);
    let mut changes = changes(&old, &new, differences.unwrap_or(&Differences::new()));
    if let Some(compared) = &compared {
        changes.extend(compared.changes.iter().cloned());
        changes.sort_by(|a, b| a.name().cmp(b.name()));
    }
    shell.data(match options.format {
        TextOrJson::Text => show::text(&old, &new, &changes, compared.as_ref()),
        TextOrJson::Json => show::json(&old, &new, &changes, compared.as_ref()),
    })?;
    Ok(changes.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gpustub_core::symbols::SymbolList;

    use super::change::Change;
    use super::side::Side;
    use super::*;

    fn side(list: &str) -> Side {
        let text = format!("@gpustub-symbols 1\n{list}");
        let (list, wrong) = SymbolList::parse("x.symbols", &text);
        assert_eq!(wrong, []);
        Side {
            name: "x".into(),
            functions: list.functions().cloned().collect(),
            soname: None,
            shipped: None,
        }
    }

    #[test]
    fn lists_are_compared_by_name() {
        let old = side("a\nc\nd version=V1\ne version=V1\ntable kind=object\n");
        let new = side("b\nc\nd version=V2\ne version=V1\nf\n");
        assert_eq!(
            changes(&old, &new, &BTreeMap::new()),
            [
                Change::Removed("a".into(), None),
                Change::Added("b".into()),
                Change::SymbolVersion("d".into(), "V1".into(), "V2".into()),
                Change::Added("f".into()),
            ]
        );
        assert_eq!(changes(&new, &new, &BTreeMap::new()), []);
    }

    #[test]
    fn changes_of_the_abi_name_the_replacement() {
        let side = |given| side_of(given).expect("a shipped list");
        let (old, new) = (side("cudart@12.9"), side("cudart@13.5"));
        let none = BTreeMap::new();
        let shown = show::text(&old, &new, &changes(&old, &new, &none), None);
        for line in [
            "!cudaChooseDevice: ABI changed; calls of the old ABI are adapted to cudaChooseDevice\n",
            "!cudaSignalExternalSemaphoresAsync: ABI changed; calls of the old ABI are refused: only \
             headers of 11.1 have these structs\n",
            "!cudaGraphAddDependencies: ABI changed; the old ABI is \
             cudaGraphAddDependencies with NULL as argument 3\n",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
        let shown = show::json(&old, &new, &changes(&old, &new, &none), None);
        let row = r#"{"adapted":true,"change":"abi","differences":[],"name":"cudaGraphGetEdges","null_argument":3,"refused":null,"replacement":"cudaGraphGetEdges"}"#;
        assert!(shown.contains(row), "{shown}");
        let back = show::text(&new, &old, &changes(&new, &old, &none), None);
        let line = "!cudaGraphAddDependencies: ABI changed; the old ABI is \
                    cudaGraphAddDependencies_v2\n";
        assert!(back.contains(line), "{back}");
    }

    #[test]
    fn removed_functions_have_a_replacement_or_the_reason_why_not() {
        let side = |given| side_of(given).expect("a shipped list");
        let (old, new) = (side("cuda@13.5"), side("cuda@12.2"));
        let changes = changes(&old, &new, &BTreeMap::new());
        let shown = show::text(&old, &new, &changes, None);
        for line in [
            "-cuCtxCreate_v4; calls of the old ABI are adapted to cuCtxCreate_v3\n",
            "-cuEventElapsedTime_v2; the old ABI is cuEventElapsedTime\n",
            "-cuMemcpyBatchAsync_v2; calls of the old ABI are refused: the library has no batches of \
             copies\n",
            "-cuCtxWaitEvent\n",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
        let shown = show::json(&old, &new, &changes, None);
        let row = r#"{"adapted":false,"change":"removed","name":"cuMemcpyBatchAsync_v2","null_argument":null,"refused":"the library has no batches of copies","replacement":null}"#;
        assert!(shown.contains(row), "{shown}");
    }

    fn side_of(given: &str) -> Option<Side> {
        super::side(given, &mut Vec::new(), &mut Sources::new())
    }

    #[test]
    fn shared_symbol_version_is_no_difference() {
        let old = side("a version=libx.so.1\nb version=libx.so.1\n");
        let new = side("a version=libx.so.2\nb version=libx.so.2\n");
        assert_eq!(changes(&old, &new, &BTreeMap::new()), []);
    }
}
