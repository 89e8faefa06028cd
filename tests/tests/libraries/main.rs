//! Stubs of each shipped library, bound to the real one.

mod error_names;
mod lookup;
mod results;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::Library;
use gpustub_core::symbols::Symbol;
use gpustub_core::version::{HeaderVersion, Version};
use gpustub_tests::command::{Ran, succeed};
use gpustub_tests::components::{component, wheel_libraries, wheel_library_dir};
use gpustub_tests::isolated::Isolated;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Failure, Result, repository};

/// Recipe of a library, of `xtask/recipes.toml` or `xtask/libraries`. `cargo xtask manifests` reads the other keys.
#[derive(serde::Deserialize)]
struct Recipe {
    exports: Vec<Export>,
    call: Option<Call>,
    bound: Option<Vec<Real>>,
}

/// A version of which the exports are read.
#[derive(serde::Deserialize)]
struct Export {
    version: String,
    #[serde(rename = "in")]
    component: Option<String>,
    installed: Option<PathBuf>,
}

/// A library and the versions that its stubs are bound to.
struct Case {
    call: Call,
    versions: Vec<Real>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    signature: String,
    function: String,
}

/// Version of a library, and its origin.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Real {
    version: String,
    #[serde(default, rename = "in")]
    components: Vec<String>,
    installed: Option<PathBuf>,
    /// Version of the program's headers, if other than the library's.
    header: Option<String>,
    #[serde(default)]
    all: bool,
}

fn cases() -> Result<BTreeMap<String, Case>> {
    let file = repository().join("xtask/recipes.toml");
    let text = fs::read_to_string(&file)?;
    let mut recipes: BTreeMap<String, Recipe> =
        toml::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    let directory = repository().join("xtask/libraries");
    for entry in fs::read_dir(&directory).into_iter().flatten() {
        let file = entry?.path();
        let text = fs::read_to_string(&file)?;
        let recipe = toml::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        let id = file.file_stem().unwrap_or_default().to_string_lossy();
        recipes.insert(id.into_owned(), recipe);
    }
    let cases = recipes.into_iter().filter_map(|(id, recipe)| {
        let exports = recipe.exports.into_iter().map(|export| Real {
            version: export.version,
            components: Vec::from_iter(export.component),
            installed: export.installed,
            header: None,
            all: false,
        });
        let versions = recipe.bound.unwrap_or_else(|| exports.collect());
        let call = recipe.call?;
        Some((id, Case { call, versions }))
    });
    Ok(cases.collect())
}

/// Directory of the libraries of Debian's packages.
const DEBIAN: &str = "/usr/lib/x86_64-linux-gnu";

/// Directory in which pip installs packages.
const SITE: &str = "/env/lib/python3.12/site-packages";

/// A program of one C file with stubs for some libraries, in `dir`. Unused stubs are left out, as
/// in a release build.
fn build(
    dir: &Path,
    ids: &[&str],
    header: &str,
    source: &str,
    flags: &[String],
) -> Result<PathBuf> {
    let table = |id: &&str| format!("[stub.{id}]\nheader-version = \"{header}\"\n");
    let manifest: String = ids.iter().map(table).collect();
    let target = Machine::X86_64.target();
    let plan = plan_or_fail(&format!("schema = 1\n{manifest}"), &[], &target)?;
    let stubs = Stubs::write(dir, &plan, "cc", &[])?;
    let program = dir.join("program");
    let mut command = Command::new("cc");
    command
        .args(["-Wall", "-Werror", "-Wl,--gc-sections", "-I"])
        .arg(&stubs.sources)
        .args(flags)
        .arg(repository().join("tests/programs").join(source))
        .arg(stubs.archive()?);
    succeed(command.arg("-o").arg(&program))?;
    Ok(program)
}

/// Names of the functions that a library has on Linux.
fn names(library: &Library) -> BTreeSet<&str> {
    let functions = library.symbols.functions_on("linux");
    functions.map(|symbol| &symbol.name[..]).collect()
}

