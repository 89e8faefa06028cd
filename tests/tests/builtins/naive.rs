//! Reference search with LLVM's tools: layer after layer, for each symbol.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_archive::SuperArchive;
use gpustub_tests::Result;
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

/// Archive, as LLVM's tools read it.
struct Archive {
    /// Member names by symbol.
    index: BTreeMap<String, String>,
    contents: HashMap<String, Vec<u8>>,
}

impl Archive {
    fn read(directory: &Path, name: &str) -> Result<Self> {
        let file = directory.join(format!("{name}.a"));
        let mut nm = Command::new("llvm-nm-19");
        let ran = succeed(nm.args(["--print-armap", "--just-symbol-name"]).arg(&file))?;
        let mut index = BTreeMap::new();
        // An archive without symbols has no such section.
        let lines = ran.stdout.lines().skip_while(|line| *line != "Archive map");
        for line in lines.skip(1).take_while(|line| !line.is_empty()) {
            let (symbol, member) = line.split_once(" in ").ok_or_else(|| ran.error(line))?;
            // The first member that defines a symbol counts.
            index.entry(symbol.to_owned()).or_insert(member.to_owned());
        }
        let members = directory.join(format!("{name}.extracted"));
        fs::create_dir_all(&members)?;
        let mut ar = Command::new("llvm-ar-19");
        succeed(ar.arg("x").arg(&file).current_dir(&members))?;
        let mut contents = HashMap::new();
        for entry in fs::read_dir(&members)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            contents.insert(name.into_owned(), fs::read(&path)?);
        }
        fs::remove_dir_all(&members)?;
        Ok(Self { index, contents })
    }
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
            archives.insert(*layer, Archive::read(directory, layer)?);
        }
    }
    let symbols = archives.values().flat_map(|archive| archive.index.keys());
    let symbols: BTreeSet<&String> = symbols.collect();
    let mut compared = 0;
    for (name, layers) in views {
        let view = archive
            .view(name)
            .map_err(|e| e.to_string())?
            .ok_or(*name)?;
        let mut defined = 0;
        for symbol in &symbols {
            let holds = |layer| {
                let archive: &Archive = &archives[layer];
                let member = archive.index.get(*symbol)?;
                Some((member.as_bytes(), &archive.contents[member][..]))
            };
            let expected = layers.iter().find_map(holds);
            let found = view
                .find_symbol(symbol.as_bytes())
                .map_err(|e| format!("{name}: {symbol}: {e}"))?;
            let found = match &found {
                None => None,
                Some(member) => {
                    let data = member
                        .data()
                        .map_err(|e| format!("{name}: {symbol}: {e}"))?;
                    Some((member.name(), data))
                }
            };
            if found != expected {
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
