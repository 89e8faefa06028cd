//! The `[archive.*]` tables of a package, in its build script.

use std::path::{Path, PathBuf};

use gpustub_core::diag::MISSING_KEY;
use gpustub_core::directives::Directive;
use gpustub_core::manifest::Manifest;
use gpustub_core::suggest::nearest;

use super::super_archive;
use crate::error::{Error, warnings};
use crate::files;
use crate::input::{self, Input};
use crate::output::Output;
use crate::settings::Settings;

/// Writes the declared super-archives.
pub(crate) fn build_declared(
    settings: &Settings,
    input: &Input,
    output: &mut Output,
) -> Result<(), Error> {
    let Input {
        path,
        manifest,
        texts,
        ..
    } = input;
    for name in &settings.archives {
        if !manifest.archive_names.contains(name) {
            let known = manifest.archive_names.iter().map(String::as_str);
            let help = match nearest(name, known) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => "declare it, or remove it from build.rs".to_owned(),
            };
            let message = format!("{} has no [archive.{name}]", manifest.file);
            return Err(Error::new(&MISSING_KEY, message).help(help));
        }
    }
    let package = path.parent().unwrap_or(Path::new(""));
    for archive in &manifest.archives {
        let name = &archive.name.value;
        let is_selected = settings.archives.is_empty() || settings.archives.contains(name);
        let features = &archive.required_features;
        let missing = features.first_missing(|feature| settings.env.has_feature(feature));
        if !is_selected || missing.is_some() {
            continue;
        }
        let out_dir = settings.out_dir()?;
        let file = out_dir.join(format!("{name}.a"));
        let built = super_archive::build(
            archive,
            &manifest.file,
            package,
            &out_dir,
            &file,
            &settings.env,
        )
        .map_err(|diagnostics| Error::from_diagnostics(&diagnostics, texts))?;
        output.directives.extend(built.directives);
        output.directives.extend(warnings(&built.warnings, texts));
        publish(archive.variable(), file, output)?;
    }
    Ok(())
}

/// Writes the declared super-archives without members: the package's code embeds the files.
pub(crate) fn build_empty_declared(settings: &Settings, output: &mut Output) -> Result<(), Error> {
    let (path, name) = input::manifest_file(settings)?;
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(());
    };
    let (manifest, _) = Manifest::parse(&name, &text);
    for archive in &manifest.archives {
        let file = settings
            .out_dir()?
            .join(format!("{}.a", archive.name.value));
        super_archive::build_empty(&file).map_err(|e| Error::io("write", &file, &e))?;
        publish(archive.variable(), file, output)?;
    }
    Ok(())
}

/// Publishes the path of a super-archive to the package's code.
fn publish(variable: String, file: PathBuf, output: &mut Output) -> Result<(), Error> {
    output
        .directives
        .push(Directive::Env(variable, files::text(&file)?));
    output.archives.push(file);
    Ok(())
}
