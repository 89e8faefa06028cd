//! The store of outputs in the target directory: builds at the same time, damage, and no place for it.

use std::fs;
use std::process::Stdio;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::rdc::Project;

use crate::counts::{BUILD, CLIPPY, TWIN, counted, two_libraries};

/// Builds with a command, and returns the numbers of compilations and device links.
fn built(project: &Project, command: &[&str]) -> Result<(usize, usize)> {
    succeed(&mut project.cargo(command))?;
    counted(project)
}

/// Cargo runs one build of a profile at a time: the two have different profiles.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_builds_at_the_same_time_compile_once() -> Result<()> {
    let project = two_libraries()?;
    succeed(&mut project.gpustub(&["sync", "--workspace"])?)?;
    assert_eq!(built(&project, TWIN)?, (2, 1));
    assert_eq!(built(&project, BUILD)?, (0, 0));
    for number in 0..3 {
        let header = format!("#pragma once\n#define NUMBER {number}\n");
        project.write("base/include/base.cuh", &header)?;
        let source = format!("#include <base.cuh>\n__device__ int more() {{ return {number}; }}\n");
        project.write("base/cuda/more.cu", &source)?;
        let mut processes = Vec::new();
        for command in [TWIN, BUILD] {
            let mut command = project.cargo(command);
            processes.push(command.stderr(Stdio::piped()).spawn()?);
        }
        for process in processes {
            let output = process.wait_with_output()?;
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{text}");
        }
        assert_eq!(counted(&project)?, (3, 1));
    }
    Ok(())
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn a_damaged_store_is_made_again() -> Result<()> {
    let project = two_libraries()?;
    succeed(&mut project.gpustub(&["sync", "--workspace"])?)?;
    assert_eq!(built(&project, BUILD)?, (2, 1));
    let mut damaged = 0;
    for step in fs::read_dir(project.target().join("gpustub-store"))?.flatten() {
        for entry in fs::read_dir(step.path()).into_iter().flatten().flatten() {
            let output = entry.path().join("0");
            let bytes = fs::read(&output)?;
            // OUT_DIR has the same file.
            fs::remove_file(&output)?;
            fs::write(&output, &bytes[..bytes.len() / 2])?;
            damaged += 1;
        }
    }
    assert_eq!(damaged, 3);
    assert_eq!(built(&project, CLIPPY)?, (2, 1));
    assert_eq!(built(&project, TWIN)?, (0, 0));
    Ok(())
}

/// A file in its place: a test that runs as root may write into any directory.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_without_a_place_for_the_store_each_command_compiles() -> Result<()> {
    let project = two_libraries()?;
    succeed(&mut project.gpustub(&["sync", "--workspace"])?)?;
    fs::write(project.target().join("gpustub-store"), "")?;
    assert_eq!(built(&project, BUILD)?, (2, 1));
    assert_eq!(built(&project, CLIPPY)?, (2, 1));
    assert_eq!(built(&project, CLIPPY)?, (0, 0));
    Ok(())
}
