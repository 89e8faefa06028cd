//! `archive build`: builds a super-archive from archives.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use gpustub_core::diag::{Diagnostic, has_errors};
use gpustub_core::ids::Id;
use gpustub_core::manifest::{self, Archive, is_part_name};
use gpustub_core::suggest::nearest;
use gpustub_engine::archive::{self, Inputs, LayerPaths};
use gpustub_superarchive::{
    CanonicalBitcode, LayerId, LayerPosition, Outcome, Plan, Request, Source, View, ViewId,
};
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::output::number;
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, Workspace};

use crate::cli::ArchiveBuild;

/// Runs the command.
pub fn run(options: &ArchiveBuild, shell: &mut Shell) -> Result<bool> {
    let wanted = match &options.manifest_archive {
        Some(name) => from_manifest(name, options, shell)?,
        None => Some(from_paths(options)?),
    };
    let Some(wanted) = wanted else {
        return Ok(false);
    };
    let inputs = match Inputs::open(&wanted.layers) {
        Ok(inputs) => inputs,
        Err(one) => return wanted.report(None, *one, shell),
    };
    refuse_input(&options.output, &inputs)?;
    let layers = match inputs.layers() {
        Ok(layers) => layers,
        Err(one) => return wanted.report(None, *one, shell),
    };
    let canonical = if wanted.canonical {
        CanonicalBitcode::from_layers(&layers)
    } else {
        CanonicalBitcode::default()
    };
    let warnings = archive::unknown_symbols(&layers).into_iter();
    for one in warnings.chain(archive::not_canonical(&layers, &canonical)) {
        wanted.report(None, one, shell)?;
    }
    let request = Request {
        layers: canonical.apply(layers),
        views: wanted.views.clone(),
        default: wanted.default,
    };
    let output = options.output.display();
    let status = shell.status_line("Building");
    status.show(|| format!("{output}: resolving {} views", request.views.len()));
    let plan = Plan::new(&request);
    drop(status);
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            for (view, one) in archive::refused(&request, &error) {
                wanted.report(view, one, shell)?;
            }
            return Ok(false);
        }
    };
    for one in archive::may_be_inlined(&plan, &request) {
        wanted.report(None, one, shell)?;
    }
    if options.print_overrides {
        shell.data(overrides(&request, &plan))?;
    }
    let content = |mut out: &mut dyn Write| plan.write(&mut out);
    let status = shell.status_line("Building");
    status.show(|| format!("{output}: writing {} bytes", plan.size()));
    let written = archive::replace(&options.output, &content);
    drop(status);
    let written = written.map_err(|e| Error::io("write", &options.output, &e))?;
    let what = format!(
        "{output}: {}, {}, {} bytes",
        number(request.views.len(), "view"),
        number(plan.contents_count(), "member"),
        plan.size()
    );
    shell.status(if written { "Built" } else { "Fresh" }, what);
    if wanted.canonical {
        let count = canonical.count();
        shell.note(format!(
            "{count} bitcode modules contain no processor name: compile them with -mcpu and -mattr"
        ));
    }
    Ok(true)
}

/// Inputs and views of the super-archive to build.
struct Wanted {
    layers: Vec<LayerPaths>,
    views: Vec<View>,
    default: Option<ViewId>,
    canonical: bool,
    /// The table of the archive and its file, for `--manifest-archive`.
    table: Option<(Declared, Archive)>,
}

impl Wanted {
    /// Reports a diagnostic at its table.
    fn report(&self, view: Option<ViewId>, one: Diagnostic, shell: &mut Shell) -> Result<bool> {
        let (one, sources) = match &self.table {
            None => (one, Sources::new()),
            Some((declared, archive)) => {
                let named = match view {
                    Some(view) => &archive.views[manifest::ViewId::from_index(view.0)].name,
                    None => &archive.name,
                };
                let one = one.with_origin(&declared.shown, named.span.clone());
                (one, declared.sources())
            }
        };
        shell.diagnostics(&[one], &sources)?;
        Ok(false)
    }
}

/// The tables of `--manifest-archive`; `None`: errors were reported.
fn from_manifest(name: &str, options: &ArchiveBuild, shell: &mut Shell) -> Result<Option<Wanted>> {
    let workspace = Workspace::load(&options.cargo, Depth::Members)?;
    let all = Declared::read_all(&workspace, &workspace.selected()?)?;
    let names = |one: &Declared| one.manifest.archive_names.clone();
    let known: Vec<String> = all.iter().flat_map(|(_, one)| names(one)).collect();
    let all = all.into_iter().map(|(_, one)| one);
    let mut having = all.filter(|one| names(one).iter().any(|other| other == name));
    let Some(declared) = having.next() else {
        let error = Error::new(format!("unknown archive `{name}` in {FILE}"));
        return Err(match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help("see `-p` for another package"),
        });
    };
    if having.next().is_some() {
        let error = Error::new(format!("several packages have an [archive.{name}]"));
        return Err(error.help("select one with `-p`"));
    }
    let found = &declared.diagnostics;
    shell.diagnostics(found, &declared.sources())?;
    let archive = declared
        .manifest
        .archives
        .iter()
        .find(|one| one.name.value == name);
    let Some(archive) = archive.filter(|_| !has_errors(found)).cloned() else {
        return Ok(None);
    };
    match archive::find(&archive, &declared.shown, &declared.directory, None) {
        Ok(found) => Ok(Some(Wanted {
            layers: found.layers,
            views: archive::request(&archive, Vec::new()).views,
            default: archive.default_view.map(|view| ViewId(view.index())),
            canonical: archive.canonical_bitcode,
            table: Some((declared, archive)),
        })),
        Err(found) => {
            shell.diagnostics(&found, &declared.sources())?;
            Ok(None)
        }
    }
}

