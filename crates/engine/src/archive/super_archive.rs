//! A declared super-archive: its files, its request and the diagnostics of both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpustub_core::diag::{
    Code, Diagnostic, EMPTY_LAYER, IO_ERROR, LAYER_CONFLICT, LIMIT_EXCEEDED, NO_SYMBOLS,
    NONCANONICAL_BITCODE, OVERRIDE_MAY_BE_INLINED,
};
use gpustub_core::directives::Directive;
use gpustub_core::ids::Id;
use gpustub_core::manifest::{self, Archive, in_out_dir};
use gpustub_core::offload::{Compression, unpack_lz4};
use gpustub_superarchive::{
    CanonicalBitcode, Conflict, Input, Layer, LayerId, LayerPosition, MemberPosition, Outcome,
    Plan, Refusal, Request, Source, View, ViewId, WriteError, has_unknown_symbols,
};

use super::device_code::Hidden;
use super::inputs::{LayerPaths, MappedLayers};
use super::replace::replace;
#[cfg(feature = "split")]
use super::split::SplitBitcode;
use super::unpacked_code::UnpackedCode;
use crate::env::Env;
use crate::files;

/// Inputs of a declared super-archive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArchivePaths {
    /// Paths of each layer.
    pub layers: Vec<LayerPaths>,
    /// Files and directories for cargo to watch, as `GpuStub.toml` names them.
    pub watched: Vec<String>,
}

/// Finds the files of the layers. `file` is the name of `GpuStub.toml` in messages, `package` its
/// directory; `out` is `OUT_DIR`, which is known in build scripts.
pub fn find(
    archive: &Archive,
    file: &str,
    package: &Path,
    out: Option<&Path>,
) -> Result<ArchivePaths, Vec<Diagnostic>> {
    let mut inputs = ArchivePaths::default();
    let mut diagnostics = Vec::new();
    for layer in &archive.layers {
        let mut layer_paths = Vec::new();
        for pattern in &layer.files {
            let (root, relative) = match (in_out_dir(&pattern.value), out) {
                (None, _) => (package, pattern.value.as_str()),
                (Some(relative), Some(out)) => (out, relative),
                (Some(_), None) => {
                    let message =
                        "`$OUT_DIR` is the directory of a build script, which does not exist here";
                    let help = "let the build script write the archive: `cargo build`";
                    let error = Diagnostic::error(&EMPTY_LAYER, message).help(help);
                    diagnostics.push(error.with_origin(file, pattern.span.clone()));
                    continue;
                }
            };
            let paths = expand(root, relative, &|problem| {
                let message = format!(
                    "layer `{}` of archive.{}: `{}` {problem}",
                    layer.name.value, archive.name.value, pattern.value
                );
                Diagnostic::error(&EMPTY_LAYER, message).help(files::pattern_help(root))
            });
            match paths {
                Ok(paths) => {
                    // Not OUT_DIR: cargo would find files of the script newer than its start.
                    if root == package {
                        inputs.watched.extend(watched(root, relative, &paths));
                    }
                    layer_paths.extend(paths);
                }
                Err(error) => diagnostics.push(error.with_origin(file, pattern.span.clone())),
            }
        }
        inputs.layers.push(LayerPaths {
            name: layer.name.value.clone(),
            paths: layer_paths,
            interposable: layer.interposable,
        });
    }
    inputs.watched.sort();
    inputs.watched.dedup();
    if diagnostics.is_empty() {
        Ok(inputs)
    } else {
        Err(diagnostics)
    }
}

/// Files that a pattern matches, sorted; a plain path matches itself, also if it is a directory.
fn expand(
    root: &Path,
    pattern: &str,
    refuse: &dyn Fn(&str) -> Diagnostic,
) -> Result<Vec<PathBuf>, Box<Diagnostic>> {
    let plain = root.join(pattern);
    if plain.exists() || Source::split_view(&plain).is_some() {
        return Ok(vec![plain]);
    }
    if !files::is_pattern(pattern) {
        return Err(refuse("does not exist").into());
    }
    files::matching(root, pattern, refuse)
}

/// The files, as `GpuStub.toml` names them, and the directory in which a new one could match.
fn watched(root: &Path, pattern: &str, paths: &[PathBuf]) -> Vec<String> {
    let mut watched = files::watched([pattern].into_iter());
    for path in paths {
        // Cargo accepts names that are text only.
        if let Some(path) = path.strip_prefix(root).unwrap_or(path).to_str() {
            watched.push(path.to_owned());
        }
    }
    watched.retain(|path| !path.contains('\n'));
    watched
}

