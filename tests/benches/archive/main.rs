//! Super-archives compared with tools that do parts of their work. `BENCHMARKS.md` has the last
//! results of `cargo bench -p gpustub-tests --bench archive`, which prints figures and asserts no
//! time.
//! The members are those of the C and the C++ library, which every machine with a compiler has, and device
//! libraries that `./tests/run --all --components-only` downloads.

mod data;
mod lookup;
mod pages;
mod sizes;
mod writing;

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use data::Set;
use gpustub_superarchive::{Input, Layer, LayerId, Request, View, ViewId, definitions};
use gpustub_tests::command::succeed;
use gpustub_tests::{Result, components};

fn main() -> Result<()> {
    let load = fs::read_to_string("/proc/loadavg")?;
    println!("load: {}", load.trim());
    let work = components::target_dir().join("bench-archive");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let libraries = [
        Library::unpack("libc.a", &work)?,
        Library::unpack("libstdc++.a", &work)?,
    ];
    let sets = Set::components()?;
    // Names of parts as arguments: only these.
    let parts: Vec<String> = (std::env::args().skip(1))
        .filter(|one| !one.starts_with('-'))
        .collect();
    let chosen = |part: &str| parts.is_empty() || parts.iter().any(|one| one == part);
    if chosen("lookup") {
        lookup::print(&libraries, &sets, &work)?;
    }
    if chosen("writing") {
        writing::print(&libraries, &sets, &work)?;
    }
    if chosen("sizes") {
        sizes::print(&libraries[0], &sets, &work)?;
    }
    if chosen("pages") {
        pages::print(&libraries[0], &work)?;
    }
    Ok(fs::remove_dir_all(&work)?)
}

/// Static library, unpacked into files.
struct Library {
    name: &'static str,
    dir: PathBuf,
    /// Names and contents.
    files: Vec<(String, Vec<u8>)>,
}

impl Library {
    fn unpack(name: &'static str, work: &Path) -> Result<Self> {
        let file = format!("-print-file-name={name}");
        let ran = succeed(Command::new("cc").arg(&file))?;
        let library = Path::new(ran.stdout.trim());
        let dir = work.join(format!("{name}-members"));
        fs::create_dir(&dir)?;
        succeed(Command::new("ar").arg("x").arg(library).current_dir(&dir))?;
        let mut names: Vec<_> = fs::read_dir(&dir)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<Result<_>>()?;
        names.sort();
        let files = names.into_iter().map(|name| {
            let data = fs::read(dir.join(&name))?;
            Ok((name, data))
        });
        Ok(Self {
            name,
            files: files.collect::<Result<_>>()?,
            dir,
        })
    }
}

fn inputs(files: &[(String, Vec<u8>)]) -> Result<Vec<Input<'_>>> {
    let mut all = Vec::with_capacity(files.len());
    for (name, data) in files {
        all.push(Input {
            name: Cow::Borrowed(name.as_bytes()),
            data,
            symbols: definitions(data).map_err(|e| format!("{name}: {e:?}"))?,
        });
    }
    Ok(all)
}

/// Request with one view per family; the first is the default view.
fn views(families: &[Vec<(String, Vec<u8>)>]) -> Result<Request<'_>> {
    let mut request = Request {
        default: Some(ViewId(0)),
        ..Request::default()
    };
    for (number, files) in families.iter().enumerate() {
        let layer = Layer::new(format!("gfx{number}"), inputs(files)?);
        request.layers.push(layer);
        request.views.push(View {
            name: format!("gfx{number}"),
            layers: vec![LayerId(number)],
        });
    }
    Ok(request)
}

/// `count` copies of a library. `common` of each thousand members are the same in all copies; each
/// other member has eight more bytes, which differ by copy.
fn families(library: &Library, count: usize, common: usize) -> Vec<Vec<(String, Vec<u8>)>> {
    let family = |number: usize| {
        let files = library.files.iter().enumerate();
        let files = files.map(|(at, (name, data))| {
            let mut data = data.clone();
            if at * 1000 / library.files.len() >= common {
                data.extend((number as u64).to_le_bytes());
            }
            (name.clone(), data)
        });
        files.collect()
    };
    (0..count).map(family).collect()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
