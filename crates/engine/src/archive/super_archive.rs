//! A declared super-archive: its files, its request and the diagnostics of both.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use gpustub_core::diag::{
    Diagnostic, EMPTY_LAYER, IO_ERROR, LAYER_CONFLICT, LIMIT_EXCEEDED, NO_SYMBOLS,
    NONCANONICAL_BITCODE, OVERRIDE_MAY_BE_INLINED,
};
use gpustub_core::directives::Directive;
use gpustub_core::ids::Id;
use gpustub_core::manifest::{self, Archive, in_out_dir};
use gpustub_superarchive::{
    CanonicalBitcode, Conflict, Layer, LayerId, LayerPosition, MemberPosition, Outcome, Plan,
    Refusal, Request, Source, View, ViewId, WriteError, has_unknown_symbols,
};

use super::inputs::{Inputs, LayerPaths};
use super::replace::replace;
use crate::files;

/// Inputs of a declared super-archive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
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
) -> Result<Found, Vec<Diagnostic>> {
    let mut found = Found::default();
    let mut wrong = Vec::new();
    for layer in &archive.layers {
        let mut paths = Vec::new();
        for named in &layer.files {
            let (root, below) = match (in_out_dir(&named.value), out) {
                (None, _) => (package, named.value.as_str()),
                (Some(below), Some(out)) => (out, below),
                (Some(_), None) => {
                    let message =
                        "`$OUT_DIR` is the directory of a build script, which does not exist here";
                    let help = "let the build script write the archive: `cargo build`";
                    let error = Diagnostic::error(&EMPTY_LAYER, message).help(help);
                    wrong.push(error.with_origin(file, named.span.clone()));
                    continue;
                }
            };
            let refuse = |what: &str| {
                let message = format!(
                    "layer `{}` of archive.{}: `{}` {what}",
                    layer.name.value, archive.name.value, named.value
                );
                Diagnostic::error(&EMPTY_LAYER, message).help(files::pattern_help(root))
            };
            match expand(root, below, &refuse) {
                Ok(some) => {
                    // Not OUT_DIR: cargo would find files of the script newer than its start.
                    if root == package {
                        found.watched.extend(watched(root, below, &some));
                    }
                    paths.extend(some);
                }
                Err(error) => wrong.push(error.with_origin(file, named.span.clone())),
            }
        }
        found.layers.push(LayerPaths {
            name: layer.name.value.clone(),
            paths,
            interposable: layer.interposable,
        });
    }
    found.watched.sort();
    found.watched.dedup();
    if wrong.is_empty() {
        Ok(found)
    } else {
        Err(wrong)
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
    let mut all = files::watched([pattern].into_iter());
    let named = paths
        .iter()
        .map(|path| path.strip_prefix(root).unwrap_or(path));
    // Cargo accepts names that are text only.
    all.extend(named.filter_map(|path| path.to_str().map(str::to_owned)));
    all.retain(|path| !path.contains('\n'));
    all
}

/// Contents of a declared super-archive, as the writer's request.
pub fn request<'d>(archive: &Archive, layers: Vec<Layer<'d>>) -> Request<'d> {
    let views = archive.views.iter().map(|view| View {
        name: view.name.value.clone(),
        layers: view
            .layers
            .iter()
            .map(|layer| LayerId(layer.index()))
            .collect(),
    });
    Request {
        layers,
        views: views.collect(),
        default: archive.default_view.map(|view| ViewId(view.index())),
    }
}

/// Reports members whose symbols are unknown, once for each layer.
pub fn unknown_symbols(layers: &[Layer<'_>]) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for layer in layers {
        let mut unknown = layer.members.iter().filter(|one| has_unknown_symbols(one));
        let Some(first) = unknown.next() else {
            continue;
        };
        let name = String::from_utf8_lossy(&first.name);
        let more = match unknown.count() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let message = format!(
            "layer `{}`: the symbols of `{name}`{more} are unknown: no view finds them",
            layer.name
        );
        let help =
            "give an archive with an index of them: `gcc-ar`, `llvm-ar` or the compiler's own";
        warnings.push(Diagnostic::warning(&NO_SYMBOLS, message).help(help));
    }
    warnings
}

