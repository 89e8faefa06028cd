//! The command line as people see it: every case is a file in `tests/cmd`.
//!
//! `TRYCMD=overwrite cargo test -p cargo-gpustub --test cli` rewrites what the commands print.

#[test]
fn commands() {
    trycmd::TestCases::new()
        .register_bin("cargo-gpustub", trycmd::cargo::cargo_bin!("cargo-gpustub"))
        // Neither a toolkit of this machine nor the network may decide what is printed.
        .env("CUDA_HOME", "/nonexistent")
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_TERM_COLOR", "never")
        .case("tests/cmd/*.trycmd");
}