/// The program that queries every function of a library, compiled with the headers of a version.
fn program_of(id: &str, call: &Call, header: &str, dir: &Path) -> Result<PathBuf> {
    let library = Library::builtin(id).ok_or("a shipped library")?;
    let text: String = (names(library).iter())
        .map(|name| format!("FUNCTION({name})\n"))
        .collect();
    fs::write(dir.join("functions.inc"), text)?;
    let flags = [
        format!("-I{}", dir.display()),
        format!("-DLIBRARY=\"{id}\""),
        format!("-DSIGNATURE={}", call.signature),
        format!("-DCALL={}", call.function),
        format!("-DCALL_NAME=\"{}\"", call.function),
    ];
    build(dir, &[id], header, "bound.c", &flags)
}

/// A machine with a program in a site-packages directory, and a version of a library.
fn machine(program: &Path, real: &Real) -> Result<Isolated> {
    let machine = Isolated::new()?;
    machine.install(program, &format!("{SITE}/example/program"))?;
    if let Some(file) = &real.installed {
        machine.install(file, &file.to_string_lossy())?;
    }
    for name in &real.components {
        match name.strip_prefix("wheels/") {
            None => machine.install_all(&component(name)?, DEBIAN)?,
            Some(wheel) => {
                let directory = format!("{SITE}/{}", wheel_library_dir(wheel)?.display());
                machine.install_all(&wheel_libraries(wheel)?, &directory)?;
            }
        }
    }
    Ok(machine)
}

/// Runs the program on a separate machine.
fn run(program: &Path, real: &Real) -> Result<Ran> {
    machine(program, real)?
        .run(&format!("{SITE}/example/program"), &[])?
        .success()
}

fn has(symbol: &Symbol, version: Version) -> bool {
    let mut ranges = symbol.releases.iter();
    symbol.releases.is_empty() || ranges.any(|(from, to)| (*from..=*to).contains(&version))
}

/// Function of a version that is bound for one that it lacks.
fn replacement(
    library: &Library,
    name: &str,
    header: Option<HeaderVersion>,
    version: Version,
) -> Option<String> {
    let code = i32::try_from(version.code()).ok()?;
    let mut entries = library.abi.entries(name, header).into_iter();
    let entry = entries.find(|entry| (entry.from..entry.below).contains(&code));
    let replacement = entry.and_then(|entry| entry.name);
    replacement.or_else(|| library.fallback_symbols.get(name).cloned())
}

/// Checks that exactly the functions of the list's version are bound; one call has the result of
/// the library itself.
fn is_bound_whole(id: &str, real: &Real, program: &Path) -> Result<()> {
    let library = Library::builtin(id).ok_or("a shipped library")?;
    let version = Version::parse(&real.version).ok_or("a version")?;
    let ran = run(program, real)?;
    let lines = |start: &str| -> Vec<&str> {
        let lines = ran.stdout.lines();
        lines.filter_map(|line| line.strip_prefix(start)).collect()
    };
    let (mut present, mut lacking) = (BTreeSet::new(), BTreeSet::new());
    for symbol in library.symbols.functions_on("linux") {
        let name = &symbol.name[..];
        // A name may have several symbol versions, one of which exists.
        let versions = library.symbols.lookup(name);
        if versions.iter().any(|symbol| has(symbol, version)) {
            present.insert(name);
        } else {
            lacking.insert(name);
        }
    }
    let header = HeaderVersion::parse(real.header.as_ref().unwrap_or(&real.version));
    let replaced: Vec<&str> = (lacking.iter().copied())
        .filter(|name| {
            replacement(library, name, header, version)
                .is_some_and(|other| present.contains(&*other))
        })
        .collect();
    for name in replaced {
        lacking.remove(name);
        present.insert(name);
    }
    // A function that the headers lack, and that has several variants, is refused instead.
    let depends = |name: &&&str| library.abi.depends_on_headers(name);
    let expected = format!("{} 0 {}", present.len(), lacking.len());
    let can_refuse = lacking.iter().filter(depends).count();
    let mut possible = (0..=can_refuse)
        .map(|refused| format!("{} {refused} {}", present.len(), lacking.len() - refused));
    if !possible.any(|counts| lines("counts ") == [counts.as_str()]) {
        return Err(ran.error(&format!("not bound, refused, absent: {expected}")));
    }
    let code = version.code().to_string();
    if library.version_query.is_some() && lines("version ") != [code.as_str()] {
        return Err(ran.error(&format!("not version {code}")));
    }
    let lacks: BTreeSet<&str> = lines("lacks ").into_iter().collect();
    if lacks != lacking {
        return Err(ran.error(&format!("should lack {lacking:?}")));
    }
    match (&lines("stub ")[..], &lines("direct ")[..]) {
        ([stub], [direct]) if stub == direct => {
            println!("{id} {version}: {expected}; {stub}");
            Ok(())
        }
        _ => Err(ran.error("the results of stub and library differ")),
    }
}