/// Reports bitcode modules without a canonical form, once for each layer and reason.
pub fn not_canonical(layers: &[Layer<'_>], canonical: &CanonicalBitcode) -> Vec<Diagnostic> {
    // The first member of each layer and reason, and the number of members.
    let mut found: BTreeMap<(LayerId, String), (MemberPosition, usize)> = BTreeMap::new();
    for one in &canonical.unchanged {
        let (_, count) = found
            .entry((one.layer, one.reason.to_string()))
            .or_insert((one.member, 0));
        *count += 1;
    }
    let warnings = found.into_iter().map(|((layer, reason), (first, count))| {
        let layer = &layers[layer.0];
        let name = String::from_utf8_lossy(&layer.members[first.0].name);
        let more = match count {
            1 => String::new(),
            _ => format!(" and {} more", count - 1),
        };
        let message = format!(
            "layer `{}`: `{name}`{more} stays as it is: {reason}",
            layer.name
        );
        Diagnostic::warning(&NONCANONICAL_BITCODE, message)
            .help("families share it only where it is byte for byte the same")
    });
    warnings.collect()
}

/// Reports overridden functions that may be inlined into others, once for each view and member.
pub fn may_be_inlined(plan: &Plan<'_, '_>, request: &Request<'_>) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for (view, resolved) in plan.views() {
        let mut found: BTreeMap<(&[u8], LayerPosition), Vec<&[u8]>> = BTreeMap::new();
        for one in &resolved.overrides {
            if matches!(
                one.outcome,
                Outcome::Undefined {
                    may_be_inlined: true
                }
            ) {
                let member = (one.overridden, one.overridden_layer);
                found.entry(member).or_default().push(one.symbol);
            }
        }
        for ((member, layer), symbols) in found {
            let text = String::from_utf8_lossy;
            let more = match symbols.len() {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            let message = format!(
                "view `{}`: `{}` of layer `{}` may contain copies of `{}`{more}",
                view.name,
                text(member),
                request.layer_at(view, layer).name,
                text(symbols[0]),
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
    /// Maximum number of reports for one view.
    const SHOWN: usize = 10;
    match error {
        WriteError::Conflicts(view, conflicts) => {
            let shown = conflicts.iter().take(SHOWN);
            let reports = shown.map(|one| (Some(*view), conflict(request, *view, one)));
            let mut reports: Vec<_> = reports.collect();
            if let Some((_, last)) = reports.last_mut().filter(|_| conflicts.len() > SHOWN) {
                last.message += &format!("; and {} more like it", conflicts.len() - SHOWN);
            }
            reports
        }
        WriteError::UnknownLayer { view, layer } => {
            let (name, count) = (&request.views[view.0].name, request.layers.len());
            let layer = layer.0;
            let message = format!("view `{name}` has a layer {layer}, and there are {count}");
            let one = Diagnostic::error(&LAYER_CONFLICT, message);
            vec![(Some(*view), one.help("layers are counted from 0"))]
        }
        WriteError::UnknownDefaultView(view) => {
            let (view, count) = (view.0, request.views.len());
            let message = format!("the default is view {view}, and there are {count}");
            let one = Diagnostic::error(&LAYER_CONFLICT, message);
            vec![(None, one.help("views are counted from 0"))]
        }
        WriteError::DuplicateViewName(name) => {
            let message = format!("two views have the name `{name}`");
            let at = request.views.iter().rposition(|view| view.name == *name);
            vec![(
                at.map(ViewId),
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
    let text = String::from_utf8_lossy;
    let view = &request.views[view.0];
    let layer = |position: LayerPosition| &request.layer_at(view, position).name;
    let (overridden, symbol) = (&conflict.overridden, text(conflict.overridden.symbol));
    let (chosen, needed_for) = (layer(overridden.chosen_layer), text(conflict.needed_for));
    let message = format!(
        "view `{}`: `{}` of layer `{}` is needed for `{needed_for}`, and defines `{symbol}`, which `{}` \
         of layer `{chosen}` overrides",
        view.name,
        text(overridden.overridden),
        layer(overridden.overridden_layer),
        text(overridden.chosen),
    );
    let later = layer(overridden.overridden_layer);
    let message = format!("{message}: {}", conflict.reason);
    let help = match conflict.reason {
        Refusal::Strong => format!(
            "make `{symbol}` of layer `{later}` weak, put it into a member of its own, or compile the \
             layer with `-fPIC -fsemantic-interposition` and declare it interposable"
        ),
        _ => format!(
            "put `{symbol}` of layer `{later}` into a member of its own, or override `{needed_for}` in \
             `{chosen}` as well"
        ),
    };
    Diagnostic::error(&LAYER_CONFLICT, message).help(help)
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
) -> Result<Built, Vec<Diagnostic>> {
    let here = |one: Diagnostic| vec![one.with_origin(file, archive.name.span.clone())];
    let found = find(archive, file, package, Some(out))?;
    let inputs = Inputs::open(&found.layers).map_err(|one| here(*one))?;
    let layers = inputs.layers().map_err(|one| here(*one))?;
    let canonical = if archive.canonical_bitcode {
        CanonicalBitcode::from_layers(&layers)
    } else {
        CanonicalBitcode::default()
    };
    let warnings = unknown_symbols(&layers).into_iter();
    let warnings = warnings.chain(not_canonical(&layers, &canonical));
    let request = request(archive, canonical.apply(layers));
    let plan = Plan::new(&request).map_err(|error| {
        let reports = refused(&request, &error).into_iter().map(|(view, one)| {
            let named = match view {
                Some(view) => &archive.views[manifest::ViewId::from_index(view.0)].name,
                None => &archive.name,
            };
            one.with_origin(file, named.span.clone())
        });
        reports.collect::<Vec<_>>()
    })?;
    let warnings = warnings.chain(may_be_inlined(&plan, &request));
    let content = |mut out: &mut dyn Write| plan.write(&mut out);
    replace(path, &content).map_err(|e| {
        let message = format!("cannot write {}: {e}", path.display());
        here(Diagnostic::error(&IO_ERROR, message))
    })?;
    let watched = found.watched.into_iter();
    Ok(Built {
        directives: watched.map(Directive::RerunIfChanged).collect(),
        warnings: warnings.flat_map(here).collect(),
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
