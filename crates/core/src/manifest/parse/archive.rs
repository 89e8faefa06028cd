//! The `[archive.<name>]` tables of `GpuStub.toml`.

use std::ops::Range;

use super::values::{checked_strings, is_path, required_features, shorten};
use crate::by_name::ByName;
use crate::decode::{Decoder, Table, Value};
use crate::diag::{Diagnostic, INVALID_VALUE, MISSING_KEY, UNKNOWN_LAYER, UNUSED_LAYER};
use crate::fields;
use crate::ids::{Id, IndexVec};
use crate::library::is_id;
use crate::manifest::archive::{is_part_name, variable};
use crate::manifest::{Archive, ArchiveLayer, ArchiveView, LayerId, ViewId};
use crate::spanned::Spanned;
use crate::suggest::nearest;

const LAYERS_HELP: &str = "write layers = { common = [\"common.a\"] }";
const VIEWS_HELP: &str =
    "write views = { gfx900 = [\"gfx9\", \"common\"] }: layers, the first one wins";
const PART: &str = "letters, digits and signs, without spaces, `/`, `\\`, `,`, `=` and quotes";

/// Reads all tables, sorted by name; those with an error are left out.
pub(super) fn read(decoder: &mut Decoder<'_>, tables: &Table<'_>) -> Vec<Archive> {
    let mut archives: Vec<Archive> = Vec::new();
    let mut variables = ByName::new();
    for (name, value) in tables.entries() {
        let errors_before = decoder.errors();
        if let Some(previous) = variables.insert(&variable(name), name) {
            let message = format!(
                "`{}` and `archive.{previous}` have one variable",
                value.name
            );
            let help = "rename one: in the variable's name `-` is `_`";
            decoder.error_with_help(&INVALID_VALUE, value.key_span.clone(), message, help);
        }
        let archive = archive(decoder, name, &value);
        archives.extend(archive.filter(|_| decoder.errors() == errors_before));
    }
    archives
}

/// Layers that views use, in the order of first use.
#[derive(Default)]
struct UsedLayers {
    layers: IndexVec<LayerId, ArchiveLayer>,
    ids: ByName<LayerId>,
}

impl UsedLayers {
    fn add(&mut self, layer: &ArchiveLayer) -> LayerId {
        let id = self.layers.push(layer.clone());
        self.ids.insert(&layer.name.value, id);
        id
    }
}

/// Rejects `views`, and a default one, beside `unpack`.
fn reject_views(decoder: &mut Decoder<'_>, table: &Table<'_>) -> Option<()> {
    let message = if let Some(views) = table.get("views") {
        Some((
            views.key_span.clone(),
            format!("`{}` beside `unpack`", views.name),
        ))
    } else {
        let default = table
            .get("default-view")
            .filter(|value| !value.is_boolean());
        default.map(|value| {
            (
                value.span.clone(),
                format!("`{}` beside `unpack`", value.name),
            )
        })
    };
    let Some((span, message)) = message else {
        return Some(());
    };
    let help = "remove it: there is a view for each target of the device code, and `host`, the default one";
    decoder.error_with_help(&INVALID_VALUE, span, message, help);
    None
}

fn archive(decoder: &mut Decoder<'_>, name: &str, value: &Value<'_>) -> Option<Archive> {
    if !is_id(name) {
        let message = format!(
            "invalid archive name `{}`: lower-case letters, digits, `-` and `_`, at most 64",
            name.escape_debug()
        );
        decoder.error(&INVALID_VALUE, value.key_span.clone(), message);
        return None;
    }
    let errors_before = decoder.errors();
    let table = decoder.table(value, &fields::keys("archive"))?;
    let declared = declared_layers(decoder, &table, value)?;
    let unpack = match table.get("unpack") {
        Some(value) => decoder.boolean(&value)?,
        None => false,
    };
    let mut used = UsedLayers::default();
    let views = if unpack {
        reject_views(decoder, &table)?;
        for layer in &declared {
            used.add(layer);
        }
        IndexVec::new()
    } else {
        views(decoder, &table, value, &declared, &mut used)?
    };
    // After an error, the faulty name may have meant one of them.
    if decoder.errors() == errors_before {
        report_unused_layers(decoder, value, &declared, &used);
    }
    let default_view = match table.get("default-view") {
        Some(default) => default_view(decoder, &default, &views)?,
        // That of the host, if `unpack` makes the views.
        None => Some(ViewId::from_index(0)),
    };
    let canonical_bitcode = match table.get("canonical-bitcode") {
        Some(value) => decoder.boolean(&value)?,
        None => false,
    };
    let compress = match table.get("compress") {
        Some(value) => decoder.boolean(&value)?,
        None => false,
    };
    let split = match table.get("split") {
        Some(value) => decoder.boolean(&value)?,
        None => false,
    };
    let required_features = required_features(decoder, &table);
    Some(Archive {
        name: Spanned {
            value: name.to_owned(),
            span: value.key_span.clone(),
        },
        layers: used.layers,
        views,
        default_view,
        unpack,
        canonical_bitcode,
        compress,
        split,
        required_features,
    })
}