fn check(all: bool) -> Result<()> {
    let mut failures = Vec::new();
    for (id, case) in cases()? {
        let wanted: Vec<_> = (case.versions.iter())
            .filter(|real| real.all == all)
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let library = Library::builtin(&id).ok_or("a shipped library")?;
        let mut names = library.abi.names();
        let depends = names.any(|name| library.abi.depends_on_headers(name));
        let mut programs = BTreeMap::new();
        for real in wanted {
            let header = real.header.as_ref().unwrap_or(&real.version).as_str();
            let header = if depends { header } else { "none" };
            if !programs.contains_key(header) {
                let dir = scratch()?;
                let program = program_of(&id, &case.call, header, dir.path())?;
                programs.insert(header, (program, dir));
            }
            let (program, _) = &programs[header];
            if let Err(Failure(text)) = is_bound_whole(&id, real, program) {
                failures.push(format!("{id} {}: {text}", real.version));
            }
        }
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(failures.join("\n\n").into())
}

#[test]
#[ignore = "needs the real libraries and user namespaces: ./tests/run"]
fn real_libraries_are_bound_whole() -> Result<()> {
    check(false)
}

#[test]
#[ignore = "needs the real libraries of all versions: ./tests/run --all"]
fn heavy_real_libraries_of_other_versions_are_bound_whole() -> Result<()> {
    check(true)
}

#[test]
fn every_library_has_a_case() -> Result<()> {
    let cases = cases()?;
    let in_machines_rs = ["cuda", "cudart", "hip", "opencl"];
    // Debian's need a newer C library than Debian 12 has, or a library of half a gigabyte; the name of ROCm SMI 5.2
    // does not tell its version; cufile-rdma needs libmlx5.
    let only_read = [
        "amd-smi",
        "cufile-rdma",
        "hipblas",
        "hipblaslt",
        "hipfft",
        "hipsolver",
        "hipsparse",
        "migraphx",
        "miopen",
        "rccl",
        "rocblas",
        "rocfft",
        "rocm-smi",
        "rocsolver",
        "rocsparse",
        "roctracer",
    ];
    for id in Library::builtin_ids() {
        let elsewhere = in_machines_rs.contains(&id) || only_read.contains(&id);
        assert!(cases.contains_key(id) != elsewhere, "{id}");
    }
    Ok(())
}

/// The runtime selects the toolkit; libraries whose names two toolkits share must be accepted.
fn toolkit(version: &str, names: &[&str]) -> Result<()> {
    let dir = scratch()?;
    let ids = ["cudart", "cusolver", "cusparse"];
    let program = build(dir.path(), &ids, "none", "toolkit.c", &[])?;
    let real = Real {
        version: version.into(),
        components: names.iter().map(|name| format!("wheels/{name}")).collect(),
        installed: None,
        header: None,
        all: false,
    };
    let ran = run(&program, &real)?;
    assert_eq!(
        ran.stdout, "cudart 1\ncusolver 1\ncusparse 1\n",
        "{}",
        ran.stderr
    );
    Ok(())
}

#[test]
#[ignore = "needs the real libraries and user namespaces: ./tests/run"]
fn libraries_of_one_toolkit_go_together() -> Result<()> {
    toolkit(
        "12.9",
        &[
            "cudart-12.9",
            "cusolver-12.9",
            "cusparse-12.9",
            "cublas",
            "nvjitlink-12.9",
        ],
    )
}

#[test]
#[ignore = "needs the real libraries of other versions: ./tests/run --all"]
fn heavy_libraries_of_other_toolkits_go_together() -> Result<()> {
    toolkit(
        "11.8",
        &[
            "cudart-11.8",
            "cusolver-11.8",
            "cusparse-11.8",
            "cublas-11.8",
        ],
    )?;
    toolkit(
        "13.5",
        &[
            "cudart-13.5",
            "cusolver-13.5",
            "cusparse-13.5",
            "cublas-13.5",
            "nvjitlink-13.5",
        ],
    )
}

/// Reports give the reason why the driver of a program that calls only the runtime was searched.
#[test]
fn reports_say_why_the_driver_is_searched() -> Result<()> {
    let dir = scratch()?;
    fs::write(
        dir.path().join("calls.inc"),
        "CALL(cudaGetErrorName, 35, 0)\n",
    )?;
    fs::write(
        dir.path().join("functions.inc"),
        "FUNCTION(cudaGetErrorName)\n",
    )?;
    let include = format!("-I{}", dir.path().display());
    let program = build(dir.path(), &["cudart"], "none", "error-names.c", &[include])?;
    let mut command = Command::new(program);
    command
        .env("GPUSTUB_LOG", "1")
        .env("GPUSTUB_CUDA_PATH", "off");
    let ran = succeed(&mut command)?;
    let line = "gpustub: cuda (its version limits the toolkit): unavailable: ";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
    Ok(())
}

// ---- no library at all ----------------------------------------------------------------------------

/// Every function of every library returns the value of its manifest, and writes nothing else.
#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn functions_of_a_missing_library_return_the_manifest_values() -> Result<()> {
    for id in Library::builtin_ids() {
        let library = Library::builtin(id).ok_or("a shipped library")?;
        let rows: Vec<_> = (names(library).into_iter())
            .filter_map(|name| results::row(library, name))
            .collect();
        let dir = scratch()?;
        fs::write(dir.path().join("functions.inc"), rows.concat())?;
        let flags = [
            format!("-I{}", dir.path().display()),
            format!("-DLIBRARY=\"{id}\""),
            format!("-DTEXT_OF_LIBRARY=\"{}\"", library.status_string),
        ];
        let program = build(dir.path(), &[id], "none", "missing-all.c", &flags)?;
        let machine = Isolated::new()?;
        machine.install(&program, "/program")?;
        let ran = machine.run("/program", &[])?.success()?;
        assert_eq!(ran.stdout, format!("{} functions\n", rows.len()), "{id}");
    }
    Ok(())
}

