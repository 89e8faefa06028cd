//! The stubs of a package: sources, the library of them, and the directives for cargo.

use gpustub_core::diag::INVALID_VALUE;
use gpustub_core::directives::Directive;
use gpustub_core::manifest::LibraryType;
use gpustub_core::plan::Plan;
use gpustub_core::sources::render;

use crate::error::Error;
use crate::files::{self, write_sources};
use crate::output::Output;
use crate::settings::Settings;
use crate::toolchain::Index;

/// The whole of an archive without members: the format's magic (ar(5)).
const EMPTY_ARCHIVE: &str = "!<arch>\n";

/// Writes, compiles and archives (or links) the stubs of a plan that has some.
pub(crate) fn build(settings: &Settings, plan: &Plan, output: &mut Output) -> Result<(), Error> {
    let dir = settings.gpustub_dir()?;
    let link = dir.join("link");
    let link_text = files::text(&link)?;
    let stubbed = || plan.libraries.iter().filter(|l| l.stubbed);
    let shared = stubbed().any(|l| l.library_type == LibraryType::Shared);
    if shared && stubbed().any(|l| l.library_type == LibraryType::Static) {
        return Err(Error::new(
            &INVALID_VALUE,
            "some stubs of this package are static and some are shared",
        )
        .help("give every [stub] table of this package the same `type`"));
    }

    write_sources(&dir, &render(plan))?;
    let tools = settings.toolchain(&plan.target, &dir)?;

    let name = link_name(&settings.env.cargo_text("CARGO_PKG_NAME")?);
    let (kind, file, stand_in) = match shared {
        // A linker script. It is named .a because the loader, unlike linkers, would trip over
        // a text file named libcuda.so when cargo puts this folder into LD_LIBRARY_PATH.
        true => (
            "dylib",
            format!("lib{name}.so"),
            format!("INPUT(-l{name})\n"),
        ),
        false => (
            "static:+whole-archive",
            format!("lib{name}.a"),
            EMPTY_ARCHIVE.to_owned(),
        ),
    };
    let mut files = vec![file.clone()];
    for name in stubbed().flat_map(|l| &l.manifest.link_names) {
        let stand_in_file = format!("lib{name}.a");
        files::write_if_changed(&link.join(&stand_in_file), stand_in.as_bytes())?;
        files.push(stand_in_file);
    }
    // A stand-in of a library that has no stubs any more would hide the real one.
    files::remove_others(&link, &files)?;
    let library = link.join(file);
    match shared {
        true => tools.shared_library(&dir, &library)?,
        false => tools.static_library(&dir, &library, Index::Omit)?,
    }

    output.directives.push(Directive::LinkSearch(link_text));
    output
        .directives
        .push(Directive::LinkLib(kind.to_owned(), name.clone()));
    if shared {
        // bfd drops a library (--as-needed) when only a crate further down the command line
        // uses it; this is the last word of the command line.
        output
            .directives
            .push(Directive::LinkArg(format!("-l{name}")));
    }
    output.stub_library = Some(library);
    output.include_dir = Some(dir);
    Ok(())
}

/// The name after `-l` of a package's stubs. Other software finds libraries in a process by parts
/// of their file names, such as `libcudart.`; none of them fits this one. The package is in it
/// because rustc unpacks the archives that crates carry into one folder: of two with one name the
/// second would replace the first, and the link would fail without saying why.
fn link_name(package: &str) -> String {
    format!("gpustub_{}", package.replace('-', "_"))
}