/// The keys `layers` and `interposable`.
fn declared_layers(
    decoder: &mut Decoder<'_>,
    table: &Table<'_>,
    value: &Value<'_>,
) -> Option<Vec<ArchiveLayer>> {
    let mut layers = Vec::new();
    for part in parts(decoder, table, "layers", &value.key_span, LAYERS_HELP)? {
        let errors_before = decoder.errors();
        let files = checked_strings(decoder, &part.table, &part.key, |path| {
            (!is_path(path)).then_some("takes paths and globs")
        });
        if files.is_empty() && decoder.errors() == errors_before {
            let message = format!("`{}` is empty", part.value.name);
            let help = "name its archives, directories or object files, such as [\"common/*.o\"]";
            decoder.error_with_help(&INVALID_VALUE, part.value.span.clone(), message, help);
        }
        layers.push(ArchiveLayer {
            name: part.name(),
            files,
            interposable: false,
        });
    }
    for name in checked_strings(decoder, table, "interposable", |_| None) {
        let layer = layers
            .iter_mut()
            .find(|layer| layer.name.value == name.value);
        if let Some(layer) = layer {
            layer.interposable = true;
        } else {
            let key = format!("{}.interposable", table.name);
            unknown_layer(decoder, &key, &name, &layers);
        }
    }
    Some(layers)
}

/// The key `views`.
fn views(
    decoder: &mut Decoder<'_>,
    table: &Table<'_>,
    value: &Value<'_>,
    declared: &[ArchiveLayer],
    used: &mut UsedLayers,
) -> Option<IndexVec<ViewId, ArchiveView>> {
    let mut views = IndexVec::new();
    for part in parts(decoder, table, "views", &value.key_span, VIEWS_HELP)? {
        let errors_before = decoder.errors();
        let names = checked_strings(decoder, &part.table, &part.key, |_| None);
        if names.is_empty() && decoder.errors() == errors_before {
            let message = format!("`{}` is empty", part.value.name);
            let help = "name its layers, the first one wins; or remove the view";
            decoder.error_with_help(&INVALID_VALUE, part.value.span.clone(), message, help);
        }
        let mut layers = Vec::new();
        for name in names {
            if let Some(id) = used.ids.get(&name.value) {
                layers.push(*id);
            } else if let Some(layer) = declared.iter().find(|layer| layer.name.value == name.value)
            {
                layers.push(used.add(layer));
            } else {
                unknown_layer(decoder, &part.value.name, &name, declared);
            }
        }
        let name = part.name();
        views.push(ArchiveView { name, layers });
    }
    Some(views)
}

fn report_unused_layers(
    decoder: &mut Decoder<'_>,
    value: &Value<'_>,
    declared: &[ArchiveLayer],
    used: &UsedLayers,
) {
    for layer in declared {
        let name = &layer.name.value;
        if used.ids.contains_key(name) {
            continue;
        }
        let message = format!("no view of `{}` has the layer `{name}`", value.name);
        let warning = Diagnostic::warning(&UNUSED_LAYER, message)
            .help("name it in a view, or remove it: nothing of it is written");
        decoder.report(warning, layer.name.span.clone());
    }
}

/// An entry of `layers` or `views`.
struct ArchiveEntry<'a> {
    table: Table<'a>,
    key: String,
    value: Value<'a>,
}

impl ArchiveEntry<'_> {
    fn name(&self) -> Spanned<String> {
        Spanned {
            value: self.key.clone(),
            span: self.value.key_span.clone(),
        }
    }
}

/// Entries of a table in the order of the file: the first view is the default one.
fn parts<'a>(
    decoder: &mut Decoder<'_>,
    table: &Table<'a>,
    key: &str,
    archive_span: &Range<usize>,
    help: &str,
) -> Option<Vec<ArchiveEntry<'a>>> {
    let Some(section) = table.get(key) else {
        let message = format!("`{}` has no `{key}`", table.name);
        decoder.error_with_help(&MISSING_KEY, archive_span.clone(), message, help);
        return None;
    };
    let mut parts = Vec::new();
    for (name, value) in decoder.map(&section)?.entries() {
        if !is_part_name(name) {
            let part = if key == "views" { "a view" } else { "a layer" };
            let message = format!(
                "invalid name of {part} `{}`: {PART}",
                shorten(name).escape_debug()
            );
            decoder.error(&INVALID_VALUE, value.key_span, message);
            continue;
        }
        parts.push(ArchiveEntry {
            table: decoder.map(&section)?,
            key: name.to_owned(),
            value,
        });
    }
    parts.sort_by_key(|part| part.value.key_span.start);
    if parts.is_empty() {
        let message = format!("`{}` is empty", section.name);
        decoder.error_with_help(&INVALID_VALUE, section.span, message, help);
    }
    Some(parts)
}

fn unknown_layer(
    decoder: &mut Decoder<'_>,
    key: &str,
    name: &Spanned<String>,
    layers: &[ArchiveLayer],
) {
    let known: Vec<&str> = layers
        .iter()
        .map(|layer| layer.name.value.as_str())
        .collect();
    let help = match nearest(&name.value, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("known layers are `{}`", known.join("`, `")),
    };
    let message = format!(
        "unknown layer `{}` in `{key}`",
        shorten(&name.value).escape_debug()
    );
    decoder.error_with_help(&UNKNOWN_LAYER, name.span.clone(), message, help);
}

/// Outer `None`: an error.
fn default_view(
    decoder: &mut Decoder<'_>,
    value: &Value<'_>,
    views: &IndexVec<ViewId, ArchiveView>,
) -> Option<Option<ViewId>> {
    if value.is_boolean() {
        if decoder.boolean(value)? {
            let message = format!("`{}` takes the name of a view, or false", value.name);
            let help = "leave it out for the first view";
            decoder.error_with_help(&INVALID_VALUE, value.span.clone(), message, help);
            return None;
        }
        return Some(None);
    }
    if !value.is_string() {
        decoder.mismatch(value, "a string, the name of a view, or false");
        return None;
    }
    let names: Vec<(&str, ViewId)> = views
        .iter()
        .map(|view| view.name.value.as_str())
        .zip(views.ids())
        .collect();
    decoder.one_of(value, &names).map(Some)
}