// ---- work that needs no GPU -----------------------------------------------------------------------

/// The program is compiled with nvJitLink's header, and so calls the names of that version.
fn links(header: &str, version: &str) -> Result<()> {
    let (linker, compiler) = (format!("nvjitlink-{version}"), format!("nvrtc-{version}"));
    let include = wheel_libraries(&format!("nvjitlink-{header}"))?.with_file_name("include");
    let dir = scratch()?;
    let flags = [format!("-I{}", include.display())];
    let ids = ["nvjitlink", "nvrtc"];
    let program = build(dir.path(), &ids, "none", "link-device-code.c", &flags)?;
    let real = Real {
        version: version.into(),
        components: [linker, compiler]
            .map(|name| format!("wheels/{name}"))
            .into(),
        installed: None,
        header: None,
        all: false,
    };
    let expected =
        format!("nvJitLink {version}\n1 sources: helper is undefined\n2 sources: linked\n");
    assert_eq!(run(&program, &real)?.stdout, expected);
    Ok(())
}

#[test]
#[ignore = "needs nvJitLink, NVRTC and user namespaces: ./tests/run"]
fn device_code_is_linked_through_stubs() -> Result<()> {
    links("12.9", "12.9")
}

#[test]
#[ignore = "needs nvJitLink of another version: ./tests/run --all"]
fn heavy_device_code_is_linked_through_stubs_of_13() -> Result<()> {
    links("13.5", "13.5")?;
    links("12.9", "13.5")?;
    links("13.5", "12.9")
}

/// On the real machine: its compiler reads files that the package installs.
#[test]
#[ignore = "needs AMD's HIP: ./tests/run"]
fn hip_code_is_compiled_through_stubs() -> Result<()> {
    let dir = scratch()?;
    let program = build(dir.path(), &["hiprtc"], "none", "compile-hip.c", &[])?;
    let ran = succeed(&mut Command::new(program))?;
    ran.expect_in_order(&[
        "compile: HIPRTC_SUCCESS",
        "the code is for a GPU",
        "destroy",
    ])?;
    Ok(())
}
