//! `archive build`: builds a super-archive from archives.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use gpustub_core::diag::{Diagnostic, NOTHING_SHARED, has_errors};
use gpustub_core::ids::Id;
use gpustub_core::manifest::{self, Archive, is_part_name};
use gpustub_core::suggest::nearest;
use gpustub_engine::Env;
use gpustub_engine::archive::{self, LayerPaths, MappedLayers, SplitBitcode, UnpackedCode};
use gpustub_image::offload;
use gpustub_superarchive::{
    CanonicalBitcode, LayerId, Outcome, Plan, Request, Source, View, ViewId,
};
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::output::number;
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, Workspace};

use super::open::text;
use crate::cli::ArchiveBuild;

/// Runs the command.
pub fn run(options: &ArchiveBuild, shell: &mut Shell) -> Result<bool> {
    let spec = match &options.manifest_archive {
        Some(name) => from_manifest(name, options, shell)?,
        None => Some(from_paths(options)?),
    };
    let Some(spec) = spec else {
        return Ok(false);
    };
    let inputs = match MappedLayers::open(&spec.layers) {
        Ok(inputs) => inputs,
        Err(diagnostic) => return spec.report(None, *diagnostic, shell).map(|()| false),
    };
    refuse_input(&options.output, &inputs)?;
    let layers = match inputs.layers() {
        Ok(layers) => layers,
        Err(diagnostic) => return spec.report(None, *diagnostic, shell).map(|()| false),
    };
    let (code, layers) = if spec.unpack {
        match UnpackedCode::new(layers, &offload::decompress) {
            Ok(code) => (code, Vec::new()),
            Err(diagnostic) => return spec.report(None, *diagnostic, shell).map(|()| false),
        }
    } else {
        (UnpackedCode::default(), layers)
    };
    let unpacked = match code.views() {
        Ok(unpacked) => unpacked,
        Err(diagnostic) => return spec.report(None, *diagnostic, shell).map(|()| false),
    };
    let (layers, views, default) = if spec.unpack {
        let default = spec.default_view(&options.default_view, unpacked.host, &unpacked.views)?;
        (unpacked.layers, unpacked.views, default)
    } else {
        (layers, spec.views.clone(), spec.default)
    };
    let split = if spec.split {
        let status = shell.status_line("Building");
        let output = slashes(&options.output);
        let progress = |step| status.show(|| format!("{output}: {step}"));
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let env = Env::from_process();
        SplitBitcode::from_layers(&layers, &views, spec.canonical, &env, jobs, &progress)
    } else {
        Ok(SplitBitcode::default())
    };
    let split = match split {
        Ok(split) => split,
        Err(diagnostic) => return spec.report(None, *diagnostic, shell).map(|()| false),
    };
    for warning in archive::unsplit(&layers, &split) {
        spec.report(None, warning, shell)?;
    }
    let layers = split.apply(layers);
    let canonical = if spec.canonical {
        CanonicalBitcode::from_layers(&layers)
    } else {
        CanonicalBitcode::default()
    };
    for warning in archive::unknown_symbols(&layers, &code) {
        spec.report(None, warning, shell)?;
    }
    for warning in archive::not_canonical(&layers, &canonical) {
        spec.report(None, warning, shell)?;
    }
    let request = Request {
        layers: canonical.apply(layers),
        views,
        default,
    };
    if let Some(warning) = code.nothing_unpacked().filter(|_| spec.unpack) {
        spec.report(None, warning, shell)?;
    }
    let plan = {
        let status = shell.status_line("Building");
        let output = slashes(&options.output);
        status.show(|| format!("{output}: resolving {} views", request.views.len()));
        if spec.compress {
            Plan::compressed(&request)
        } else {
            Plan::new(&request)
        }
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            for (view, diagnostic) in archive::refused(&request, &error) {
                spec.report(view, diagnostic, shell)?;
            }
            return Ok(false);
        }
    };
    for warning in archive::may_be_inlined(&plan, &request) {
        spec.report(None, warning, shell)?;
    }
    if options.print_overrides {
        shell.data(overrides(&request, &plan))?;
    }
    write(&plan, request.views.len(), &options.output, shell)?;
    if let Some(note) = nothing_shared(&plan, &request, &spec) {
        spec.report(None, note, shell)?;
    }
    if canonical.count() > 0 {
        shell.note("the bitcode contains no processor name: compile it with -mcpu and -mattr");
    }
    Ok(true)
}

