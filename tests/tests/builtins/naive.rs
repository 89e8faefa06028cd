//! Reference search with LLVM's tools: layer after layer, for each symbol.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_archive::{Error, SuperArchive, View};
use gpustub_tests::Result;
use gpustub_tests::archive::Archive;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::succeed;

/// Layer names of each view, in the given order.
pub type Views<'a> = Vec<(&'a str, Vec<&'a str>)>;

/// Builds `all.a` from the archives `LAYER.a` in a directory.
pub fn build(directory: &Path, views: &Views<'_>) -> Result<PathBuf> {
    let file = directory.join("all.a");
    build_with(directory, views, &file, &[])?;
    Ok(file)
}

/// Builds a file from the archives `LAYER.a` in a directory.
pub fn build_with(
    directory: &Path,
    views: &Views<'_>,
    file: &Path,
    options: &[&str],
) -> Result<()> {
    let mut build = gpustub(&["archive", "build", "-q", "-o"])?;
    build.arg(file).args(options).current_dir(directory);
    for (view, layers) in views {
        let layers: Vec<_> = layers.iter().map(|layer| format!("{layer}.a")).collect();
        build
            .arg("--view")
            .arg(format!("{view}={}", layers.join(",")));
    }
    succeed(&mut build)?;
    Ok(())
}

/// Compares all symbols of all views of `all.a`. Returns their number.
pub fn compare(directory: &Path, views: &Views<'_>) -> Result<usize> {
    let bytes = fs::read(directory.join("all.a"))?;
    let archive = SuperArchive::parse(&bytes).map_err(|e| e.to_string())?;
    archive.verify().map_err(|e| e.to_string())?;
    assert_eq!(archive.view_count(), views.len());

    let mut archives = BTreeMap::new();
    for layer in views.iter().flat_map(|(_, layers)| layers) {
        if !archives.contains_key(layer) {
            let file = directory.join(format!("{layer}.a"));
            archives.insert(*layer, Archive::read(&file)?);
        }
    }
    let symbols: BTreeSet<&str> = archives
        .values()
        .flat_map(|archive| archive.index.keys())
        .map(|symbol| &**symbol)
        .collect();
    let mut compared = 0;
    for (name, layers) in views {
        let view = archive
            .view(name)
            .map_err(|e| e.to_string())?
            .ok_or(*name)?;
        let mut defined = 0;
        for &symbol in &symbols {
            let expected = layers.iter().find_map(|layer| {
                let archive: &Archive = &archives[layer];
                let member = &archive.members[*archive.index.get(symbol)?];
                Some((member.name.as_bytes(), &member.data[..]))
            });
            let member = member(&view, symbol).map_err(|e| format!("{name}: {symbol}: {e}"))?;
            if member != expected {
                return Err(format!(
                    "{name}: {symbol}: the member differs from that of the layers {layers:?}"
                )
                .into());
            }
            defined += usize::from(expected.is_some());
        }
        assert_eq!(view.symbol_count(), defined, "{name}");
        assert!(
            view.find_symbol("no such symbol")
                .map_err(|e| e.to_string())?
                .is_none()
        );
        compared += defined;
    }
    Ok(compared)
}

/// Name and contents of a member.
type Member<'a> = (&'a [u8], &'a [u8]);

/// The member that defines a symbol.
fn member<'a>(view: &View<'a>, symbol: &str) -> Result<Option<Member<'a>>, Error> {
    match view.find_symbol(symbol.as_bytes())? {
        Some(member) => Ok(Some((member.name(), member.data()?))),
        None => Ok(None),
    }
}
