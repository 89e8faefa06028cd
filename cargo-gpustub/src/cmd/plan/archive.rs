//! The part of a plan about super-archives.

use std::fmt::Write;
use std::iter;

use gpustub_core::manifest::{Archive, Manifest};
use gpustub_engine::archive::HOST_VIEW;
use serde::Serialize;

use super::text::row;

/// Archives that are written with these features of their package.
pub fn written<'a>(manifest: &'a Manifest, features: &[String]) -> Vec<&'a Archive> {
    manifest
        .archives
        .iter()
        .filter(|archive| {
            archive
                .required_features
                .are_enabled(features.iter().map(String::as_str))
        })
        .collect()
}

/// Appends the lines of an archive.
pub fn describe(text: &mut String, archive: &Archive) {
    let archive = ArchiveJson::new(archive);
    let split = if archive.split { ", split" } else { "" };
    let canonical = if archive.canonical { ", canonical" } else { "" };
    let compress = if archive.compress { ", compressed" } else { "" };
    let _ = writeln!(
        text,
        "  archive.{}: {} as {}{canonical}{split}{compress}",
        archive.name, archive.file, archive.variable
    );
    if archive.unpack {
        let default = match archive.default {
            Some(_) => " (default)",
            None => "",
        };
        let line = format!("{HOST_VIEW}{default}, and one for each target of the device code");
        row(text, "view", iter::once(line));
    }
    for view in &archive.views {
        let default = if archive.default == Some(view.name) {
            " (default)"
        } else {
            ""
        };
        let line = format!("{}: {}{default}", view.name, view.layers.join(", "));
        row(text, "view", iter::once(line));
    }
    for layer in &archive.layers {
        let line = format!("{}: {}", layer.name, layer.inputs.join(", "));
        row(text, "layer", iter::once(line));
    }
}

/// JSON form of a super-archive.
#[derive(Serialize)]
pub struct ArchiveJson<'a> {
    name: &'a str,
    file: String,
    variable: String,
    canonical: bool,
    compress: bool,
    /// Whether there are, instead of `views`, those of the device code's targets.
    unpack: bool,
    split: bool,
    /// The name of a view.
    default: Option<&'a str>,
    views: Vec<ViewJson<'a>>,
    layers: Vec<LayerJson<'a>>,
}

#[derive(Serialize)]
struct ViewJson<'a> {
    name: &'a str,
    layers: Vec<&'a str>,
}

#[derive(Serialize)]
struct LayerJson<'a> {
    name: &'a str,
    /// Inputs as written in `GpuStub.toml`.
    inputs: Vec<&'a str>,
}

impl<'a> ArchiveJson<'a> {
    /// JSON form of an archive.
    pub fn new(archive: &'a Archive) -> Self {
        let views = archive.views.iter().map(|view| ViewJson {
            name: &view.name.value,
            layers: view
                .layers
                .iter()
                .map(|layer| archive.layers[*layer].name.value.as_str())
                .collect(),
        });
        let layers = archive.layers.iter().map(|layer| LayerJson {
            name: &layer.name.value,
            inputs: layer.files.iter().map(|file| file.value.as_str()).collect(),
        });
        let name = archive.name.value.as_str();
        Self {
            name,
            file: format!("$OUT_DIR/{name}.a"),
            variable: archive.variable(),
            canonical: archive.canonical_bitcode,
            compress: archive.compress,
            unpack: archive.unpack,
            default: archive.default_view.map(|view| {
                if archive.unpack {
                    HOST_VIEW
                } else {
                    archive.views[view].name.value.as_str()
                }
            }),
            split: archive.split,
            views: views.collect(),
            layers: layers.collect(),
        }
    }
}
