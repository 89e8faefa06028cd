//! Published crates that bring stubs, in an application without a `GpuStub.toml`: cudarc and cust, both of the
//! CUDA driver, and opencl3.

use super::*;

/// Crates, the change to their build scripts, and the libraries of which they bring stubs.
const CRATES: [(&str, Script, &str); 4] = [
    ("cudarc-0.19.10", Script::Added, "cuda nvrtc"),
    ("cust-0.3.2", Script::Replaced, "cuda"),
    // A search for a toolkit, which the stubs replace.
    ("cust_raw-0.11.3", Script::Removed, ""),
    ("opencl3-0.9.5", Script::Replaced, "opencl"),
];

/// Change to a crate's build script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Added,
    Replaced,
    Removed,
}

const BUILD: &str = "    gpustub_build::build();\n";

impl Project {
    /// The application, with the crates of the registry patched for these headers of cudarc.
    fn registry_crates(header: &str) -> Result<Self> {
        let project = Self::new("published", false)?;
        let sources = project.sources()?;
        for (crate_name, script, libraries) in CRATES {
            let name = crate_name.split('-').next().unwrap_or(crate_name);
            let patched = project.work.join("patched").join(name);
            copy(&sources.join(crate_name), &patched)?;
            let text = match script {
                Script::Added => {
                    let old = fs::read_to_string(sources.join(crate_name).join("build.rs"))?;
                    old.replacen("fn main() {\n", &format!("fn main() {{\n{BUILD}"), 1)
                }
                Script::Replaced => format!("fn main() {{\n{BUILD}}}\n"),
                Script::Removed => "fn main() {}\n".to_owned(),
            };
            write_if_changed(&patched.join("build.rs"), text.as_bytes())?;
            let manifest = fs::read_to_string(sources.join(crate_name).join("Cargo.toml"))?;
            let manifest = with_helper(&manifest, script != Script::Removed)?;
            write_if_changed(&patched.join("Cargo.toml"), manifest.as_bytes())?;
            let version = if name == "cudarc" { header } else { "11.4" };
            let stubs: String = libraries
                .split_whitespace()
                .map(|library| match library {
                    "opencl" => "[stub.opencl]\n".to_owned(),
                    _ => format!("[stub.{library}]\nheader-version = \"{version}\"\n"),
                })
                .collect();
            let stubs = format!("schema = 1\n{stubs}");
            write_if_changed(&patched.join("GpuStub.toml"), stubs.as_bytes())?;
        }
        Ok(project)
    }

    /// Directory with the sources of the registry's crates, downloaded by an unpatched copy.
    fn sources(&self) -> Result<PathBuf> {
        let plain = self.work.join("published-plain");
        copy(&self.directory(), &plain)?;
        let manifest = fs::read_to_string(self.directory().join("Cargo.toml"))?;
        let plain_manifest = manifest
            .split("[patch.crates-io]")
            .next()
            .unwrap_or(&manifest);
        write_if_changed(&plain.join("Cargo.toml"), plain_manifest.as_bytes())?;
        let mut metadata = cargo(&plain);
        metadata.args(["metadata", "--format-version", "1"]);
        let metadata: Value = serde_json::from_str(&succeed(&mut metadata)?.stdout)?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let mut paths = packages.filter_map(|package| package["manifest_path"].as_str());
        let cudarc = paths
            .find(|path| path.contains("/cudarc-"))
            .ok_or("no cudarc")?;
        let directory = Path::new(cudarc).ancestors().nth(2).ok_or("no registry")?;
        Ok(directory.to_owned())
    }
}

/// The manifest of a crate whose only build-dependency is the helper, if any.
fn with_helper(manifest: &str, helper: bool) -> Result<String> {
    let mut manifest: toml::Table = toml::from_str(manifest)?;
    manifest.remove("build-dependencies");
    if helper {
        let helper: toml::Table = toml::from_str("gpustub-build = \"0.1\"")?;
        manifest.insert("build-dependencies".to_owned(), helper.into());
    }
    let package = manifest
        .get_mut("package")
        .and_then(toml::Value::as_table_mut);
    package
        .ok_or("no package")?
        .insert("build".to_owned(), "build.rs".into());
    Ok(toml::to_string(&manifest)?)
}

#[test]
#[ignore = "needs crates from the registry, PoCL and mold: ./tests/run"]
fn published_crates_bring_stubs() -> Result<()> {
    let project = Project::registry_crates("11.4")?;
    let driver = project.work.join("libcuda.so.1");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&driver);
    succeed(cc.arg(project.directory().join("driver.c")))?;
    for linker in [DEFAULT, BFD, MOLD] {
        succeed(&mut project.cargo(&["build"], linker, false)?)?;
        let program = project.work.join("target-bare/debug/published");
        check_image(&program, linker)?;
        let rows = symbols("--symbols", &program)?;
        let count = |name: &str| rows.iter().filter(|row| row.name == name).count();
        assert_eq!(
            (count("find_library"), count("cuInit")),
            (1, 1),
            "{}",
            linker.name
        );

        let mut none = Command::new(&program);
        let none = succeed(project.switch_off(clean(&mut none)))?;
        assert_eq!(
            none.stdout,
            "cudarc: Err(DriverError(CUDA_ERROR_NO_DEVICE, \"the CUDA driver (libcuda) is not available; GPUSTUB_LOG=1 shows why\"))\n\
             cust: Err(NoDevice)\nopencl3: -1001\n"
        );
        let mut found = Command::new(&program);
        let found = succeed(clean(&mut found).env("GPUSTUB_CUDA_PATH", &driver))?;
        let lines: Vec<&str> = found.stdout.lines().collect();
        assert!(lines[0].contains("CUDA_ERROR_UNKNOWN"), "{lines:?}");
        assert_eq!(lines[1], "cust: Err(UnknownError)");
        assert!(
            lines[2].contains("Portable Computing Language"),
            "{lines:?}"
        );
    }
    Ok(())
}

/// Structs of the driver are larger since CUDA 11.8, so bindings of 12.8 and 11.4 share no stubs.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_published_crates_with_incompatible_bindings_do_not_link() -> Result<()> {
    let project = Project::registry_crates("12.8")?;
    for linker in [DEFAULT, BFD, MOLD] {
        let words = ["build", "--no-default-features", "--features", "cuda-12"];
        let ran = run(&mut project.cargo(&words, linker, false)?)?;
        let remedy = "gpustub_error_incompatible_header_versions_of_cuda__see_header_version_in_GpuStub_toml";
        assert!(!ran.status.success(), "{}", linker.name);
        assert!(
            ran.stderr.contains(remedy),
            "{}: {}",
            linker.name,
            ran.stderr
        );
    }
    Ok(())
}
