//! Modules: device code in files that the package's code embeds and loads with the driver.
//!
//! A separable module is a device link over its objects and the libraries that it requires. Of
//! others, each source is a file. Architectures of two vendors make files for each: a fatbin of nvcc for CUDA's driver, an
//! offload bundle of clang for HIP.

use std::path::{Path, PathBuf};

use gpustub_core::device_link::{module_archs, module_lacks_arch, module_variable_taken};
use gpustub_core::diag::Diagnostic;
use gpustub_core::directives::Directive;
use gpustub_core::gpu_arch::{ArchKind, Vendor};
use gpustub_core::manifest::{DeviceCode, DeviceModule, Manifest};

use super::closure::inherited;
use super::compile::{self, Unit};
use super::compiler::Compilers;
use super::context::{BuildContext, Context};
use super::directories::Directories;
use super::metadata::DeviceLibrary;
use super::{hip, nvlink, sources};
use crate::error::Error;
use crate::files;
use crate::input;
use crate::output::Output;
use crate::settings::Settings;
use crate::toolchain::{Index, Toolchain};

/// The compile steps of a module.
pub(super) fn units<'a>(
    build: &BuildContext,
    compilers: &'a Compilers,
    module: &'a DeviceModule,
) -> Result<Vec<Unit<'a>>, Error> {
    let DeviceCode::Sources(patterns) = &module.library.code else {
        return Ok(Vec::new());
    };
    let inherited = inherited(module.name(), build.libraries, build.dependencies);
    let format = if module.separable {
        None
    } else {
        Some(module.format)
    };
    let library = &module.library;
    let mut units = Vec::new();
    for compiler in compile::compilers(compilers, library) {
        let of_compiler = compile::units(build, compiler, library, patterns, &inherited, format)?;
        units.extend(of_compiler);
    }
    Ok(units)
}

/// Inputs of the steps after the compilation.
pub(super) struct ModuleBuild<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) compilers: &'a Compilers,
    /// `OPT_LEVEL` of cargo.
    pub(super) opt_level: &'a str,
    /// `OUT_DIR/gpustub/device-link`.
    pub(super) dir: &'a Path,
    /// Libraries of dependencies.
    pub(super) dependencies: &'a [DeviceLibrary],
    pub(super) tools: &'a Toolchain,
}

