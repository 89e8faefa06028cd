//! Compiles the device's program with the installed header. For a GPU, nvcc or hipcc would.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=../device.c");
    println!("cargo::rerun-if-changed=../device.h");
    // Uses only the header: the server is a crate.
    let installed = pkg_config::Config::new()
        .cargo_metadata(false)
        .probe("gpurpc")?;
    let mut device = cc::Build::new();
    device
        .file("../device.c")
        .includes(installed.include_paths)
        .std("c11");
    device.try_compile("device")?;
    Ok(())
}
