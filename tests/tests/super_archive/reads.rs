//! Tools that list and unpack see the default view, without messages.

use gpustub_tests::Result;
use gpustub_tests::command::run;

use crate::cases::{Case, Cases};
use crate::sample::{HIDDEN_MARKS, Sample};

fn read(everywhere: bool) -> Result<()> {
    let cases: Vec<_> = (Cases::read()?.reads.iter())
        .filter(|case| case.everywhere == everywhere)
        .flat_map(Case::releases)
        .collect();
    assert!(!cases.is_empty());
    for (name, default) in Sample::all(everywhere) {
        let sample = Sample::new(default)?;
        for case in cases.iter().filter(|case| case.shows.contains_key(name)) {
            let archive = sample.archive();
            let ran =
                run(&mut case.command(sample.dir(), &[("{archive}", &archive)]))?.success()?;
            for text in &case.shows[name] {
                if !ran.stdout.contains(text) {
                    return Err(ran.error(&format!("{text:?} is missing from the output")));
                }
            }
            if case.shows[name].is_empty() && !ran.stdout.is_empty() {
                return Err(ran.error("the tool should show no members"));
            }
            for text in HIDDEN_MARKS.iter().chain(&["only1"]) {
                if ran.stdout.contains(text) {
                    return Err(ran.error(&format!("{text:?} is hidden, but shown")));
                }
            }
            let is_silent =
                (ran.stderr.lines()).all(|line| case.says.iter().any(|end| line.ends_with(end)));
            if !is_silent {
                return Err(ran.error("a complaint"));
            }
        }
    }
    Ok(())
}

#[test]
fn binutils_show_the_default_view_alone() -> Result<()> {
    read(true)
}

#[test]
#[ignore = "needs llvm of several releases: ./tests/run"]
fn llvm_shows_the_default_view_alone() -> Result<()> {
    read(false)
}