fn from_paths(options: &ArchiveBuild) -> Result<Wanted> {
    let mut paths: Vec<&Path> = Vec::new();
    let mut layer = |path| {
        let at = paths.iter().position(|other| *other == path);
        let at = at.unwrap_or_else(|| {
            paths.push(path);
            paths.len() - 1
        });
        LayerId(at)
    };
    let mut views: Vec<View> = Vec::new();
    for path in &options.inputs {
        views.push(View {
            name: stem(path),
            layers: vec![layer(path)],
        });
    }
    for (name, of) in &options.view {
        let mut layers: Vec<LayerId> = Vec::new();
        for path in of {
            let at = layer(path);
            if layers.contains(&at) {
                return Err(Error::new(format!(
                    "view `{name}` names `{}` twice",
                    path.display()
                )));
            }
            layers.push(at);
        }
        let name = name.clone();
        views.push(View { name, layers });
    }
    for (at, view) in views.iter().enumerate() {
        let name = &view.name;
        if !is_part_name(name) {
            let error = Error::new(format!("invalid view name `{}`", name.escape_debug()));
            return Err(error
                .help("name the view with `--view NAME=INPUT`, without spaces, `/`, `,` and `=`"));
        }
        if views[..at].iter().any(|other| other.name == *name) {
            let error = Error::new(format!("two views have the name `{name}`"));
            return Err(error.help("name them with `--view NAME=INPUT`"));
        }
    }
    let default = match &options.default_view {
        _ if options.no_default_view => None,
        None => Some(ViewId(0)),
        Some(wanted) => {
            let at = views.iter().position(|view| view.name == *wanted);
            Some(ViewId(at.ok_or_else(|| no_view(wanted, &views))?))
        }
    };
    let stems: Vec<String> = paths.iter().map(|path| stem(path)).collect();
    let layers = paths.iter().zip(&stems).map(|(path, stem)| LayerPaths {
        // Files with one name, in different directories, are distinguished by their paths.
        name: match stems.iter().filter(|other| *other == stem).count() {
            1 => stem.clone(),
            _ => path.display().to_string(),
        },
        paths: vec![path.to_path_buf()],
        interposable: options.interposable.contains(stem),
    });
    let unknown = |name: &&String| !stems.contains(name);
    if let Some(name) = options.interposable.iter().find(unknown) {
        let error = Error::new(format!("unknown layer `{name}` in `--interposable`"));
        return Err(error.help(format!("layers are: {}", stems.join(", "))));
    }
    Ok(Wanted {
        layers: layers.collect(),
        views,
        default,
        canonical: options.canonical_bitcode,
        table: None,
    })
}

fn no_view(name: &str, views: &[View]) -> Error {
    let error = Error::new(format!("unknown view `{name}` in `--default-view`"));
    let names: Vec<&str> = views.iter().map(|view| view.name.as_str()).collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help(format!("views are: {}", names.join(", "))),
    }
}

fn stem(path: &Path) -> String {
    if let Some((_, view)) = Source::split_view(path) {
        return view;
    }
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Rejects an output that would overwrite an input, or that the next run would read as one.
fn refuse_input(output: &Path, inputs: &Inputs) -> Result<()> {
    let file = output.canonicalize().ok();
    let parent = output.parent().unwrap_or(output);
    let parent = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    let directory = parent.canonicalize().ok();
    // A file in an input directory is an input of the next run.
    let same = |path: &PathBuf| Some(path) == file.as_ref() || Some(path) == directory.as_ref();
    let mut paths = inputs.paths();
    match paths.find(|path| path.canonicalize().as_ref().is_ok_and(same)) {
        None => Ok(()),
        Some(path) => {
            let message = if path.is_dir() {
                format!(
                    "the output is in `{}`, which is one of the inputs",
                    path.display()
                )
            } else {
                format!("`{}` is one of the inputs", path.display())
            };
            Err(Error::new(message).help("write another file: `-o all.a`"))
        }
    }
}

/// A line for each definition that is overridden.
fn overrides(request: &Request<'_>, plan: &Plan<'_, '_>) -> String {
    let mut lines = String::new();
    for (view, resolved) in plan.views() {
        let layer = |position: LayerPosition| &request.layer_at(view, position).name;
        for one in &resolved.overrides {
            let _ = writeln!(
                lines,
                "{}: `{}` of `{}` ({}) overrides that of `{}` ({}){}",
                view.name,
                super::open::text(one.symbol),
                super::open::text(one.chosen),
                layer(one.chosen_layer),
                super::open::text(one.overridden),
                layer(one.overridden_layer),
                match one.outcome {
                    Outcome::Undefined { .. } => ", which is undefined in a variant",
                    Outcome::Equal => ", both are COMDAT",
                    _ => "",
                }
            );
        }
    }
    lines
}