/// Writes the super-archive and prints its size.
fn write(plan: &Plan<'_, '_>, view_count: usize, path: &Path, shell: &mut Shell) -> Result<()> {
    let output = slashes(path);
    let is_written = {
        let status = shell.status_line("Building");
        status.show(|| format!("{output}: writing {} bytes", plan.size()));
        archive::replace(path, &|mut out: &mut dyn Write| plan.write(&mut out))
            .map_err(|e| Error::io("write", path, &e))?
    };
    let summary = format!(
        "{output}: {}, {}, {} bytes",
        number(view_count, "view"),
        number(plan.contents_count(), "member"),
        plan.size()
    );
    shell.status(if is_written { "Built" } else { "Fresh" }, summary);
    Ok(())
}

/// A note if no two views have equal members.
fn nothing_shared(
    plan: &Plan<'_, '_>,
    request: &Request<'_>,
    spec: &ArchiveSpec,
) -> Option<Diagnostic> {
    let members: usize = plan.views().map(|(_, view)| view.members.len()).sum();
    let occupied_views = plan.views().filter(|(_, view)| !view.members.is_empty());
    if occupied_views.count() < 2 || plan.contents_count() < members {
        return None;
    }
    let message = "no view shares a member with another";
    let mut inputs = request.layers.iter().flat_map(|layer| &layer.members);
    let has_bitcode = inputs.any(|member| member.data.starts_with(b"BC\xC0\xDE"));
    let help = if spec.compress {
        // Frames refer to the member of another view anyway.
        "members that are nearly equal take little space if they are compressed"
    } else if !spec.canonical && has_bitcode {
        "`--canonical-bitcode` lets views share bitcode that differs in the name of the processor"
    } else if !spec.split && has_bitcode {
        "`--split` lets views share functions of bitcode modules"
    } else {
        "members are shared if all bytes are equal: compile code for all families once, without paths \
         (`-ffile-prefix-map`)"
    };
    Some(Diagnostic::note(&NOTHING_SHARED, message).help(help))
}

/// Inputs and views of the super-archive to build.
struct ArchiveSpec {
    layers: Vec<LayerPaths>,
    views: Vec<View>,
    default: Option<ViewId>,
    /// Whether the views are those of the device code's targets.
    unpack: bool,
    canonical: bool,
    compress: bool,
    split: bool,
    /// The table of the archive and its file, for `--manifest-archive`.
    table: Option<(Declared, Archive)>,
}

impl ArchiveSpec {
    /// The default one of unpacked views: that of the host unless it has another name, or there is to be none.
    fn default_view(
        &self,
        name: &Option<String>,
        host: Option<ViewId>,
        views: &[View],
    ) -> Result<Option<ViewId>> {
        match name {
            _ if self.default.is_none() => Ok(None),
            Some(name) => view_id(name, views).map(Some),
            None => Ok(host),
        }
    }

    /// Reports a diagnostic at its table.
    fn report(
        &self,
        view: Option<ViewId>,
        diagnostic: Diagnostic,
        shell: &mut Shell,
    ) -> Result<()> {
        match &self.table {
            None => shell.diagnostics(&[diagnostic], &Sources::new()),
            Some((declared, archive)) => {
                let name = match view {
                    Some(view) if !self.unpack => {
                        &archive.views[manifest::ViewId::from_index(view.0)].name
                    }
                    _ => &archive.name,
                };
                let diagnostic = diagnostic.with_origin(&declared.display_path, name.span.clone());
                shell.diagnostics(&[diagnostic], &declared.sources())
            }
        }
    }
}

