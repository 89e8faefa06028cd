//! libclc for its families.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_archive::SuperArchive;
use gpustub_tests::Result;
use gpustub_tests::bitcode::{CHAINS, Layer, SOME, layers, split_chain};
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;

use crate::naive::{Views, build, build_with, compare};

/// Each family with all its functions; a view is its archive, and those of the families before it.
fn complete_families(
    chains: &[&[&str]],
    directory: &Path,
    min_symbols: usize,
) -> Result<CompleteFamilies> {
    let mut views = Views::new();
    for chain in chains {
        for (index, family) in chain.iter().enumerate() {
            Layer::from_directory(family, &directory.join(family))?.archive(directory)?;
            views.push((*family, chain[index..].to_vec()));
        }
    }
    let file = build(directory, &views)?;
    let compared = compare(directory, &views)?;
    assert!(compared >= min_symbols, "{compared} symbols");

    let canonical = directory.join("canonical.a");
    build_with(directory, &views, &canonical, &["--canonical-bitcode"])?;
    assert_eq!(
        symbol_counts(&canonical, &views)?,
        symbol_counts(&file, &views)?
    );
    let sizes = Sizes::measure(&file, chains.concat().into_iter(), directory)?;
    Ok(CompleteFamilies {
        canonical: fs::metadata(&canonical)?.len(),
        sizes,
    })
}

/// Number of symbols of each view of an archive.
fn symbol_counts(file: &Path, views: &Views<'_>) -> Result<Vec<usize>> {
    let bytes = fs::read(file)?;
    let archive = SuperArchive::parse(&bytes).map_err(text)?;
    let mut counts = Vec::new();
    for (name, _) in views {
        let view = archive.view(name).map_err(text)?.ok_or(*name)?;
        counts.push(view.symbol_count());
    }
    Ok(counts)
}

fn text(error: gpustub_archive::Error) -> String {
    error.to_string()
}

/// Each family with the functions that it overrides, and the functions common to all once. Each
/// view has its family's definition of each symbol.
fn overriding_families(chains: &[&[&str]], directory: &Path, min_symbols: usize) -> Result<Sizes> {
    let mut names = Vec::new();
    for chain in chains {
        let layers = layers(chain, directory)?;
        for layer in &layers {
            layer.archive(directory)?;
        }
        names.push(
            layers
                .into_iter()
                .map(|layer| layer.name)
                .collect::<Vec<_>>(),
        );
    }
    let mut views = Views::new();
    // Family whose directory has the members of a layer.
    let mut origins = BTreeMap::new();
    for (chain, names) in chains.iter().zip(&names) {
        for (index, family) in chain.iter().enumerate() {
            views.push((*family, names[index..].iter().map(String::as_str).collect()));
            origins.insert(names[index].as_bytes(), *family);
        }
        origins.insert(names[chain.len()].as_bytes(), chain[chain.len() - 1]);
    }
    let file = build(directory, &views)?;
    let compared = compare(directory, &views)?;
    assert!(compared >= min_symbols, "{compared} symbols");

    let bytes = fs::read(&file)?;
    let archive = SuperArchive::parse(&bytes).map_err(text)?;
    for (family, _) in &views {
        let view = archive.view(family).map_err(text)?.ok_or(*family)?;
        let layers: Vec<_> = view.layers().collect::<Result<_, _>>().map_err(text)?;
        let members = Layer::from_directory(family, &directory.join(family))?.files;
        assert_eq!(view.symbol_count(), members.len(), "{family}");
        for file in &members {
            let symbol = file.file_stem().unwrap_or_default().to_string_lossy();
            let member = view
                .find_symbol(symbol.as_bytes())
                .map_err(text)?
                .ok_or(&*symbol)?;
            let origin = origins[layers[member.layer()].name];
            let name = file.file_name().unwrap_or_default();
            assert_eq!(
                member.data().map_err(text)?,
                fs::read(directory.join(origin).join(name))?
            );
            let [plain, plain_origin] =
                [*family, origin].map(|family| directory.join(family).join("plain").join(name));
            assert!(
                fs::read(plain)? == fs::read(plain_origin)?,
                "{family}: {symbol} of {origin}"
            );
        }
    }
    let names = names.iter().flatten().map(|name| &name[..]);
    Sizes::measure(&file, names, directory)
}

