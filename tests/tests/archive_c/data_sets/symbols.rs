//! Each view has the members and the symbols of its layers, for both readers and for the commands.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use gpustub_archive::SuperArchive;
use gpustub_superarchive::{Source, ViewId};
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use serde_json::Value;

use super::inputs::{Gpustub, Inputs, Row, rows, write};
use super::reference::Reference;
use crate::reader::walk;
use crate::walker::Walker;

/// Numbers of comparisons.
#[derive(Default)]
struct Compared {
    symbols: usize,
    absent: usize,
    members: usize,
    extracted: usize,
}

fn text(error: gpustub_archive::Error) -> String {
    error.to_string()
}

/// Compares all views with their references.
fn compare(bytes: &[u8], views: &[(&str, Reference<'_>)], compared: &mut Compared) -> Result<()> {
    let archive = SuperArchive::parse(bytes).map_err(text)?;
    archive.verify().map_err(text)?;
    assert_eq!(archive.view_count(), views.len());
    let symbols: BTreeSet<&str> = (views.iter())
        .flat_map(|(_, view)| view.symbols.keys().copied())
        .collect();
    let absent: Vec<String> = symbols.iter().map(|symbol| format!("{symbol}?")).collect();
    // Contents that were compared with a member of the input.
    let mut equal: HashMap<usize, &[u8]> = HashMap::new();
    for (name, expected) in views {
        let view = archive.view(name).map_err(text)?.ok_or(*name)?;
        assert_eq!(view.member_count(), expected.members.len(), "{name}");
        for (member, (layer, input)) in view.members().zip(&expected.members) {
            let member = member.map_err(text)?;
            assert_eq!(member.name(), input.name.as_bytes(), "{name}");
            assert_eq!(member.layer(), *layer, "{name}");
            let contents = member.contents().original().map_err(text)?;
            let compared_data = equal.get(&contents.index()).copied();
            if compared_data.map(<[u8]>::as_ptr) != Some(input.data.as_ptr()) {
                let data = contents.data().map_err(text)?;
                assert!(data == &*input.data, "{name}: {}", input.name);
                equal.insert(contents.index(), &input.data);
            }
            compared.members += 1;
        }
        let absent = absent.iter().map(String::as_str);
        for symbol in symbols.iter().copied().chain(absent) {
            let member = view.find_symbol(symbol).map_err(text)?;
            let position = expected.symbols.get(symbol).copied();
            assert_eq!(
                member.map(|member| member.position()),
                position,
                "{name}: {symbol}"
            );
            match position {
                Some(_) => compared.symbols += 1,
                None => compared.absent += 1,
            }
        }
        assert_eq!(view.symbol_count(), expected.symbols.len(), "{name}");
    }
    Ok(())
}

/// Compares the output of `list`, and the archives of `extract`.
fn commands(file: &Path, views: &[(&str, Reference<'_>)], compared: &mut Compared) -> Result<()> {
    let gpustub = Gpustub::new()?;
    let list = succeed(gpustub.archive(&["list", "--format", "json"]).arg(file))?;
    let list: Value = serde_json::from_str(&list.stdout)?;
    assert_eq!(list["views"].as_array().map(Vec::len), Some(views.len()));
    let extracted = file.with_file_name("view.a");
    for ((name, expected), listed) in views
        .iter()
        .zip(list["views"].as_array().into_iter().flatten())
    {
        assert_eq!(listed["name"], *name);
        let names = (listed["members"].as_array().ok_or("no members")?.iter())
            .map(|member| &member["name"]);
        let expected_names = expected.members.iter().map(|(_, input)| &*input.name);
        assert!(names.eq(expected_names), "list of {name}");

        let mut extract = gpustub.archive(&["extract", "-q", "--view", name, "-o"]);
        succeed(extract.arg(&extracted).arg(file))?;
        let source = Source::open(&extracted).map_err(|error| error.to_string())?;
        let layer = source.layer().map_err(|error| error.to_string())?;
        let members = (layer.members.iter()).map(|member| (&*member.name, member.data));
        let inputs =
            (expected.members.iter()).map(|(_, input)| (input.name.as_bytes(), &input.data[..]));
        assert!(members.eq(inputs), "members extracted of {name}");
        compared.extracted += expected.members.len();
    }
    Ok(())
}

/// Prints the numbers of comparisons of a set, none of which failed.
fn check(row: &Row, walker: &Walker) -> Result<()> {
    let inputs = Inputs::read(row)?;
    let views: Vec<_> = (inputs.views.iter())
        .map(|view| (&*view.name, Reference::new(view, &inputs.layers)))
        .collect();
    let mut compared = Compared::default();
    let mut request = inputs.request()?;
    for default in [None, Some(ViewId(0))] {
        request.default = default;
        let bytes = write(&request)?;
        compare(&bytes, &views, &mut compared)?;
        let answers = walker.walk([&bytes[..]])?;
        assert!(answers == [walk(&bytes)], "{}: the C reader", row.name);
        let dir = scratch()?;
        let file = dir.path().join("all.a");
        fs::write(&file, bytes)?;
        commands(&file, &views, &mut compared)?;
    }
    let Compared {
        symbols,
        absent,
        members,
        extracted,
    } = compared;
    println!(
        "{}: {} views, with and without a default view: {symbols} symbols, {absent} absent names, \
         {members} members, {extracted} members extracted; 0 wrong, 0 missing",
        row.name,
        views.len()
    );
    Ok(())
}

#[test]
#[ignore = "needs device libraries, libgcc, newlib and others of Debian, llvm, and minutes: ./tests/run --all"]
fn heavy_each_view_of_the_data_sets_is_a_search_of_its_layers() -> Result<()> {
    let walker = Walker::compile(&["gcc", "-std=c99", "-O2"])?;
    rows()?.iter().try_for_each(|row| check(row, &walker))
}