/// Index of a view by its name.
fn view_id(name: &str, views: &[View]) -> Result<ViewId> {
    match views.iter().position(|view| view.name == *name) {
        Some(index) => Ok(ViewId(index)),
        None => Err(unknown_view(name, views)),
    }
}

/// The tables of `--manifest-archive`; `None`: errors were reported.
fn from_manifest(
    name: &str,
    options: &ArchiveBuild,
    shell: &mut Shell,
) -> Result<Option<ArchiveSpec>> {
    let workspace = Workspace::load(&options.cargo, Depth::Members)?;
    let mut archive_names: Vec<String> = Vec::new();
    let mut declaring: Vec<Declared> = Vec::new();
    for (_, declared) in Declared::read_all(&workspace, &workspace.selected()?)? {
        let names = &declared.manifest.archive_names;
        archive_names.extend(names.iter().cloned());
        if names.iter().any(|archive_name| archive_name == name) {
            declaring.push(declared);
        }
    }
    if declaring.len() > 1 {
        let error = Error::new(format!("several packages have an [archive.{name}]"));
        return Err(error.help("select one with `-p`"));
    }
    let Some(declared) = declaring.pop() else {
        let error = Error::new(format!("unknown archive `{name}` in {FILE}"));
        return Err(
            match nearest(name, archive_names.iter().map(String::as_str)) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help("see `-p` for another package"),
            },
        );
    };
    shell.diagnostics(&declared.diagnostics, &declared.sources())?;
    if has_errors(&declared.diagnostics) {
        return Ok(None);
    }
    let mut archives = declared.manifest.archives.iter();
    let Some(archive) = archives.find(|archive| archive.name.value == name).cloned() else {
        return Ok(None);
    };
    match archive::find(&archive, &declared.display_path, &declared.directory, None) {
        Ok(files) => Ok(Some(ArchiveSpec {
            layers: files.layers,
            views: archive::request(&archive, Vec::new()).views,
            default: archive.default_view.map(|view| ViewId(view.index())),
            unpack: archive.unpack,
            canonical: archive.canonical_bitcode,
            compress: archive.compress,
            split: archive.split,
            table: Some((declared, archive)),
        })),
        Err(diagnostics) => {
            shell.diagnostics(&diagnostics, &declared.sources())?;
            Ok(None)
        }
    }
}

fn from_paths(options: &ArchiveBuild) -> Result<ArchiveSpec> {
    let mut paths: Vec<&Path> = Vec::new();
    let mut views: Vec<View> = Vec::new();
    for path in &options.inputs {
        let layers = vec![layer_id(&mut paths, path)];
        let name = stem(path);
        // The targets of the device code are known later.
        if !options.unpack {
            views.push(View { name, layers });
        }
    }
    for (name, inputs) in &options.view {
        let mut layers: Vec<LayerId> = Vec::new();
        for path in inputs {
            let layer = layer_id(&mut paths, path);
            if layers.contains(&layer) {
                return Err(Error::new(format!(
                    "view `{name}` names `{}` twice",
                    slashes(path)
                )));
            }
            layers.push(layer);
        }
        let name = name.clone();
        views.push(View { name, layers });
    }
    check_names(&views)?;
    let default = match &options.default_view {
        _ if options.no_default_view => None,
        Some(name) if !options.unpack => Some(view_id(name, &views)?),
        _ => Some(ViewId(0)),
    };
    Ok(ArchiveSpec {
        layers: layers(&paths, &options.interposable)?,
        views,
        default,
        unpack: options.unpack,
        canonical: options.canonical_bitcode,
        compress: options.compress,
        split: options.split,
        table: None,
    })
}

