//! cudaGetDeviceProperties, adapted between majors of CUDA: programs compiled with the headers of one version
//! print, on the library of another, what a program of that version prints.
//!
//! The libraries are fakes compiled with the real headers (`tests/device-properties`), so that the layouts are
//! the compiler's; fields that a library's struct lacks have the values of attributes, whose numbers are data
//! of this test. The real runtimes return their error codes without a device.

mod headers;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::{Library, override_variable};
use gpustub_tests::command::succeed;
use gpustub_tests::components::{component, wheel_libraries};
use gpustub_tests::stubs::{Stubs, plan_shipped};
use gpustub_tests::{Result, repository, scratch};
use headers::{Attribute, Headers, attributes};

/// Versions of the default components.
const VERSIONS: [&str; 4] = ["11.8", "12.9", "13.0", "13.5"];

/// Drivers of which each lacks attributes that the next one knows.
const DRIVERS: [i32; 7] = [11_080, 12_000, 12_010, 12_020, 12_030, 12_080, 13_050];

/// `FAKE_FAIL`: the query of the properties.
const PROPERTIES: &str = "0";

/// cudaErrorDevicesUnavailable, with which the fakes fail.
const FAILURE: &str = "46";

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
struct Release {
    headers: Headers,
    /// Program with stubs that declare this version.
    stubbed: PathBuf,
    /// The same program, linked with the library.
    direct: PathBuf,
    /// Fake library.
    fake: PathBuf,
    /// Real library.
    real: PathBuf,
}

impl Release {
    fn new(dir: &Path, version: &str, attributes: &BTreeMap<String, Attribute>) -> Result<Self> {
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
        let rows = attributes.values();
        let rows = rows.map(|row| format!("ATTRIBUTE({}, {})\n", row.attribute, row.driver));
        fs::write(dir.join("attributes.inc"), rows.collect::<String>())?;

        let compile = |source: &str, options: &[&str], to: &Path| {
            let sources = repository().join("tests/device-properties");
            let mut cc = Command::new("cc");
            cc.args(["-O1", "-Wall", "-Werror"]).args(options);
            cc.arg("-I").arg(&dir);
            cc.arg("-isystem").arg(repository().join("xtask/headers"));
            cc.arg("-isystem").arg(&include);
            succeed(cc.arg("-o").arg(to).arg(sources.join(source)))
        };
        let soname = real.file_name().ok_or("no name")?.to_string_lossy();
        let fake = dir.join(&*soname);
        let map = dir.join("fake.map");
        fs::write(&map, format!("{soname} {{ global: cuda*; local: *; }};\n"))?;
        let options = [
            "-shared",
            "-fPIC",
            &format!("-Wl,-soname,{soname},--version-script={}", map.display()),
        ];
        compile("fake.c", &options, &fake)?;
        let object = dir.join("program.o");
        compile("program.c", &["-c"], &object)?;

        let link = |program: &Path, library: &Path| {
            succeed(Command::new("cc").args([Path::new("-o"), program, &object, library]))
        };
        let (stubbed, direct) = (dir.join("stubbed"), dir.join("direct"));
        let shipped = Library::builtin("cudart").expect("a shipped library");
        let plan = plan_shipped(shipped, version, |name| FUNCTIONS.contains(&name))?;
        link(&stubbed, &Stubs::write(&dir, &plan, "cc", &[])?.archive()?)?;
        link(&direct, &fake)?;
        Ok(Self {
            headers,
            stubbed,
            direct,
            fake,
            real,
        })
    }
}

/// Output of a program.
#[derive(Debug, PartialEq, Eq)]
struct Printed {
    /// `code`, `last`, `null`, `written`, and the attributes.
    results: BTreeMap<String, String>,
    fields: BTreeMap<String, String>,
}

impl Printed {
    /// Runs a program with this library, and these directories of others.
    fn run(
        program: &Path,
        library: &Path,
        more: &[&Path],
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        let directory = library.parent().ok_or("no directory")?;
        let directories = [&[directory], more].concat();
        let mut command = Command::new(program);
        command
            .env("LD_LIBRARY_PATH", std::env::join_paths(directories)?)
            .env(override_variable("cudart"), library)
            .envs(variables.iter().copied());
        let (mut results, mut fields) = (BTreeMap::new(), BTreeMap::new());
        for line in succeed(&mut command)?.stdout.lines() {
            let (name, value) = line.rsplit_once(' ').ok_or(format!("{line:?}"))?;
            match name.strip_prefix("field ") {
                Some(field) => fields.insert(field.to_owned(), value.to_owned()),
                None => results.insert(name.to_owned(), value.to_owned()),
            };
        }
        Ok(Self { results, fields })
    }
}

/// Numbers of compared fields: those of both structs, and those that attributes fill.
#[derive(Debug, Default)]
struct Counts {
    common: usize,
    filled: usize,
    otherwise: usize,
}

