//! The super-archives of a package, in its build script.

use std::path::{Path, PathBuf};

use gpustub_core::diag::MISSING_KEY;
use gpustub_core::manifest::Manifest;
use gpustub_core::suggest::nearest;

use crate::error::warnings;
use crate::input::Input;
use crate::{Build, Directive, Error, Output, files};

impl Build {
    /// Writes the super-archives.
    pub(crate) fn archives(&self, input: &Input, output: &mut Output) -> Result<(), Error> {
        let Input {
            path,
            manifest,
            texts,
            ..
        } = input;
        for name in &self.archives {
            if !manifest.archive_names.contains(name) {
                let known = manifest.archive_names.iter().map(String::as_str);
                let help = match nearest(name, known) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "declare it, or do not ask for it in build.rs".to_owned(),
                };
                let message = format!("{} has no [archive.{name}]", manifest.file);
                return Err(Error::new(&MISSING_KEY, message).help(help));
            }
        }
        let package = path.parent().unwrap_or(Path::new(""));
        for archive in &manifest.archives {
            let name = &archive.name.value;
            let wanted = self.archives.is_empty() || self.archives.contains(name);
            let features = &archive.required_features;
            let missing = features.first_missing(|feature| self.env.has_feature(feature));
            if !wanted || missing.is_some() {
                continue;
            }
            let out_dir = self.made_in()?;
            let file = out_dir.join(format!("{name}.a"));
            let built = super::build(archive, &manifest.file, package, &out_dir, &file);
            let built = built.map_err(|found| Error::diagnostics(&found, texts))?;
            output.directives.extend(built.directives);
            output.directives.extend(warnings(&built.warnings, texts));
            tell_archive(archive.variable(), file, output)?;
        }
        Ok(())
    }

    /// The archives that the package's code embeds, without anything in them.
    pub(crate) fn empty_archives(&self, output: &mut Output) -> Result<(), Error> {
        let (path, name) = self.manifest_file()?;
        let Ok(text) = std::fs::read_to_string(&path) else {
            return Ok(());
        };
        let (manifest, _) = Manifest::parse(&name, &text);
        for archive in &manifest.archives {
            let file = self.made_in()?.join(format!("{}.a", archive.name.value));
            super::build_empty(&file).map_err(|e| Error::io("write", &file, &e))?;
            tell_archive(archive.variable(), file, output)?;
        }
        Ok(())
    }
}

/// Lets the package's code find a super-archive.
fn tell_archive(variable: String, file: PathBuf, output: &mut Output) -> Result<(), Error> {
    output
        .directives
        .push(Directive::Env(variable, files::text(&file)?));
    output.archives.push(file);
    Ok(())
}