/// The layer of a path, which is added if it is new.
fn layer_id<'a>(paths: &mut Vec<&'a Path>, path: &'a Path) -> LayerId {
    match paths.iter().position(|layer_path| *layer_path == path) {
        Some(index) => LayerId(index),
        None => {
            paths.push(path);
            LayerId(paths.len() - 1)
        }
    }
}

/// Rejects view names that are invalid or not unique.
fn check_names(views: &[View]) -> Result<()> {
    for (index, View { name, .. }) in views.iter().enumerate() {
        if !is_part_name(name) {
            let error = Error::new(format!("invalid view name `{}`", name.escape_debug()));
            return Err(error
                .help("name the view with `--view NAME=INPUT`, without spaces, `/`, `,` and `=`"));
        }
        if views[..index].iter().any(|earlier| earlier.name == *name) {
            let error = Error::new(format!("two views have the name `{name}`"));
            return Err(error.help("name them with `--view NAME=INPUT`"));
        }
    }
    Ok(())
}

/// A layer for each path. `interposable` names some of the layers.
fn layers(paths: &[&Path], interposable: &[String]) -> Result<Vec<LayerPaths>> {
    let stems: Vec<String> = paths.iter().map(|path| stem(path)).collect();
    if let Some(name) = interposable.iter().find(|name| !stems.contains(name)) {
        let error = Error::new(format!("unknown layer `{name}` in `--interposable`"));
        return Err(error.help(format!("layers are: {}", stems.join(", "))));
    }
    let mut layers = Vec::new();
    for (path, stem) in paths.iter().zip(&stems) {
        let is_unique = stems.iter().filter(|layer| *layer == stem).count() == 1;
        layers.push(LayerPaths {
            // Files with one name, in different directories, are distinguished by their paths.
            name: if is_unique {
                stem.clone()
            } else {
                slashes(path)
            },
            paths: vec![path.to_path_buf()],
            interposable: interposable.contains(stem),
        });
    }
    Ok(layers)
}

fn unknown_view(name: &str, views: &[View]) -> Error {
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
fn refuse_input(output: &Path, inputs: &MappedLayers) -> Result<()> {
    let file = output.canonicalize().ok();
    let directory = match output.parent().unwrap_or(output) {
        parent if parent.as_os_str().is_empty() => Path::new("."),
        parent => parent,
    };
    // A file in an input directory is an input of the next run.
    let directory = directory.canonicalize().ok();
    for path in inputs.paths() {
        let Ok(input) = path.canonicalize() else {
            continue;
        };
        if Some(&input) == file.as_ref() || Some(&input) == directory.as_ref() {
            let path_text = slashes(path);
            let (message, help) = if path.is_dir() {
                (
                    format!("the output is in `{path_text}`, which is one of the inputs"),
                    "write it elsewhere: `-o ../all.a`".to_owned(),
                )
            } else {
                (
                    format!("`{path_text}` is one of the inputs"),
                    format!("write another file, or name the views to keep: `{path_text}:VIEW`"),
                )
            };
            return Err(Error::new(message).help(help));
        }
    }
    Ok(())
}

/// A line for each definition that is overridden.
fn overrides(request: &Request<'_>, plan: &Plan<'_, '_>) -> String {
    let mut lines = String::new();
    for (view, resolved) in plan.views() {
        for definition in &resolved.overrides {
            let _ = writeln!(
                lines,
                "{}: `{}` of `{}` ({}) overrides that of `{}` ({}){}",
                view.name,
                text(definition.symbol),
                text(definition.chosen),
                request.layer_at(view, definition.chosen_layer).name,
                text(definition.overridden),
                request.layer_at(view, definition.overridden_layer).name,
                match definition.outcome {
                    Outcome::Undefined { .. } => ", which is undefined in a variant",
                    Outcome::Equal => ", both are COMDAT",
                    _ => "",
                }
            );
        }
    }
    lines
}
