//! The data sets of `sets.toml`, and super-archives of them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_superarchive::{Layer, LayerId, Plan, Request, Source, View, ViewId};
use gpustub_tests::archive::{Archive, Member};
use gpustub_tests::cargo::program;
use gpustub_tests::components::component;
use gpustub_tests::{Result, files_below};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    set: Vec<Row>,
}

/// A data set, as the table describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub name: String,
    component: String,
    views: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    except: Vec<String>,
    only: Option<String>,
    #[serde(default)]
    interposable: bool,
    count: usize,
    hidden: Option<f64>,
    default: Option<f64>,
}

impl Row {
    /// Bound of the size with or without a default view.
    pub fn bound(&self, default: Option<ViewId>) -> Option<f64> {
        default.map_or(self.hidden, |_| self.default)
    }
}

pub fn rows() -> Result<Vec<Row>> {
    let table: Table = toml::from_str(include_str!("sets.toml"))?;
    Ok(table.set)
}

/// The files of a data set, as the writer and as LLVM's tools read them.
pub struct Inputs {
    sources: Vec<Source>,
    /// Reference of each layer.
    pub layers: Vec<Archive>,
    /// Each view with its layers.
    pub views: Vec<View>,
    interposable: bool,
    /// Members by the paths of their files, without links.
    files: HashMap<PathBuf, Member>,
}

impl Inputs {
    pub fn read(row: &Row) -> Result<Self> {
        let root = component(&row.component)?;
        let mut files = files_below(&root)?;
        files.sort();
        let mut inputs = Self {
            sources: Vec::new(),
            layers: Vec::new(),
            views: Vec::new(),
            interposable: row.interposable,
            files: HashMap::new(),
        };
        let mut known = HashMap::new();
        for (name, layers) in &row.views {
            let (first, last) = layers[0].split_once("{}").ok_or("no {} in a layer")?;
            for file in &files {
                let path = file.strip_prefix(&root)?.to_string_lossy();
                let middle = path
                    .strip_prefix(first)
                    .and_then(|rest| rest.strip_suffix(last));
                let skips = |middle: &str| {
                    row.except.iter().any(|word| middle.contains(word))
                        || row.only.as_ref().is_some_and(|word| !middle.contains(word))
                };
                let Some(middle) = middle.filter(|middle| !skips(middle)) else {
                    continue;
                };
                let mut view = View {
                    name: name.replace("{}", middle).replace('/', "-"),
                    layers: Vec::new(),
                };
                for layer in layers {
                    let files = layer.split(' ');
                    let files = files.map(|file| root.join(file.replace("{}", middle)));
                    let files: Vec<_> = files.collect();
                    let layer = match known.get(&files) {
                        Some(&layer) => layer,
                        None => inputs.open(&files)?,
                    };
                    known.insert(files, layer);
                    view.layers.push(layer);
                }
                inputs.views.push(view);
            }
        }
        assert_eq!(inputs.views.len(), row.count, "{}", row.name);
        Ok(inputs)
    }

    fn open(&mut self, files: &[PathBuf]) -> Result<LayerId> {
        let is_archive = |file: &Path| file.extension().is_some_and(|ending| ending == "a");
        let (source, archive) = match files {
            [file] if is_archive(file) => (Source::open(file), Archive::read(file)?),
            _ => {
                let members = files.iter().map(|file| self.member(file));
                let members = members.collect::<Result<Vec<_>>>()?;
                (Source::files(files.to_vec()), members.into())
            }
        };
        self.sources
            .push(source.map_err(|error| error.to_string())?);
        self.layers.push(archive);
        Ok(LayerId(self.layers.len() - 1))
    }

    /// A file as a member. Many files are links to one.
    fn member(&mut self, file: &Path) -> Result<Member> {
        let original = fs::canonicalize(file)?;
        let member = match self.files.entry(original) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => new.insert(Member::read(file)?).clone(),
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        Ok(Member {
            name: name.into_owned(),
            ..member
        })
    }

    /// A request without a default view.
    pub fn request(&self) -> Result<Request<'_>> {
        let layers = self.sources.iter().map(|source| {
            let mut layer = source.layer().map_err(|error| error.to_string())?;
            layer.interposable = self.interposable;
            Ok(layer)
        });
        Ok(Request {
            layers: layers.collect::<Result<Vec<Layer<'_>>>>()?,
            views: self.views.clone(),
            default: None,
        })
    }
}

/// Bytes of the super-archive.
pub fn write(request: &Request<'_>) -> Result<Vec<u8>> {
    let plan = Plan::new(request).map_err(|error| format!("{error:?}"))?;
    let mut bytes = Vec::new();
    plan.write(&mut bytes)?;
    assert_eq!(plan.size(), bytes.len() as u64);
    Ok(bytes)
}

/// The command, built once for many calls.
pub struct Gpustub(PathBuf);

impl Gpustub {
    pub fn new() -> Result<Self> {
        Ok(Self(program("cargo-gpustub")?))
    }

    /// `cargo gpustub archive` with these words.
    pub fn archive(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.0);
        command.args(["gpustub", "archive"]).args(words);
        command
    }
}
