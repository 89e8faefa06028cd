//! README of `hello-gpu`: its output on three machines.

use std::fs;

use gpustub_tests::Result;
use gpustub_tests::components::{component, wheel_libraries};
use gpustub_tests::isolated::Isolated;
use gpustub_tests::repository;

use super::hello_gpu;

const PAGE: &str = "examples/hello-gpu/README.md";

/// A machine, as the page describes it in a comment of the command.
struct Screen {
    comment: &'static str,
    driver: Option<&'static str>,
    toolkit: Option<&'static str>,
}

const SCREENS: [Screen; 3] = [
    Screen {
        comment: "driver 550, CUDA 12.9",
        driver: Some("driver-550"),
        toolkit: Some("12.9"),
    },
    Screen {
        comment: "CUDA 13.0, no driver",
        driver: None,
        toolkit: Some("13.0"),
    },
    Screen {
        comment: "without GPU software",
        driver: None,
        toolkit: None,
    },
];

impl Screen {
    fn output(&self) -> Result<String> {
        let machine = Isolated::new()?;
        machine.install(&hello_gpu()?, "/hello-gpu")?;
        if let Some(driver) = self.driver {
            machine.install_all(&component(driver)?, "/usr/lib/x86_64-linux-gnu")?;
        }
        if let Some(version) = self.toolkit {
            for library in ["cudart", "nvrtc"] {
                let libraries = wheel_libraries(&format!("{library}-{version}"))?;
                machine.install_all(&libraries, "/usr/local/cuda/lib64")?;
            }
        }
        Ok(machine.run("/hello-gpu", &[])?.success()?.stdout)
    }
}

/// `BLESS=1` writes the outputs into the page.
#[test]
#[ignore = "needs NVIDIA's libraries and user namespaces: ./tests/run"]
fn hello_gpu_prints_what_its_readme_shows() -> Result<()> {
    let path = repository().join(PAGE);
    let page = fs::read_to_string(&path)?;
    let mut written = page.clone();
    for screen in SCREENS {
        let prompt = format!("$ ./hello-gpu # {}\n", screen.comment);
        let (before, rest) = written
            .split_once(&prompt)
            .ok_or_else(|| format!("{PAGE} has no {prompt}"))?;
        let (_, after) = rest.split_once("```").ok_or("an open block")?;
        written = format!("{before}{prompt}{}```{after}", screen.output()?);
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "a test reads its own environment"
    )]
    let bless = std::env::var_os("BLESS").is_some();
    if bless {
        fs::write(&path, &written)?;
    } else {
        assert_eq!(page, written);
    }
    Ok(())
}
