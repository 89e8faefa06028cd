//! Builds the stubs of a package: sources, library, and directives for cargo.

use std::fs;
use std::path::{Path, PathBuf};

use gpustub_core::diag::INVALID_VALUE;
use gpustub_core::directives::Directive;
use gpustub_core::manifest::LibraryType;
use gpustub_core::plan::Plan;
use gpustub_core::sources::render;
use gpustub_core::target::Target;

use crate::error::Error;
use crate::files::{self, write_sources};
#[cfg(feature = "device-link")]
use crate::fingerprint;
use crate::output::Output;
use crate::settings::Settings;
#[cfg(feature = "device-link")]
use crate::toolchain::OBJECTS;
use crate::toolchain::{Index, Toolchain};

/// Kind of `rustc-link-lib` for an archive of which every member is linked.
const WHOLE_ARCHIVE: &str = "static:+whole-archive";

/// Links the libraries that a build uses without stubs.
pub(crate) fn link_real(plan: &Plan, directives: &mut Vec<Directive>) {
    for name in &plan.linked {
        directives.push(Directive::LinkLib("dylib".to_owned(), name.clone()));
        // As for shared stubs below. Linkers of Windows have no such argument, and drop no library.
        if plan.target.os != "windows" {
            directives.push(Directive::LinkArg(format!("-l{name}")));
        }
    }
}

/// Writes, compiles and archives (or links) the stubs of a plan with at least one library.
pub(crate) fn build(settings: &Settings, plan: &Plan, output: &mut Output) -> Result<(), Error> {
    let dir = settings.gpustub_dir()?;
    let link = dir.join("link");
    let link_text = files::text(&link)?;
    let is_shared = has_stubs_of_type(plan, LibraryType::Shared);
    if is_shared && has_stubs_of_type(plan, LibraryType::Static) {
        return Err(Error::new(
            &INVALID_VALUE,
            "some stubs of this package are static and some are shared",
        )
        .help("give every [stub] table of this package the same `type`"));
    }
    if let Some(diagnostic) = plan.target.check_shared_stubs().filter(|_| is_shared) {
        return Err(diagnostic.into());
    }

    let sources = render(plan);
    write_sources(&dir, &sources)?;
    let tools = settings.toolchain(&plan.target, &dir)?;

    let name = link_name(&settings.env.cargo_text("CARGO_PKG_NAME")?);
    let file = if is_shared {
        format!("lib{name}.so")
    } else {
        archive_file(&plan.target, &name)
    };
    let library = link.join(&file);
    // Linkers read another file than the loader, and images that link it get the functions of gpustub.h.
    let (linked, client) = (format!("{name}.link"), format!("{name}.api"));
    let mut files = vec![file];
    let stand_in = if is_shared {
        files.extend([format!("lib{linked}.so"), format!("lib{client}.a")]);
        // A linker script. Its name ends with .a because the loader, unlike linkers, would fail on
        // a text file named libcuda.so when cargo puts this directory into LD_LIBRARY_PATH.
        format!("INPUT(-l{linked})\n").into_bytes()
    } else {
        tools.stand_in(&dir)?
    };
    for stub in plan.libraries.iter().filter(|library| library.stubbed) {
        for name in &stub.library.link_names {
            let stand_in_file = archive_file(&plan.target, name);
            files::write_if_changed(&link.join(&stand_in_file), &stand_in)?;
            files.push(stand_in_file);
        }
    }
    // No stand-in made the directory if each library is linked itself.
    fs::create_dir_all(&link).map_err(|e| Error::io("create", &link, &e))?;
    // An old stand-in of a library without stubs would hide the real library.
    files::remove_others(&link, &files)?;
    let directives = if is_shared {
        let shared = tools.shared_library(&dir, &library)?;
        let archive = link.join(format!("lib{client}.a"));
        tools.archive(&dir, &[shared.client], &archive, Index::Omit)?;
        copy_beside_programs(&settings.out_dir()?, &library);
        link_shared(plan, linked, client)
    } else {
        let sources: Vec<_> = sources.iter().map(|(path, _)| dir.join(path)).collect();
        static_library(&tools, &dir, &library, &sources)?;
        vec![Directive::LinkLib(WHOLE_ARCHIVE.to_owned(), name)]
    };

    output.directives.push(Directive::LinkSearch(link_text));
    output.directives.extend(directives);
    output.stub_library = Some(library);
    output.include_dir = Some(dir);
    Ok(())
}

