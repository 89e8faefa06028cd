//! Super-archives that `GpuStub.toml` declares.

use super::archives::objects;
use super::finalizers::read;
use super::{ends, repository, write};

const BUILD: [&str; 6] = [
    "archive",
    "build",
    "--manifest-archive",
    "builtins",
    "-o",
    "t.a",
];

/// A table of `GpuStub.toml`, which `sync` adds to the package.
#[test]
fn a_table_is_wired_and_built() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    write(
        directory,
        "Cargo.toml",
        "[package]\nname = \"embeds\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n",
    );
    write(directory, "src/main.rs", "fn main() {}\n");
    let table = "schema = 1\n\n[archive.builtins]\nlayers = { gfx11 = [\"gfx11/*.o\"], common = [\"common\"] }\n\
                 views = { gfx1100 = [\"gfx11\", \"common\"] }\nrequired-features = [\"gpu\"]\n";
    write(directory, "GpuStub.toml", table);
    let (_, err) = ends(1, directory, &["sync"]);
    assert!(
        err.contains("unknown feature `gpu` in `archive.builtins.required-features`"),
        "{err}"
    );
    write(
        directory,
        "GpuStub.toml",
        table.split("required-features").next().unwrap(),
    );
    ends(0, directory, &["sync"]);
    let manifest = read(directory, "Cargo.toml");
    let helper = "gpustub-build = { version = \"0.1\", features = [\"archive\"] }";
    assert!(manifest.contains(helper), "{manifest}");
    assert!(!manifest.contains("links"), "{manifest}");
    assert!(read(directory, "build.rs").contains("gpustub_build::build();"));
    assert_eq!(read(directory, "src/main.rs"), "fn main() {}\n");

    // `split` and `zstd` have `archive`.
    let plain = read(directory, "GpuStub.toml");
    let (split, compressed) = ("split = true\n", "compress = true\n");
    for (keys, written, expected) in [
        (compressed, "", "features = [\"zstd\"]"),
        (
            compressed,
            ", features = [\"zstd\"]",
            "features = [\"zstd\"]",
        ),
        (
            compressed,
            ", features = [\"archive\"]",
            "features = [\"archive\", \"zstd\"]",
        ),
        (split, "", "features = [\"split\"]"),
        (
            "split = true\ncompress = true\n",
            "",
            "features = [\"split\", \"zstd\"]",
        ),
    ] {
        let line = format!(
            "gpustub-build = {{ path = {:?}{written} }}",
            repository().join("gpustub-build")
        );
        write(directory, "Cargo.toml", &manifest.replace(helper, &line));
        write(directory, "GpuStub.toml", &format!("{plain}{keys}"));
        ends(0, directory, &["sync"]);
        let manifest = read(directory, "Cargo.toml");
        assert!(manifest.contains(expected), "{manifest}");
        write(directory, "GpuStub.toml", &plain);
        ends(0, directory, &["sync", "--check"]);
    }

    // The helper is in no registry here, so that cargo can no longer read the package.
    write(directory, "Cargo.toml", &manifest.replace(helper, ""));
    let (out, _) = ends(0, directory, &["plan"]);
    let expected = "\
embeds 0.1.0 (GpuStub.toml)
  archive.builtins: $OUT_DIR/builtins.a as GPUSTUB_ARCHIVE_BUILTINS
    view        gfx1100: gfx11, common (default)
    layer       gfx11: gfx11/*.o
    layer       common: common
";
    assert_eq!(out, expected);
    ends(0, directory, &BUILD);
    let (out, _) = ends(0, directory, &["archive", "list", "t.a"]);
    assert!(
        out.contains("gfx1100        4        4  gfx11, common (default)"),
        "{out}"
    );
    let (_, err) = ends(
        101,
        directory,
        &[
            "archive",
            "build",
            "--manifest-archive",
            "builtin",
            "-o",
            "t.a",
        ],
    );
    assert!(err.contains("did you mean `builtins`?"), "{err}");
    write(
        directory,
        "GpuStub.toml",
        &table.replace("gfx11/*.o", "gfx12/*.o"),
    );
    let (_, err) = ends(1, directory, &BUILD);
    assert!(err.contains("error[unknown-feature]"), "{err}");
    write(
        directory,
        "GpuStub.toml",
        &table
            .replace("gfx11/*.o", "gfx12/*.o")
            .replace("required-features", "# "),
    );
    let (_, err) = ends(1, directory, &BUILD);
    assert!(err.contains("`gfx12/*.o` matches no file"), "{err}");
    assert!(err.contains("--> GpuStub.toml:4:21"), "{err}");
}
