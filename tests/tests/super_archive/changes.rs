//! Changes by other tools keep the archive correct, or are detected at the time that FORMAT.md
//! states.

use std::fs;

use gpustub_archive::SuperArchive;
use gpustub_tests::Result;
use gpustub_tests::command::succeed;

use crate::cases::{Case, Cases, Level};
use crate::sample::Sample;

/// Compares a reader's answers with the written contents. An undetected wrong answer is an error.
fn level(bytes: &[u8], sample: &Sample) -> Result<Level> {
    let Ok(archive) = SuperArchive::parse(bytes) else {
        return Ok(Level::Open);
    };
    let (mut wrong, mut refused) = (false, false);
    for (view, symbol, expected) in &sample.answers {
        let Ok(Some(view)) = archive.view(view) else {
            return Err(format!("there is no view {view}").into());
        };
        let member = view
            .find_symbol(symbol)
            .map_err(|e| format!("{symbol}: {e}"))?;
        match member.map(|member| member.data()).transpose() {
            Ok(data) => wrong |= data != expected.as_deref(),
            Err(_) => refused = true,
        }
    }
    match (wrong, refused, archive.verify().is_ok()) {
        (true, _, true) => Err("a wrong answer, and no error".into()),
        (true, _, false) | (false, false, false) => Ok(Level::Verify),
        (false, true, _) => Ok(Level::Take),
        (false, false, true) => Ok(Level::Right),
    }
}

fn change(everywhere: bool) -> Result<()> {
    let cases: Vec<_> = (Cases::read()?.changes.iter())
        .filter(|case| case.everywhere == everywhere)
        .flat_map(Case::releases)
        .collect();
    assert!(!cases.is_empty());
    let mut wrong = Vec::new();
    for (name, default) in Sample::all(everywhere) {
        let sample = Sample::new(default)?;
        assert_eq!(level(&sample.bytes, &sample)?, Level::Right, "{name}");
        let (archive, changed) = (sample.archive(), sample.changed()?);
        let new = sample.dir().join("new.o");
        let words = [
            ("{archive}", &*archive),
            ("{changed}", &*changed),
            ("{new}", &*new),
        ];
        for case in &cases {
            let Some(promised) = case.comes_to.get(name) else {
                continue;
            };
            fs::write(&archive, &sample.bytes)?;
            let ran = succeed(&mut case.command(sample.dir(), &words))?;
            let level = level(&fs::read(&archive)?, &sample).map_err(|e| ran.error(&e.0))?;
            if level != *promised {
                wrong.push(format!("{name}: {}: {level:?}, not {promised:?}", ran.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn changes_by_binutils_are_detected() -> Result<()> {
    change(true)
}

#[test]
#[ignore = "needs llvm of several releases: ./tests/run"]
fn changes_by_llvm_are_detected() -> Result<()> {
    change(false)
}
