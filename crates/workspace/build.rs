//! Records the target triple, which the compiled code cannot read otherwise.

#[expect(
    clippy::disallowed_methods,
    reason = "build script of the subcommand, not of a user's package"
)]
fn main() {
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=GPUSTUB_TOOL_TARGET={target}");
    println!("cargo::rerun-if-changed=build.rs");
}