/// Links shared stubs, and the functions of gpustub.h.
fn link_shared(plan: &Plan, linked: String, client: String) -> Vec<Directive> {
    let mut directives = vec![
        Directive::LinkLib("dylib".to_owned(), linked.clone()),
        Directive::LinkLib(WHOLE_ARCHIVE.to_owned(), client),
        // bfd drops a library (--as-needed) when only a crate further down the command line uses
        // it; these arguments end the command line.
        Directive::LinkArg(format!("-l{linked}")),
        Directive::LinkArg("-Wl,-rpath,$ORIGIN".to_owned()),
    ];
    if plan.target.os == "freebsd" {
        // rtld expands $ORIGIN only in images with this flag (rtld.c: origin_subst).
        directives.push(Directive::LinkArg("-Wl,-z,origin".to_owned()));
    }
    directives
}

/// File that linkers and rustc search for an archive of this name.
fn archive_file(target: &Target, name: &str) -> String {
    match target.env.as_str() {
        "msvc" => format!("{name}.lib"),
        _ => format!("lib{name}.a"),
    }
}

fn has_stubs_of_type(plan: &Plan, library_type: LibraryType) -> bool {
    plan.libraries
        .iter()
        .any(|library| library.stubbed && library.library_type == library_type)
}

#[cfg(not(feature = "device-link"))]
fn static_library(
    tools: &Toolchain,
    dir: &Path,
    library: &Path,
    _: &[PathBuf],
) -> Result<(), Error> {
    tools.static_library(dir, library, Index::Omit)
}

/// Compiles the stubs, unless the same sources and compiler made the library: the build script of a package with
/// device code runs whenever that changes.
#[cfg(feature = "device-link")]
fn static_library(
    tools: &Toolchain,
    dir: &Path,
    library: &Path,
    sources: &[PathBuf],
) -> Result<(), Error> {
    let tool = tools.command_line(dir);
    // The directory of the library has no other files than libraries.
    let object = dir.join(OBJECTS[0]);
    let size = || fs::metadata(library).map(|file| file.len());
    if size().is_ok_and(|size| fingerprint::fresh(&object, &format!("{tool} {size}")).is_some()) {
        return Ok(());
    }
    let before = fingerprint::InputStates::read(sources);
    fingerprint::invalidate(&object)?;
    tools.static_library(dir, library, Index::Omit)?;
    let size = size().map_err(|e| Error::io("read", library, &e))?;
    fingerprint::record_known(&object, &format!("{tool} {size}"), sources, &before)
}

/// Puts shared stubs into the directories in which cargo puts programs, tests and examples, so that these start
/// without `cargo run`, and both can be copied from there. Cargo has no other way to deliver a file of a
/// build script. Programs search their own directory (`$ORIGIN`). Without the copy, in another layout than
/// `<profile>/build/<package>/out`, `cargo run` and `cargo test` still work, and the rule
/// `missing-stub-library` reports programs that do not start.
fn copy_beside_programs(out_dir: &Path, library: &Path) {
    let (Some(deps), Some(name)) = (files::cargo_libraries(out_dir), library.file_name()) else {
        return;
    };
    let (Some(profile), Ok(bytes)) = (deps.parent(), fs::read(library)) else {
        return;
    };
    for dir in [profile, &deps, &profile.join("examples")] {
        let _ = files::write_if_changed(&dir.join(name), &bytes);
    }
}

/// Name for `-l` of a package's stubs. Other software finds libraries in a process by parts of
/// their file names, such as `libcudart.`; none of them matches this one. The name contains the
/// package because rustc unpacks the archives of crates into one directory: of two with one name
/// the second would replace the first, and the link would fail without naming the cause.
fn link_name(package: &str) -> String {
    format!("gpustub_{}", package.replace("-", "_"))
}
