//! Links the device code of every package that this one depends on.

fn main() {
    gpustub_build::build_finalizer();
}
