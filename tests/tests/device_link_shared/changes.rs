//! Incremental builds after changes, and without any.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};

use crate::{Project, TRIPLE, alone};

/// Lists the outputs below `directory` by path.
fn outputs(directory: &Path, files: &mut Vec<(PathBuf, SystemTime)>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.to_string_lossy().into_owned();
        if path.is_symlink() {
        } else if path.is_dir() {
            outputs(&path, files)?;
        } else if name.contains("device-link/")
            && [".o", ".a", ".so"].iter().any(|end| name.ends_with(end))
        {
            let time = fs::metadata(&path)?.modified()?;
            files.push((path, time));
        }
    }
    Ok(())
}

/// Sorted names of the outputs that a build has rewritten.
fn rebuilt(project: &Project) -> Result<Vec<String>> {
    let directory = project.target().join(TRIPLE).join("debug/build");
    let mut before = Vec::new();
    // Before the very first build the directory does not exist.
    if directory.exists() {
        outputs(&directory, &mut before)?;
    }
    succeed(&mut project.cargo(&["build", "-p", "one", "-p", "many"]))?;
    let mut after = Vec::new();
    outputs(&directory, &mut after)?;
    let mut names: Vec<String> = after
        .into_iter()
        .filter(|file| !before.contains(file))
        .filter_map(|(path, _)| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Then `two`, whose stubs the shared libraries do not use.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_only_changed_shared_libraries_are_rebuilt() -> Result<()> {
    let _alone = alone();
    let project = Project::new("workspace", "changing")?;
    project.sync()?;
    rebuilt(&project)?;
    assert_eq!(rebuilt(&project)?, [""; 0]);

    // Every build script runs, and finds its outputs up to date.
    project.append("base/GpuStub.toml", "# more\n")?;
    assert_eq!(rebuilt(&project)?, [""; 0]);

    project.append("volume/cuda/volume.cu", "// more\n")?;
    let outputs_of_volume = [
        "cuda-volume.cu.o",
        "device_link.o", // in `many`
        "device_link.o", // in the final
        "libgpustub_link_gpustub_final_many.a",
        "libgpustub_rdc_volume_volume.a",
        "libvolume.so",
        "libvolume_final.so",
    ];
    assert_eq!(rebuilt(&project)?, outputs_of_volume);

    let stub = "schema = 1\n[stub.cudart]\nheader-version = \"13\"\n";
    project.append("two/GpuStub.toml", stub)?;
    // Cargo does not wait for a file that did not exist.
    project.append("two/Cargo.toml", "\n")?;
    let ran = run(&mut project.cargo(&["build", "-p", "two"]))?;
    let reported = "is shared and calls the CUDA runtime itself";
    if ran.status.success() || !ran.stderr.contains(reported) {
        return Err(ran.error("own stubs and shared libraries without them"));
    }
    succeed(&mut project.cargo(&["build", "-p", "one"]))?;
    Ok(())
}