#[test]
#[ignore = "needs libclc, llvm: ./tests/run"]
fn views_of_some_of_libclc_are_what_the_layers_have() -> Result<()> {
    let dir = scratch()?;
    let chains = [&CHAINS[0][1..]];
    split_chain(chains[0], dir.path(), Some(SOME))?;
    complete_families(&chains, dir.path(), 3 * 200)?;
    overriding_families(&chains, dir.path(), 3 * 200)?;
    Ok(())
}

#[test]
#[ignore = "needs libclc, llvm, and minutes: ./tests/run --all"]
fn heavy_views_of_all_of_libclc_are_what_the_layers_have() -> Result<()> {
    let dir = scratch()?;
    for chain in CHAINS {
        split_chain(chain, dir.path(), None)?;
    }
    let directory = dir.path();
    let complete = complete_families(&CHAINS, directory, 100_000)?;
    let zip = zip(&CHAINS.concat(), directory)?;
    let plain = plain(&CHAINS.concat(), directory)?;
    let overriding = overriding_families(&CHAINS, directory, 100_000)?;
    print_row(
        "an archive each, or all in a fat file",
        complete.sizes.archives,
    );
    print_row("zip -9 of these", zip);
    print_row("super-archive of these", complete.sizes.super_archive);
    print_row("the same, canonical", complete.canonical);
    print_row(
        "without the processors' names: an archive each",
        plain.archives,
    );
    print_row("super-archive of these", plain.super_archive);
    print_row(
        "what families override, and what is common: an archive for each layer",
        overriding.archives,
    );
    print_row("super-archive of these", overriding.super_archive);
    // Tables cost little if no member is shared, and equal members are stored once.
    for sizes in [&complete.sizes, &plain, &overriding] {
        assert!(sizes.super_archive < sizes.archives + sizes.archives / 50);
    }
    assert!(
        complete.canonical < complete.sizes.super_archive
            && complete.canonical <= plain.super_archive
    );
    assert!(overriding.super_archive < complete.sizes.super_archive);
    Ok(())
}

/// Row for BENCHMARKS.md.
fn print_row(files: &str, bytes: u64) {
    println!("{:7.1} MB  {files}", bytes as f64 / 1e6);
}

/// Sizes if each family has all its functions.
struct CompleteFamilies {
    sizes: Sizes,
    /// Bytes of a super-archive of the canonical bitcode.
    canonical: u64,
}

/// Sizes in bytes.
struct Sizes {
    super_archive: u64,
    /// Total size of the archives that it was built from.
    archives: u64,
}

impl Sizes {
    fn measure<'a>(
        super_archive: &Path,
        names: impl Iterator<Item = &'a str>,
        directory: &Path,
    ) -> Result<Self> {
        let mut archives = 0;
        for name in names {
            archives += fs::metadata(directory.join(format!("{name}.a")))?.len();
        }
        Ok(Self {
            super_archive: fs::metadata(super_archive)?.len(),
            archives,
        })
    }
}

/// Each family without processor attributes: equal members are stored once, without layers.
fn plain(families: &[&str], directory: &Path) -> Result<Sizes> {
    let plain = directory.join("plain");
    fs::create_dir(&plain)?;
    for family in families {
        Layer::from_directory(family, &directory.join(family).join("plain"))?.archive(&plain)?;
    }
    let views = families
        .iter()
        .map(|family| (*family, vec![*family]))
        .collect();
    let file = build(&plain, &views)?;
    Sizes::measure(&file, families.iter().copied(), &plain)
}

/// Size of the packed archives, one for each family.
fn zip(families: &[&str], directory: &Path) -> Result<u64> {
    let mut python = Command::new("python3");
    python.current_dir(directory).args(["-c", ZIP]);
    python.args(families.iter().map(|family| format!("{family}.a")));
    succeed(&mut python)?;
    Ok(fs::metadata(directory.join("all.zip"))?.len())
}

const ZIP: &str = "import sys, zipfile
with zipfile.ZipFile('all.zip', 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as zip:
    for name in sys.argv[1:]: zip.write(name)";
