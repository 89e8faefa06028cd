//! cudaGetDeviceProperties, adapted between majors of CUDA: programs compiled with the headers of one version
//! print, on the library of another, what a program of that version prints.
//!
//! The libraries are fakes compiled with the real headers (`tests/device-properties`), so that the layouts are
//! the compiler's; fields that a library's struct lacks have the values of attributes, whose numbers are data
//! of this test. The real runtimes return their error codes without a device.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use gpustub_core::library::override_variable;
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::components::component;
use gpustub_tests::device_properties::{Attribute, Release, attributes};
use gpustub_tests::scratch::scratch;

/// Versions of the default components.
const VERSIONS: [&str; 4] = ["11.8", "12.9", "13.0", "13.5"];

/// Drivers of which each lacks attributes that the next one knows.
const DRIVERS: [i32; 7] = [11_080, 12_000, 12_010, 12_020, 12_030, 12_080, 13_050];

/// `FAKE_FAIL`: the query of the properties.
const PROPERTIES: &str = "0";

/// cudaErrorDevicesUnavailable, with which the fakes fail.
const FAILURE: &str = "46";

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
                let printed = Printed::run(&program.stubbed, &library.fake, &[], &variables)?;
                assert_eq!(printed.results, expected.results, "{pair}");
                assert_eq!(
                    printed.fields.len(),
                    program.headers.values().count(),
                    "{pair}"
                );
                for (name, value) in &printed.fields {
                    let expected_value = match (expected.fields.get(name), attributes.get(name)) {
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
                    assert_eq!(*value, expected_value, "{name} of {pair}");
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

fn has_field(release: &Release, field: &str) -> bool {
    release.headers.values().any(|name| name == field)
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
            let mut queries = Vec::new();
            for (name, row) in attributes {
                let is_made = has_field(program, name) && !has_field(library, name);
                queries.push((row.attribute.to_string(), is_made));
            }
            queries.push((PROPERTIES.to_owned(), true));
            for (query, is_made) in queries {
                let variables = [("FAKE_DRIVER", &newest[..]), ("FAKE_FAIL", &query)];
                let printed = Printed::run(&program.stubbed, &library.fake, &[], &variables)?;
                let failure = [("code", FAILURE), ("last", FAILURE), ("written", "0")];
                let success = [("code", "0"), ("last", "0"), ("written", "1")];
                for (name, value) in if is_made { failure } else { success } {
                    assert_eq!(
                        printed.results[name], value,
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
                let printed = Printed::run(&program.stubbed, &library.real, more, &[])?;
                assert_eq!(
                    printed, expected,
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
