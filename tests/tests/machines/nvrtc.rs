//! NVRTC, in four versions and at three paths.

use std::fs;

use gpustub_tests::Result;
use gpustub_tests::command::Ran;
use gpustub_tests::components::{component, wheel_libraries, wheel_library_dir};
use gpustub_tests::isolated::Isolated;

use super::{JSON, hello_gpu, report};

const VERSIONS: [(&str, u64); 4] = [
    ("11.8", 11080),
    ("12.9", 12090),
    ("13.0", 13000),
    ("13.5", 13050),
];

/// Runs the example on a machine and checks that it uses this NVRTC, which works.
fn compiles_with(
    machine: &Isolated,
    program: &str,
    variables: &[(&str, &str)],
    version: u64,
    directory: &str,
) -> Result<Ran> {
    let variables = [&[JSON], variables].concat();
    let ran = machine.run(program, &variables)?.success()?;
    let report = report(&ran, "nvrtc")?;
    let path = report["path"].as_str().unwrap_or_default();
    assert!(
        path.starts_with(directory),
        "{path} is not in {directory}: {}",
        ran.stderr
    );
    assert_eq!(report["version"], version, "{}", ran.stderr);
    ran.expect_in_order(&["\nnvrtc:\n", "PTX"])
}

#[test]
#[ignore = "needs NVRTC of four versions: ./tests/run"]
fn nvrtc_is_found_by_the_loader_path() -> Result<()> {
    for (version, number) in VERSIONS {
        let machine = Isolated::new()?;
        machine.install(&hello_gpu()?, "/hello-gpu")?;
        machine.install_all(&wheel_libraries(&format!("nvrtc-{version}"))?, "/opt/nvrtc")?;
        let variables = [("LD_LIBRARY_PATH", "/opt/nvrtc")];
        compiles_with(&machine, "/hello-gpu", &variables, number, "/opt/nvrtc/")?;
    }
    Ok(())
}

/// The image is in a site-packages directory, as a wheel's native part is, beside NVIDIA's wheels.
#[test]
#[ignore = "needs NVRTC of four versions: ./tests/run"]
fn nvrtc_is_found_in_the_site_packages_around_the_image() -> Result<()> {
    for (version, number) in VERSIONS {
        let machine = Isolated::new()?;
        let site = "/home/user/env/lib/python3.12/site-packages";
        let program = format!("{site}/example/bin/hello-gpu");
        machine.install(&hello_gpu()?, &program)?;
        let wheel = format!("nvrtc-{version}");
        let place = format!("{site}/{}", wheel_library_dir(&wheel)?.display());
        machine.install_all(&wheel_libraries(&wheel)?, &place)?;
        compiles_with(&machine, &program, &[], number, &place)?;
    }
    Ok(())
}

#[test]
#[ignore = "needs NVRTC of four versions: ./tests/run"]
fn nvrtc_is_found_by_the_override_variable() -> Result<()> {
    for (version, number) in VERSIONS {
        let machine = Isolated::new()?;
        machine.install(&hello_gpu()?, "/hello-gpu")?;
        let libraries = wheel_libraries(&format!("nvrtc-{version}"))?;
        machine.install_all(&libraries, "/srv/any")?;
        let file = fs::read_dir(&libraries)?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .find(|name| name.starts_with("libnvrtc.so."))
            .ok_or("no libnvrtc.so.* in the wheel")?;
        let file = format!("/srv/any/{file}");
        compiles_with(
            &machine,
            "/hello-gpu",
            &[("GPUSTUB_NVRTC_PATH", &file)],
            number,
            &file,
        )?;
        compiles_with(
            &machine,
            "/hello-gpu",
            &[("GPUSTUB_NVRTC_PATH", "/srv/any")],
            number,
            &file,
        )?;
        let off = machine
            .run(
                "/hello-gpu",
                &[
                    JSON,
                    ("GPUSTUB_NVRTC_PATH", "off"),
                    ("LD_LIBRARY_PATH", "/srv/any"),
                ],
            )?
            .success()?;
        assert_eq!(report(&off, "nvrtc")?["available"], false, "{}", off.stderr);
    }
    Ok(())
}

/// A machine with all four versions of NVRTC, each in a directory of that name.
fn all_four() -> Result<(Isolated, String)> {
    let machine = Isolated::new()?;
    machine.install(&hello_gpu()?, "/hello-gpu")?;
    let mut path = Vec::new();
    for (version, _) in VERSIONS {
        let place = format!("/opt/nvrtc-{version}");
        machine.install_all(&wheel_libraries(&format!("nvrtc-{version}"))?, &place)?;
        path.push(place);
    }
    Ok((machine, path.join(":")))
}

#[test]
#[ignore = "needs NVRTC of four versions: ./tests/run"]
fn newest_visible_major_comes_first() -> Result<()> {
    let (machine, path) = all_four()?;
    // One soname serves 13.0 and 13.5: the loader's path decides between them.
    let variables = [("LD_LIBRARY_PATH", &path[..])];
    compiles_with(
        &machine,
        "/hello-gpu",
        &variables,
        13000,
        "/opt/nvrtc-13.0/",
    )?;
    let variables = [
        ("LD_LIBRARY_PATH", &path[..]),
        ("GPUSTUB_NVRTC_PATH", "/opt/nvrtc-11.8"),
    ];
    compiles_with(
        &machine,
        "/hello-gpu",
        &variables,
        11080,
        "/opt/nvrtc-11.8/",
    )?;
    Ok(())
}

#[test]
#[ignore = "needs NVRTC of four versions and a driver: ./tests/run"]
fn unsupported_major_comes_last_with_a_reason_in_the_report() -> Result<()> {
    let (machine, path) = all_four()?;
    machine.install_all(&component("driver-535")?, "/usr/lib/x86_64-linux-gnu")?;
    let ran = machine
        .run("/hello-gpu", &[JSON, ("LD_LIBRARY_PATH", &path)])?
        .success()?;
    let nvrtc = report(&ran, "nvrtc")?;
    assert_eq!(nvrtc["version"], 12090, "{}", ran.stderr);
    assert_eq!(
        nvrtc["path"], "/opt/nvrtc-12.9/libnvrtc.so.12",
        "{}",
        ran.stderr
    );
    let tried = nvrtc["candidates"]
        .as_array()
        .ok_or("no list of what was tried")?;
    let thirteen = tried.iter().find(|one| {
        one["name"]
            .as_str()
            .is_some_and(|what| what.contains("libnvrtc.so.13"))
    });
    let why =
        thirteen.ok_or_else(|| ran.error("the report does not name libnvrtc.so.13"))?["reason"]
            .to_string();
    assert!(why.contains("driver") && why.contains("12.2"), "{why}");
    Ok(())
}
