//! The `[archive.<name>]` tables of `GpuStub.toml`.

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
        let before = decoder.errors();
        if let Some(other) = variables.insert(&variable(name), name) {
            let message = format!("`{}` and `archive.{other}` have one variable", value.name);
            let help = "rename one: in the variable's name `-` is `_`";
            decoder.error_with_help(&INVALID_VALUE, value.key_span.clone(), message, help);
        }
        let one = archive(decoder, name, &value);
        archives.extend(one.filter(|_| decoder.errors() == before));
    }
    archives
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
    let start = decoder.errors();
    let table = decoder.table(value, &fields::keys("archive"))?;
    let declared = parts(decoder, &table, "layers", &value.key_span, LAYERS_HELP);
    let mut all = Vec::new();
    for part in declared? {
        let before = decoder.errors();
        let files = checked_strings(decoder, &part.table, &part.key, |path| {
            (!is_path(path)).then_some("takes paths and globs")
        });
        if files.is_empty() && decoder.errors() == before {
            let message = format!("`{}` is empty", part.value.name);
            let help = "name its archives, directories or object files, such as [\"common/*.o\"]";
            decoder.error_with_help(&INVALID_VALUE, part.value.span.clone(), message, help);
        }
        let name = part.name();
        all.push(ArchiveLayer {
            name,
            files,
            interposable: false,
        });
    }

    for name in checked_strings(decoder, &table, "interposable", |_| None) {
        match all.iter_mut().find(|layer| layer.name.value == name.value) {
            Some(layer) => layer.interposable = true,
            None => unknown_layer(
                decoder,
                &format!("{}.interposable", table.name),
                &name,
                &all,
            ),
        }
    }

    let declared = parts(decoder, &table, "views", &value.key_span, VIEWS_HELP);
    let (mut layers, mut views) = (IndexVec::new(), IndexVec::new());
    let mut used: ByName<LayerId> = ByName::new();
    for part in declared? {
        let before = decoder.errors();
        let names = checked_strings(decoder, &part.table, &part.key, |_| None);
        if names.is_empty() && decoder.errors() == before {
            let message = format!("`{}` is empty", part.value.name);
            let help = "name its layers, the first one wins; or remove the view";
            decoder.error_with_help(&INVALID_VALUE, part.value.span.clone(), message, help);
        }
        let mut of = Vec::new();
        for name in names {
            if let Some(id) = used.get(&name.value) {
                of.push(*id);
            } else if let Some(layer) = all.iter().find(|layer| layer.name.value == name.value) {
                let id = layers.push(layer.clone());
                used.insert(&name.value, id);
                of.push(id);
            } else {
                unknown_layer(decoder, &part.value.name, &name, &all);
            }
        }
        let name = part.name();
        views.push(ArchiveView { name, layers: of });
    }
    // After an error, the faulty name may have meant one of them.
    let unused = all.iter().filter(|_| decoder.errors() == start);
    for layer in unused.collect::<Vec<_>>() {
        if !used.contains_key(&layer.name.value) {
            let name = &layer.name.value;
            let message = format!("no view of `{}` has the layer `{name}`", value.name);
            let warning = Diagnostic::warning(&UNUSED_LAYER, message);
            let help = "name it in a view, or remove it: nothing of it is written";
            decoder.report(warning.help(help), layer.name.span.clone());
        }
    }

    let default_view = match table.get("default-view") {
        Some(named) => default_view(decoder, &named, &views)?,
        None => Some(ViewId::from_index(0)),
    };
    let canonical_bitcode = match table.get("canonical-bitcode") {
        Some(value) => decoder.boolean(&value)?,
        None => false,
    };
    let required_features = required_features(decoder, &table);
    Some(Archive {
        name: Spanned {
            value: name.to_owned(),
            span: value.key_span.clone(),
        },
        layers,
        views,
        default_view,
        canonical_bitcode,
        required_features,
    })
}

/// An entry of `layers` or `views`.
struct Part<'a> {
    table: Table<'a>,
    key: String,
    value: Value<'a>,
}

impl Part<'_> {
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
    place: &std::ops::Range<usize>,
    help: &str,
) -> Option<Vec<Part<'a>>> {
    let Some(value) = table.get(key) else {
        let message = format!("`{}` has no `{key}`", table.name);
        decoder.error_with_help(&MISSING_KEY, place.clone(), message, help);
        return None;
    };
    let mut parts = Vec::new();
    for (name, one) in decoder.map(&value)?.entries() {
        if !is_part_name(name) {
            let what = if key == "views" { "a view" } else { "a layer" };
            let shown = shorten(name);
            let message = format!("invalid name of {what} `{}`: {PART}", shown.escape_debug());
            decoder.error(&INVALID_VALUE, one.key_span, message);
            continue;
        }
        parts.push(Part {
            table: decoder.map(&value)?,
            key: name.to_owned(),
            value: one,
        });
    }
    parts.sort_by_key(|part| part.value.key_span.start);
    if parts.is_empty() {
        let message = format!("`{}` is empty", value.name);
        decoder.error_with_help(&INVALID_VALUE, value.span, message, help);
    }
    Some(parts)
}

fn unknown_layer(
    decoder: &mut Decoder<'_>,
    within: &str,
    name: &Spanned<String>,
    layers: &[ArchiveLayer],
) {
    let known: Vec<&str> = layers.iter().map(|l| l.name.value.as_str()).collect();
    let help = match nearest(&name.value, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("known layers are `{}`", known.join("`, `")),
    };
    let shown = shorten(&name.value);
    let message = format!("unknown layer `{}` in `{within}`", shown.escape_debug());
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
    let names = views.iter().map(|view| view.name.value.as_str());
    let names: Vec<(&str, ViewId)> = names.zip(views.ids()).collect();
    decoder.one_of(value, &names).map(Some)
}