/// Every program on every fake, with every driver.
fn fields_are_equal(releases: &[Release], attributes: &BTreeMap<String, Attribute>) -> Result<()> {
    let mut counts = Counts::default();
    for library in releases {
        for driver in DRIVERS {
            let variables = [("FAKE_DRIVER", &driver.to_string()[..])];
            let expected = Printed::run(&library.direct, &library.fake, &[], &variables)?;
            for (name, row) in attributes {
                if let Some(value) = expected.fields.get(name) {
                    assert_eq!(*value, row.value().to_string(), "{name} of the fake");
                }
            }
            for program in releases {
                let pair = format!(
                    "{} on {}, driver {driver}",
                    program.headers.version, library.headers.version
                );
                let found = Printed::run(&program.stubbed, &library.fake, &[], &variables)?;
                assert_eq!(found.results, expected.results, "{pair}");
                assert_eq!(
                    found.fields.len(),
                    program.headers.values().count(),
                    "{pair}"
                );
                for (name, value) in &found.fields {
                    let wanted = match (expected.fields.get(name), attributes.get(name)) {
                        (Some(value), _) => {
                            counts.common += 1;
                            value.clone()
                        }
                        (None, Some(row)) if driver >= row.driver => {
                            counts.filled += 1;
                            row.value().to_string()
                        }
                        (None, Some(row)) => {
                            counts.otherwise += 1;
                            row.otherwise.to_string()
                        }
                        (None, None) => panic!("{name} has no attribute: attributes.toml"),
                    };
                    assert_eq!(*value, wanted, "{name} of {pair}");
                }
            }
        }
    }
    println!("{counts:?}");
    let Counts {
        common,
        filled,
        otherwise,
    } = counts;
    assert!(common > filled && filled > otherwise && otherwise > 0);
    Ok(())
}

/// Every program on every fake, with each query failing in turn: the code is that of the query, and nothing
/// is written.
fn failures_write_nothing(
    releases: &[Release],
    attributes: &BTreeMap<String, Attribute>,
) -> Result<()> {
    let newest = DRIVERS[DRIVERS.len() - 1].to_string();
    for library in releases {
        for program in releases {
            let is_asked = |field: &str| {
                let has = |release: &Release| release.headers.values().any(|name| name == field);
                has(program) && !has(library)
            };
            let rows = attributes.iter();
            let rows = rows.map(|(name, row)| (row.attribute.to_string(), is_asked(name)));
            for (query, is_asked) in rows.chain([(PROPERTIES.to_owned(), true)]) {
                let variables = [("FAKE_DRIVER", &newest[..]), ("FAKE_FAIL", &query)];
                let found = Printed::run(&program.stubbed, &library.fake, &[], &variables)?;
                let is_failure = [("code", FAILURE), ("last", FAILURE), ("written", "0")];
                let is_success = [("code", "0"), ("last", "0"), ("written", "1")];
                for (name, value) in if is_asked { is_failure } else { is_success } {
                    assert_eq!(
                        found.results[name], value,
                        "{name} of {} on {}, without attribute {query}",
                        program.headers.version, library.headers.version
                    );
                }
            }
        }
    }
    Ok(())
}

/// Every program on every real runtime, with drivers but without a device, has the results of one of that
/// version.
fn codes_are_equal_without_device(releases: &[Release]) -> Result<()> {
    let driver = component("driver-550")?;
    for more in [&[][..], &[driver.as_path()]] {
        let mut codes = Vec::new();
        for library in releases {
            let expected = Printed::run(&library.direct, &library.real, more, &[])?;
            codes.push(expected.results["code"].clone());
            for program in releases {
                let found = Printed::run(&program.stubbed, &library.real, more, &[])?;
                assert_eq!(
                    found, expected,
                    "{} on {}",
                    program.headers.version, library.headers.version
                );
            }
        }
        println!("{more:?}: {codes:?}");
    }
    Ok(())
}

fn programs_print_equal_properties(versions: &[&str]) -> Result<()> {
    let dir = scratch()?;
    let attributes = attributes()?;
    let mut releases = Vec::new();
    for version in versions {
        let release = Release::new(dir.path(), version, &attributes)?;
        release.headers.check(&attributes);
        releases.push(release);
    }
    fields_are_equal(&releases, &attributes)?;
    failures_write_nothing(&releases, &attributes)?;
    codes_are_equal_without_device(&releases)
}

#[test]
#[ignore = "needs the headers and libraries of three majors: ./tests/run"]
fn programs_print_equal_properties_on_each_major() -> Result<()> {
    programs_print_equal_properties(&VERSIONS)
}

#[test]
#[ignore = "needs the headers and libraries of all versions: ./tests/run --all"]
fn heavy_programs_print_equal_properties_on_each_release() -> Result<()> {
    programs_print_equal_properties(&["11.8", "12.0", "12.4", "12.9", "13.0", "13.4", "13.5"])
}
