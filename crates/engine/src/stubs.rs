//! Builds the stubs of a package: sources, library, and directives for cargo.

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

/// A complete archive without members: the format's magic (ar(5)).
const EMPTY_ARCHIVE: &str = "!<arch>\n";

/// Writes, compiles and archives (or links) the stubs of a plan with at least one stub.
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
    let (kind, file, stand_in) = if shared {
        // A linker script. Its name ends with .a because the loader, unlike linkers, would fail on
        // a text file named libcuda.so when cargo puts this directory into LD_LIBRARY_PATH.
        (
            "dylib",
            format!("lib{name}.so"),
            format!("INPUT(-l{name})\n"),
        )
    } else {
        (
            "static:+whole-archive",
            format!("lib{name}.a"),
            EMPTY_ARCHIVE.to_owned(),
        )
    };
    let mut files = vec![file.clone()];
    for name in stubbed().flat_map(|l| &l.manifest.link_names) {
        let stand_in_file = format!("lib{name}.a");
        files::write_if_changed(&link.join(&stand_in_file), stand_in.as_bytes())?;
        files.push(stand_in_file);
    }
    // An old stand-in of a library without stubs would hide the real library.
    files::remove_others(&link, &files)?;
    let library = link.join(file);
    if shared {
        tools.shared_library(&dir, &library)?;
    } else {
        tools.static_library(&dir, &library, Index::Omit)?;
    }

    output.directives.push(Directive::LinkSearch(link_text));
    output
        .directives
        .push(Directive::LinkLib(kind.to_owned(), name.clone()));
    if shared {
        // bfd drops a library (--as-needed) when only a crate further down the command line uses
        // it; these arguments end the command line.
        output
            .directives
            .push(Directive::LinkArg(format!("-l{name}")));
    }
    output.stub_library = Some(library);
    output.include_dir = Some(dir);
    Ok(())
}

/// Name for `-l` of a package's stubs. Other software finds libraries in a process by parts of
/// their file names, such as `libcudart.`; none of them matches this one. The name contains the
/// package because rustc unpacks the archives of crates into one directory: of two with one name
/// the second would replace the first, and the link would fail without naming the cause.
fn link_name(package: &str) -> String {
    format!("gpustub_{}", package.replace("-", "_"))
}
