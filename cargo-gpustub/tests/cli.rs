//! Command lines and their output: every case is a file in `tests/cmd`.
//!
//! `TRYCMD=overwrite cargo test -p cargo-gpustub --test cli` rewrites the outputs.

fn cases() -> trycmd::TestCases {
    let cases = trycmd::TestCases::new();
    cases
        .register_bin("cargo-gpustub", trycmd::cargo::cargo_bin!("cargo-gpustub"))
        // The output must not depend on a toolkit of this machine, on the network, or on the CI service.
        .env("CUDA_HOME", "/nonexistent")
        .env("CARGO_NET_OFFLINE", "true")
        .env("GITHUB_WORKSPACE", "")
        .env("CARGO_TERM_COLOR", "never");
    cases
}

#[test]
fn commands() {
    cases().case("tests/cmd/*.trycmd");
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn commands_that_read_headers() {
    cases().case("tests/cmd/headers/*.trycmd");
}
