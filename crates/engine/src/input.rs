//! Reads the user's files and plans the build.

use std::path::{Path, PathBuf};

use gpustub_core::by_name::ByName;
use gpustub_core::diag::{INVALID_VALUE, IO_ERROR, has_errors};
use gpustub_core::directives::Directive;
use gpustub_core::library::link_variable;
use gpustub_core::manifest::Manifest;
use gpustub_core::plan::{Inputs, Plan, symbol_list_path};
use gpustub_core::planner::plan;

use crate::error::{self, Error};
use crate::settings::Settings;

/// Manifest of a package without `GpuStub.toml`, if the file is optional.
const EMPTY_MANIFEST: &str = "schema = 1\n";

/// Manifest and plan, without errors.
pub(crate) struct Input {
    #[cfg(any(feature = "archive", feature = "device-link"))]
    pub(crate) path: PathBuf,
    pub(crate) manifest: Manifest,
    /// Texts of the files that diagnostics refer to: `GpuStub.toml`, and symbol lists.
    #[cfg(any(feature = "archive", feature = "device-link"))]
    pub(crate) texts: ByName<String>,
    pub(crate) plan: Plan,
}

impl Input {
    /// Reads `GpuStub.toml` and the symbol lists that it names, and plans.
    pub(crate) fn read(
        settings: &Settings,
        directives: &mut Vec<Directive>,
    ) -> Result<Self, Error> {
        let (path, name) = manifest_file(settings)?;
        let text = read_manifest(settings, &path)?;
        let watched = if path.exists() {
            &name
        } else {
            absent_file(settings)
        };
        directives.push(Directive::RerunIfChanged(watched.to_owned()));

        let (manifest, mut diagnostics) = Manifest::parse(&name, &text);
        #[cfg(feature = "device-link")]
        let manifest = crate::device_link::requested::apply(&settings.env, manifest)?;
        let mut texts = ByName::new();
        texts.insert(&name, text);
        let mut inputs = Inputs::default();
        let mut features = Vec::new();
        for stub in &manifest.stubs {
            if stub.provide && is_linked(settings, &stub.id.value)? {
                inputs.linked.push(stub.id.value.clone());
            }
            for feature in &stub.required_features.0 {
                if settings.env.has_feature(&feature.value) {
                    features.push(feature.value.clone());
                }
            }
            let Some(symbols) = stub.custom.symbols.as_ref().map(|s| &s.value) else {
                continue;
            };
            let file = path.parent().unwrap_or(Path::new("")).join(symbols);
            directives.push(Directive::RerunIfChanged(symbol_list_path(&name, symbols)));
            let list = match std::fs::read_to_string(&file) {
                Ok(list) => list,
                // The planner reports a missing list that it needs.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(Error::io("read the symbol list", &file, &e)),
            };
            texts.insert(&symbol_list_path(&name, symbols), list.clone());
            inputs.symbol_files.insert(symbols, list);
        }
        inputs.features = Some(features);
        inputs.omit_dlopen_notes = !manifest.stubs.is_empty() && omits_dlopen_notes(settings)?;

        let (plan, plan_diagnostics) = plan(&manifest, &settings.env.target()?, &inputs);
        diagnostics.extend(plan_diagnostics);
        if has_errors(&diagnostics) {
            return Err(Error::from_diagnostics(&diagnostics, &texts));
        }
        directives.extend(error::warnings(&diagnostics, &texts));
        Ok(Input {
            #[cfg(any(feature = "archive", feature = "device-link"))]
            path,
            manifest,
            #[cfg(any(feature = "archive", feature = "device-link"))]
            texts,
            plan,
        })
    }

    /// Name and text of `GpuStub.toml`.
    #[cfg(feature = "device-link")]
    pub(crate) fn source_text(&self) -> error::SourceText<'_> {
        let name = &self.manifest.file;
        let text = self.texts.get(name).map_or("", String::as_str);
        error::SourceText { name, text }
    }
}

/// Path to watch in place of an absent `GpuStub.toml`, which cargo would treat as changed in each build.
fn absent_file(settings: &Settings) -> &'static str {
    #[cfg(feature = "device-link")]
    if settings.delivery == Some(crate::device_link::Delivery::Crate) {
        // `sync` may write the file into a finalizer crate, whose directory has no others that change.
        return ".";
    }
    let _ = settings;
    "Cargo.toml"
}

/// Text of `GpuStub.toml`.
fn read_manifest(settings: &Settings, path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).or_else(|e| match e.kind() {
        std::io::ErrorKind::NotFound if may_lack_manifest(settings) => {
            Ok(EMPTY_MANIFEST.to_owned())
        }
        std::io::ErrorKind::NotFound => {
            let message = format!("{} does not exist", path.display());
            Err(Error::new(&IO_ERROR, message)
                .help("`cargo gpustub add cudart` writes one; without it, the package needs no `gpustub-build`"))
        }
        _ => Err(Error::io("read", path, &e)),
    })
}

/// Whether the environment asks for the library itself instead of its stubs: distributions link what
/// they package, without changing `GpuStub.toml`.
fn is_linked(settings: &Settings, library: &str) -> Result<bool, Error> {
    let name = link_variable(library);
    let Some(value) = settings.env.get(&name) else {
        return Ok(false);
    };
    match value.to_string_lossy().as_ref() {
        "" | "stub" => Ok(false),
        "dylib" => Ok(true),
        unknown => {
            let message = format!("unknown value of the environment variable {name}: {unknown:?}");
            Err(Error::new(&INVALID_VALUE, message)
                .help("`stub` links the stubs, `dylib` the library itself"))
        }
    }
}

/// Whether the environment turns notes off. Packages that share an image have a `GpuStub.toml` each, and only the
/// environment of the build reaches all of them.
fn omits_dlopen_notes(settings: &Settings) -> Result<bool, Error> {
    let help = "`on` keeps the notes that `GpuStub.toml` declares, `off` omits all";
    settings.env.is_off("GPUSTUB_DLOPEN_NOTES", help)
}

/// Path of `GpuStub.toml`, and its name in messages.
pub(crate) fn manifest_file(settings: &Settings) -> Result<(PathBuf, String), Error> {
    if let Some(path) = &settings.manifest_path {
        return Ok((path.clone(), path.display().to_string()));
    }
    let Some(dir) = settings.env.get("CARGO_MANIFEST_DIR") else {
        return Err(Error::unset("CARGO_MANIFEST_DIR"));
    };
    let path = Path::new(&dir).join("GpuStub.toml");
    Ok((path, "GpuStub.toml".to_owned()))
}

/// Whether a build without a `GpuStub.toml` is valid.
fn may_lack_manifest(settings: &Settings) -> bool {
    #[cfg(feature = "device-link")]
    return settings.delivery.is_some();
    #[cfg(not(feature = "device-link"))]
    {
        let _ = settings;
        false
    }
}
