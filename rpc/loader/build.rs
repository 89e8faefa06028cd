//! Builds the stubs that `GpuStub.toml` declares.

fn main() {
    gpustub_build::build();
}
