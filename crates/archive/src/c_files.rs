//! The files of `c`.

/// Files for C and C++ programs: headers, pkg-config file and CMake package, each with its path below an installation
/// prefix. A build script that compiles C or C++ code writes the headers to `OUT_DIR`:
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// let out_dir = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
/// std::fs::create_dir_all(out_dir.join("include"))?;
/// for (path, text) in gpustub_archive::C_FILES {
///     if path.starts_with("include/") {
///         std::fs::write(out_dir.join(path), text)?;
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub const C_FILES: [(&str, &str); 6] = [
    (
        "include/gpustub_archive.h",
        include_str!("../c/gpustub_archive.h"),
    ),
    (
        "include/gpustub_archive_verify.h",
        include_str!("../c/gpustub_archive_verify.h"),
    ),
    (
        "include/gpustub_archive_zstd.h",
        include_str!("../c/gpustub_archive_zstd.h"),
    ),
    (
        "share/pkgconfig/gpustub-archive.pc",
        include_str!("../c/gpustub-archive.pc"),
    ),
    (
        "share/cmake/gpustub-archive/gpustub-archive-config.cmake",
        include_str!("../c/gpustub-archive-config.cmake"),
    ),
    (
        "share/cmake/gpustub-archive/gpustub-archive-config-version.cmake",
        include_str!("../c/gpustub-archive-config-version.cmake"),
    ),
];
