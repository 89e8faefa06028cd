//! Programs that print the properties of a device, compiled with the headers of several versions of CUDA
//! (`tests/device-properties`).

mod headers;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::Library;

use crate::command::succeed;
use crate::components::wheel_libraries;
use crate::stubs::{Stubs, plan_shipped};
use crate::{Result, repository};
pub use headers::{Attribute, Headers, attributes};

/// Functions that the programs, the adapters and the stubs' own queries call.
const FUNCTIONS: [&str; 6] = [
    "cudaDeviceGetAttribute",
    "cudaDriverGetVersion",
    "cudaGetDeviceProperties",
    "cudaGetDeviceProperties_v2",
    "cudaGetLastError",
    "cudaRuntimeGetVersion",
];

/// Programs and libraries of one version.
pub struct Release {
    /// Declarations of the headers.
    pub headers: Headers,
    /// Program with stubs that declare this version.
    pub stubbed: PathBuf,
    /// The same program, linked with the library.
    pub direct: PathBuf,
    /// Fake library.
    pub fake: PathBuf,
    /// Real library.
    pub real: PathBuf,
}

impl Release {
    /// Compiles them into a directory named after the version.
    pub fn new(
        dir: &Path,
        version: &str,
        attributes: &BTreeMap<String, Attribute>,
    ) -> Result<Self> {
        let wheel = format!("cudart-{version}");
        let libraries = wheel_libraries(&wheel)?;
        let real = fs::read_dir(&libraries)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|file| file.to_string_lossy().contains("libcudart.so."))
            .ok_or("no libcudart.so")?;
        let include = libraries.with_file_name("include");
        let headers = Headers::read(version, &include.join("driver_types.h"))?;
        let dir = dir.join(version);
        fs::create_dir(&dir)?;
        fs::write(dir.join("fields.inc"), headers.fields_inc(attributes))?;
        let mut rows = String::new();
        for row in attributes.values() {
            rows += &format!("ATTRIBUTE({}, {})\n", row.attribute, row.driver);
        }
        fs::write(dir.join("attributes.inc"), rows)?;

        let include_dirs = [&dir, &include];
        let soname = real.file_name().ok_or("no name")?.to_string_lossy();
        let fake = dir.join(&*soname);
        let map = dir.join("fake.map");
        fs::write(&map, format!("{soname} {{ global: cuda*; local: *; }};\n"))?;
        let options = [
            "-shared",
            "-fPIC",
            &format!("-Wl,-soname,{soname},--version-script={}", map.display()),
        ];
        compile("fake.c", &options, include_dirs, &fake)?;
        let object = dir.join("program.o");
        compile("program.c", &["-c"], include_dirs, &object)?;

        let (stubbed, direct) = (dir.join("stubbed"), dir.join("direct"));
        let shipped = Library::builtin("cudart").expect("a shipped library");
        let plan = plan_shipped(shipped, version, |name| FUNCTIONS.contains(&name))?;
        let stubs = Stubs::write(&dir, &plan, "cc", &[])?.archive()?;
        for (program, library) in [(&stubbed, &stubs), (&direct, &fake)] {
            let mut cc = Command::new("cc");
            succeed(cc.arg("-o").args([program, &object, library]))?;
        }
        Ok(Self {
            headers,
            stubbed,
            direct,
            fake,
            real,
        })
    }
}

/// Compiles a source of `tests/device-properties`, with a directory of generated files and the headers.
fn compile(
    source: &str,
    options: &[&str],
    [generated, headers]: [&PathBuf; 2],
    output: &Path,
) -> Result<()> {
    let sources = repository().join("tests/device-properties");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Werror"]).args(options);
    cc.arg("-I").arg(generated);
    cc.arg("-isystem").arg(repository().join("xtask/headers"));
    cc.arg("-isystem").arg(headers);
    succeed(cc.arg("-o").arg(output).arg(sources.join(source)))?;
    Ok(())
}