/// Contents of a declared super-archive, as the writer's request.
pub fn request<'d>(archive: &Archive, layers: Vec<Layer<'d>>) -> Request<'d> {
    let mut views = Vec::new();
    for view in &archive.views {
        views.push(View {
            name: view.name.value.clone(),
            layers: view
                .layers
                .iter()
                .map(|layer| LayerId(layer.index()))
                .collect(),
        });
    }
    Request {
        layers,
        views,
        default: archive.default_view.map(|view| ViewId(view.index())),
    }
}

/// Reports members whose symbols are unknown, once for each layer and reason. Members whose device code is `unpacked`
/// are known.
pub fn unknown_symbols(layers: &[Layer<'_>], unpacked: &UnpackedCode<'_>) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for layer in layers {
        let mut hidden: Vec<(Hidden, &Input<'_>, usize)> = Vec::new();
        let mut unknown = Vec::new();
        let mut members = layer.members.iter();
        while let Some(member) = members.find(|member| !unpacked.has_all_of(member)) {
            match Hidden::of(member) {
                Some(reason) => match hidden.iter().position(|(first, ..)| *first == reason) {
                    Some(index) => hidden[index].2 += 1,
                    None if hidden.len() < MAX_REASONS => hidden.push((reason, member, 0)),
                    None => {}
                },
                None if has_unknown_symbols(member) => unknown.push(member),
                None => {}
            }
        }
        for (reason, first, count) in &hidden {
            let others = and_more(*count);
            warnings.push(reason.warning(layer, first, &others, unpacked.has_layers()));
        }
        if let [first, others @ ..] = &unknown[..] {
            let message = format!(
                "layer `{}`: the symbols of `{}`{} are unknown: no view finds them",
                layer.name,
                String::from_utf8_lossy(&first.name),
                and_more(others.len())
            );
            let help =
                "give an archive with an index of them: `gcc-ar`, `llvm-ar` or the compiler's own";
            warnings.push(Diagnostic::warning(&NO_SYMBOLS, message).help(help));
        }
    }
    warnings
}

/// Maximum number of reasons for one layer; archives have members for one or two sets of architectures.
const MAX_REASONS: usize = 4;

/// Reports bitcode modules without a canonical form, once for each layer and reason.
pub fn not_canonical(layers: &[Layer<'_>], canonical: &CanonicalBitcode) -> Vec<Diagnostic> {
    let modules = canonical.unchanged.iter();
    let modules = modules.map(|module| (module.layer, module.member, module.reason.to_string()));
    unchanged(layers, modules, &NONCANONICAL_BITCODE, "stays as it is")
}

/// Reports bitcode modules that are not split, once for each layer and reason.
#[cfg(feature = "split")]
pub fn unsplit(layers: &[Layer<'_>], split: &SplitBitcode) -> Vec<Diagnostic> {
    let modules = split.unsplit.iter();
    let modules = modules.map(|module| (module.layer, module.member, module.reason.clone()));
    let code = &gpustub_core::diag::UNSPLIT_BITCODE;
    let mut warnings = unchanged(layers, modules, code, "is not split");
    warnings.extend(split.nothing_split());
    warnings
}

/// Warnings about members and the reasons why they are unchanged.
fn unchanged(
    layers: &[Layer<'_>],
    modules: impl Iterator<Item = (LayerId, MemberPosition, String)>,
    code: &'static Code,
    predicate: &str,
) -> Vec<Diagnostic> {
    // The first member of each layer and reason, and the number of members.
    let mut members: BTreeMap<(LayerId, String), (MemberPosition, usize)> = BTreeMap::new();
    for (layer, member, reason) in modules {
        let (_, count) = members.entry((layer, reason)).or_insert((member, 0));
        *count += 1;
    }
    let mut warnings = Vec::new();
    for ((layer, reason), (first, count)) in members {
        let layer = &layers[layer.0];
        let name = String::from_utf8_lossy(&layer.members[first.0].name);
        let message = format!(
            "layer `{}`: `{name}`{} {predicate}: {reason}",
            layer.name,
            and_more(count - 1)
        );
        warnings.push(
            Diagnostic::warning(code, message)
                .help("families share it only where it is byte for byte the same"),
        );
    }
    warnings
}

/// ` and 3 more`, after the first name of several.
fn and_more(count: usize) -> String {
    match count {
        0 => String::new(),
        _ => format!(" and {count} more"),
    }
}

/// Reports overridden functions that may be inlined into others, once for each view and member.
pub fn may_be_inlined(plan: &Plan<'_, '_>, request: &Request<'_>) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for (view, resolved) in plan.views() {
        let mut inlined: BTreeMap<(&[u8], LayerPosition), Vec<&[u8]>> = BTreeMap::new();
        for r#override in &resolved.overrides {
            if matches!(
                r#override.outcome,
                Outcome::Undefined {
                    may_be_inlined: true
                }
            ) {
                let member = (r#override.overridden, r#override.overridden_layer);
                inlined.entry(member).or_default().push(r#override.symbol);
            }
        }
        for ((member, layer), symbols) in inlined {
            let message = format!(
                "view `{}`: `{}` of layer `{}` may contain copies of `{}`{}",
                view.name,
                String::from_utf8_lossy(member),
                request.layer_at(view, layer).name,
                String::from_utf8_lossy(symbols[0]),
                and_more(symbols.len() - 1)
            );
            let help =
                "compile the layer without inlining, or override the functions that call them";
            warnings.push(Diagnostic::warning(&OVERRIDE_MAY_BE_INLINED, message).help(help));
        }
    }
    warnings
}

/// Reasons for which a super-archive cannot be written, each with the view that it concerns.
pub fn refused(request: &Request<'_>, error: &WriteError<'_>) -> Vec<(Option<ViewId>, Diagnostic)> {
    /// Maximum number of diagnostics for one view.
    const MAX_CONFLICTS: usize = 10;
    match error {
        WriteError::Conflicts(view, conflicts) => {
            let mut diagnostics = Vec::new();
            for overridden in conflicts.iter().take(MAX_CONFLICTS) {
                diagnostics.push((Some(*view), conflict(request, *view, overridden)));
            }
            let omitted = conflicts.len() - diagnostics.len();
            if let (Some((_, diagnostic)), true) = (diagnostics.last_mut(), omitted > 0) {
                diagnostic.message += &format!("; and {omitted} more like it");
            }
            diagnostics
        }
        WriteError::UnknownLayer { view, layer } => {
            let (name, count) = (&request.views[view.0].name, request.layers.len());
            let layer = layer.0;
            let message = format!("view `{name}` has a layer {layer}, and there are {count}");
            let diagnostic = Diagnostic::error(&LAYER_CONFLICT, message);
            vec![(Some(*view), diagnostic.help("layers are counted from 0"))]
        }
        WriteError::UnknownDefaultView(view) => {
            let (view, count) = (view.0, request.views.len());
            let message = format!("the default is view {view}, and there are {count}");
            let diagnostic = Diagnostic::error(&LAYER_CONFLICT, message);
            vec![(None, diagnostic.help("views are counted from 0"))]
        }
        WriteError::DuplicateViewName(name) => {
            let message = format!("two views have the name `{name}`");
            let index = request.views.iter().rposition(|view| view.name == *name);
            vec![(
                index.map(ViewId),
                Diagnostic::error(&LAYER_CONFLICT, message).help("rename one"),
            )]
        }
        _ => {
            let message = "the archive, or a part of it, is more than the format can hold";
            let help = "limits: 4 GiB for names and for tables, 10 digits for a member's size";
            vec![(None, Diagnostic::error(&LIMIT_EXCEEDED, message).help(help))]
        }
    }
}

fn conflict(request: &Request<'_>, view: ViewId, conflict: &Conflict<'_>) -> Diagnostic {
    let view = &request.views[view.0];
    let overridden = &conflict.overridden;
    let member = String::from_utf8_lossy(overridden.overridden);
    let layer = &request.layer_at(view, overridden.overridden_layer).name;
    let chosen_member = String::from_utf8_lossy(overridden.chosen);
    let chosen_layer = &request.layer_at(view, overridden.chosen_layer).name;
    let symbol = String::from_utf8_lossy(overridden.symbol);
    let needed_for = String::from_utf8_lossy(conflict.needed_for);
    let message = format!(
        "view `{}`: `{member}` of layer `{layer}` is needed for `{needed_for}`, and defines `{symbol}`, \
         which `{chosen_member}` of layer `{chosen_layer}` overrides: {}",
        view.name, conflict.reason
    );
    let help = match conflict.reason {
        Refusal::Strong => format!(
            "make `{symbol}` of layer `{layer}` weak, put it into a member of its own, or compile the \
             layer with `-fPIC -fsemantic-interposition` and declare it interposable"
        ),
        _ => format!(
            "put `{symbol}` of layer `{layer}` into a member of its own, or override `{needed_for}` in \
             `{chosen_layer}` as well"
        ),
    };
    Diagnostic::error(&LAYER_CONFLICT, message).help(help)
}

/// Code of a build script's inputs that is compressed by itself.
fn decompress(method: Compression, compressed: &[u8], size: usize) -> Option<Vec<u8>> {
    match method {
        Compression::Lz4 => unpack_lz4(compressed, size),
        #[cfg(feature = "zstd")]
        Compression::Zstd => gpustub_superarchive::decompress_frame(compressed, size),
        _ => None,
    }
}

/// Error about a key of a table whose feature is disabled.
#[cfg(not(all(feature = "split", feature = "zstd")))]
fn missing_feature(key: &str, feature: &str) -> Box<Diagnostic> {
    let message = format!("`{key}` needs feature `{feature}`, which is disabled");
    let help = format!("add feature `{feature}` to the build-dependency `gpustub-build`");
    let code = &gpustub_core::diag::MISSING_BUILD_FEATURE;
    Box::new(Diagnostic::error(code, message).help(help))
}

/// Messages about a written super-archive.
pub(crate) struct Built {
    /// Directives for cargo.
    pub directives: Vec<Directive>,
    /// Human-readable warnings.
    pub warnings: Vec<Diagnostic>,
}

/// Builds a declared super-archive at `path`.
pub(crate) fn build(
    archive: &Archive,
    file: &str,
    package: &Path,
    out: &Path,
    path: &Path,
    // LLVM's tools are found in its PATH.
    #[cfg_attr(not(feature = "split"), expect(unused_variables))] env: &Env,
) -> Result<Built, Vec<Diagnostic>> {
    let span = &archive.name.span;
    let ArchivePaths {
        layers: layer_paths,
        watched,
    } = find(archive, file, package, Some(out))?;
    let in_table = |diagnostic: Box<Diagnostic>| vec![diagnostic.with_origin(file, span.clone())];
    #[cfg(not(feature = "split"))]
    if archive.split {
        return Err(in_table(missing_feature("split", "split")));
    }
    #[cfg(not(feature = "zstd"))]
    if archive.compress {
        return Err(in_table(missing_feature("compress", "zstd")));
    }
    let inputs = MappedLayers::open(&layer_paths)
        .map_err(|diagnostic| vec![diagnostic.with_origin(file, span.clone())])?;
    let layers = inputs
        .layers()
        .map_err(|diagnostic| vec![diagnostic.with_origin(file, span.clone())])?;
    let (code, layers) = if archive.unpack {
        let code = UnpackedCode::new(layers, &decompress).map_err(in_table)?;
        (code, Vec::new())
    } else {
        (UnpackedCode::default(), layers)
    };
    let unpacked = code.views().map_err(in_table)?;
    let layers = if archive.unpack {
        unpacked.layers
    } else {
        layers
    };
    let views = if archive.unpack {
        unpacked.views
    } else {
        request(archive, Vec::new()).views
    };
    let mut warnings = Vec::new();
    #[cfg(feature = "split")]
    let split = if archive.split {
        // One process at a time: cargo counts the build script as one job.
        SplitBitcode::from_layers(&layers, &views, archive.canonical_bitcode, env, 1, &|_| ())
            .map_err(in_table)?
    } else {
        SplitBitcode::default()
    };
    #[cfg(feature = "split")]
    let layers = {
        warnings.extend(unsplit(&layers, &split));
        split.apply(layers)
    };
    let canonical = if archive.canonical_bitcode {
        CanonicalBitcode::from_layers(&layers)
    } else {
        CanonicalBitcode::default()
    };
    warnings.extend(unknown_symbols(&layers, &code));
    warnings.extend(not_canonical(&layers, &canonical));
    let mut request = request(archive, canonical.apply(layers));
    if archive.unpack {
        warnings.extend(code.nothing_unpacked());
        request.views = views;
        request.default = archive.default_view.and(unpacked.host);
    }
    #[cfg(feature = "zstd")]
    let plan = if archive.compress {
        Plan::compressed(&request)
    } else {
        Plan::new(&request)
    };
    #[cfg(not(feature = "zstd"))]
    let plan = Plan::new(&request);
    let plan = plan.map_err(|error| {
        let mut diagnostics = Vec::new();
        for (view, diagnostic) in refused(&request, &error) {
            let name = match view {
                Some(view) if !archive.unpack => {
                    &archive.views[manifest::ViewId::from_index(view.0)].name
                }
                _ => &archive.name,
            };
            diagnostics.push(diagnostic.with_origin(file, name.span.clone()));
        }
        diagnostics
    })?;
    warnings.extend(may_be_inlined(&plan, &request));
    replace(path, &|mut out| plan.write(&mut out)).map_err(|e| {
        let message = format!("cannot write {}: {e}", path.display());
        vec![Diagnostic::error(&IO_ERROR, message).with_origin(file, span.clone())]
    })?;
    Ok(Built {
        directives: watched.into_iter().map(Directive::RerunIfChanged).collect(),
        warnings: warnings
            .into_iter()
            .map(|warning| warning.with_origin(file, span.clone()))
            .collect(),
    })
}

/// Writes a super-archive without views: documentation needs the file only.
pub(crate) fn build_empty(path: &Path) -> std::io::Result<()> {
    let request = Request::default();
    if let Ok(plan) = Plan::new(&request) {
        replace(path, &|mut out| plan.write(&mut out))?;
    }
    Ok(())
}
