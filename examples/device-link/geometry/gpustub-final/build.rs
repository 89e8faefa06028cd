//! Links the device code of every package that this one depends on.

fn main() {
    // Enabled by the tests. Other builds of the workspace include this package, and need no link.
    #[cfg(feature = "gpustub-link")]
    gpustub_build::build_finalizer();
}