impl ModuleBuild<'_> {
    /// Publishes the files of a module. `libraries`: those of the package, and its modules.
    pub(super) fn build(
        &self,
        module: &DeviceModule,
        units: &[Unit],
        libraries: &mut [DeviceLibrary],
        directives: &mut Vec<Directive>,
    ) -> Result<(), Error> {
        if module.separable {
            return self.link(module, units, libraries, directives);
        }
        for unit in units {
            let source = Some(unit.source.as_path());
            self.publish(module, source, unit.vendor(), &unit.object, directives)?;
        }
        Ok(())
    }

    /// Device-links a module, for each of its vendors.
    fn link(
        &self,
        module: &DeviceModule,
        units: &[Unit],
        libraries: &mut [DeviceLibrary],
        directives: &mut Vec<Directive>,
    ) -> Result<(), Error> {
        let name = module.name();
        let dir = file_dir(self.dir, name);
        std::fs::create_dir_all(&dir).map_err(|e| Error::io("create the directory", &dir, &e))?;
        let library = libraries.iter_mut().find(|library| library.name == name);
        if let (Some(library), false) = (library, units.is_empty()) {
            let objects = compile::objects(units);
            compile::archive(self.tools, &library.archive, &objects, Index::Write)?;
            for unit in units {
                library.sources.push(unit.member(self.context));
            }
        }
        let mut members = inherited(name, libraries, self.dependencies);
        members.retain(|library| library.built && !library.archive.as_os_str().is_empty());
        for library in members.iter().filter(|library| library.name != name) {
            if let Some(diagnostic) = module_lacks_arch(module, &library.name, &library.archs) {
                return Err(self.module_error(module, diagnostic));
            }
            // Not those of this run: they are newer than its start, which cargo compares with.
            if !library.archive.starts_with(self.context.out) {
                directives.push(Directive::RerunIfChanged(files::text(&library.archive)?));
            }
        }
        for vendor in module.vendors() {
            let mut members = members.clone();
            members.retain(|library| library.has_code(vendor));
            let file = match vendor {
                Vendor::Nvidia => self.link_cuda(module, &members, &dir, directives)?,
                Vendor::Amd => self.link_hip(module, &members, &dir)?,
            };
            self.publish(module, None, vendor, &file, directives)?;
        }
        Ok(())
    }

    fn link_cuda(
        &self,
        module: &DeviceModule,
        members: &[&DeviceLibrary],
        dir: &Path,
        directives: &mut Vec<Directive>,
    ) -> Result<PathBuf, Error> {
        let file = dir.join(format!("{}.{}", module.name(), module.format.word()));
        let Some(nvcc) = &self.compilers.nvcc else {
            return Ok(file);
        };
        let mut archs = members.iter().flat_map(|library| &library.archs);
        let inputs = nvlink::LinkInputs {
            nvcc,
            store: self.context.store.as_ref(),
            archs: &Vendor::Nvidia.select(module_archs(module)),
            lto: archs.any(|arch| arch.kind() == ArchKind::Lto),
            members,
            dir,
            renames: None,
        };
        let warnings = nvlink::link_module(&inputs, module.format, &file)?;
        directives.extend(warnings.into_iter().map(Directive::Warning));
        Ok(file)
    }

    fn link_hip(
        &self,
        module: &DeviceModule,
        members: &[&DeviceLibrary],
        dir: &Path,
    ) -> Result<PathBuf, Error> {
        let dir = &dir.join("hip");
        let file = dir.join(hip::MODULE);
        let Some(clang) = &self.compilers.clang else {
            return Ok(file);
        };
        let inputs = hip::LinkInputs {
            clang,
            store: self.context.store.as_ref(),
            archs: &Vendor::Amd.select(module_archs(module)),
            members,
            functions: &[],
            opt_level: self.opt_level,
            dir,
        };
        hip::link_module(&inputs, &file)?;
        Ok(file)
    }

    fn module_error(&self, module: &DeviceModule, diagnostic: Diagnostic) -> Error {
        let location = self.context.manifest.location(&module.library.name.span);
        Error::from(diagnostic).with_location(location)
    }

    fn publish(
        &self,
        module: &DeviceModule,
        source: Option<&Path>,
        vendor: Vendor,
        file: &Path,
        directives: &mut Vec<Directive>,
    ) -> Result<(), Error> {
        let variable = module.variable(source.and_then(stem).as_deref(), vendor);
        for directive in directives.iter() {
            if matches!(directive, Directive::Env(name, _) if *name == variable) {
                let source = source.map(|source| source.display().to_string());
                let diagnostic = module_variable_taken(module, source.as_deref(), &variable);
                return Err(self.module_error(module, diagnostic));
            }
        }
        directives.push(Directive::Env(variable, files::text(file)?));
        Ok(())
    }
}

fn file_dir(dir: &Path, name: &str) -> PathBuf {
    dir.join("modules").join(name)
}

fn stem(source: &Path) -> Option<String> {
    Some(source.file_stem()?.to_string_lossy().into_owned())
}

/// Publishes empty files in place of the declared modules.
pub(crate) fn build_empty_declared(settings: &Settings, output: &mut Output) -> Result<(), Error> {
    let (path, name) = input::manifest_file(settings)?;
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(());
    };
    let (manifest, _) = Manifest::parse(&name, &text);
    let out_dir = settings.out_dir()?;
    let directories = Directories {
        package: path.parent().unwrap_or(Path::new("")),
        out_dir: Some(&out_dir),
    };
    for module in &manifest.device_modules {
        let dir = file_dir(&settings.gpustub_dir()?.join("device-link"), module.name());
        std::fs::create_dir_all(&dir).map_err(|e| Error::io("create the directory", &dir, &e))?;
        let mut stems = Vec::new();
        match &module.library.code {
            DeviceCode::Sources(patterns) if !module.separable => {
                for pattern in patterns {
                    let sources = sources::matching(directories, module.name(), &pattern.value);
                    stems.extend(sources.iter().flatten().map(|source| stem(source)));
                }
            }
            _ => stems.push(None),
        }
        let file = dir.join(format!("empty.{}", module.format.word()));
        files::write_if_changed(&file, b"")?;
        for stem in stems {
            for vendor in module.vendors() {
                let variable = module.variable(stem.as_deref(), vendor);
                let directive = Directive::Env(variable, files::text(&file)?);
                output.directives.push(directive);
            }
        }
    }
    Ok(())
}
