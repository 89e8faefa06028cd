//! Builds what `GpuStub.toml` declares.

fn main() {
    gpustub_build::build();
}
