//! Kernels and variables of a library in host code of another: each kind, in static and in shared libraries,
//! with a toolkit whose nvcc hides them from other images and with one that does not.

use std::fmt::Write as _;

use gpustub_tests::Result;
use gpustub_tests::command::run;
use gpustub_tests::nvcc::{TOOLKIT_12, TOOLKIT_13, Toolkit, recorder};
use gpustub_tests::pair::major;
use gpustub_tests::rdc::{Library, Project};

use crate::{Record, image};

/// Kernel or variable of `alpha` that host code of `beta` uses.
struct Entity {
    /// Part of its mangled name.
    name: &'static str,
    declaration: &'static str,
    definition: &'static str,
    /// Statement in `beta`.
    used: &'static str,
    /// The runtime's record of the use.
    record: &'static str,
}

const ENTITIES: [Entity; 6] = [
    Entity {
        name: "alpha_kernel",
        declaration: "__global__ void alpha_kernel(int *p);",
        definition: "__global__ void alpha_kernel(int *p) { *p = 1; }",
        used: "alpha_kernel<<<1, 1>>>(nullptr);",
        record: "launch",
    },
    Entity {
        name: "alpha_template",
        declaration: "template <typename T> __global__ void alpha_template(T *p);",
        definition: "template <typename T> __global__ void alpha_template(T *p) { *p = 1; }\n\
                     template __global__ void alpha_template<int>(int *);",
        used: "alpha_template<int><<<1, 1>>>(nullptr);",
        record: "launch",
    },
    Entity {
        name: "alpha_device",
        declaration: "extern __device__ int alpha_device;",
        definition: "__device__ int alpha_device;",
        used: "status |= cudaMemcpyToSymbol(alpha_device, &value, sizeof value);",
        record: "copy",
    },
    Entity {
        name: "alpha_constant",
        declaration: "extern __constant__ int alpha_constant;",
        definition: "__constant__ int alpha_constant;",
        used: "status |= cudaMemcpyToSymbol(alpha_constant, &value, sizeof value);",
        record: "copy",
    },
    Entity {
        name: "alpha_managed",
        declaration: "extern __managed__ int alpha_managed;\nint managed_value(void);",
        definition: "__managed__ int alpha_managed;\nint managed_value(void) { return alpha_managed; }",
        used: "alpha_managed = value;\n    status |= managed_value() != value;",
        record: "managed",
    },
    Entity {
        name: "alpha_table",
        declaration: "namespace tables { extern __device__ int alpha_table[4]; }",
        definition: "namespace tables { __device__ int alpha_table[4]; }",
        used: "status |= cudaMemcpyToSymbol(tables::alpha_table, &value, sizeof value);",
        record: "copy",
    },
];

/// Kernels of one name that `alpha` and `beta` have each.
const INTERNAL: &str = "#include <alpha.cuh>\nstatic __global__ void static_kernel(int *p) { *p = 3; }\n\
                        namespace { __global__ void unnamed_kernel(int *p) { *p = 4; } }\n\
                        void alpha_run(void);\n";
const LAUNCHES: &str =
    "    static_kernel<<<1, 1>>>(nullptr);\n    unnamed_kernel<<<1, 1>>>(nullptr);\n";

/// `tip` calls `beta`, whose host code uses each entity of `alpha`.
fn project(toolkit: Toolkit) -> Result<Project> {
    let project = Project::new(toolkit)?;
    for (name, requires) in [("alpha", &[][..]), ("beta", &["alpha"])] {
        project.library(Library::new(name, requires))?;
        let version = format!("header-version = \"{}\"", major(toolkit.version)?);
        let manifest = format!("{name}/GpuStub.toml");
        project.edit(&manifest, "header-version = \"13\"", &version)?;
    }
    // Shared libraries cannot call stubs that are hidden in the program.
    project.edit("alpha/GpuStub.toml", "provide = true", "type = \"shared\"")?;
    add(&project, "alpha", "include-dirs = [\"include\"]")?;

    let mut header = String::new();
    let mut alpha = INTERNAL.to_owned();
    let mut beta = format!("{INTERNAL}extern \"C\" int beta_run(void) {{\n    alpha_run();\n");
    beta.push_str("    int status = 0, value = 7;\n");
    for entity in &ENTITIES {
        writeln!(header, "{}", entity.declaration)?;
        writeln!(alpha, "{}", entity.definition)?;
        writeln!(beta, "    {}", entity.used)?;
    }
    writeln!(alpha, "void alpha_run(void) {{\n{LAUNCHES}}}")?;
    writeln!(
        beta,
        "{LAUNCHES}    return status | cudaGetLastError();\n}}"
    )?;
    project.write("alpha/include/alpha.cuh", &header)?;
    project.write("alpha/cuda/alpha.cu", &alpha)?;
    project.write("beta/cuda/beta.cu", &beta)?;
    project.edit(
        "beta/src/lib.rs",
        "    alpha::run() + unsafe",
        "    use alpha as _;\n    unsafe",
    )?;
    let needs = "[dependencies]\nbeta = { path = \"../beta\" }\n";
    let main = "fn main() {\n    assert_eq!(beta::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    Ok(project)
}

/// Runs the program with a recording runtime. Each entity has to be registered once, in the image `alpha`, and
/// used by that address; each internal kernel belongs to its own image.
fn expect_uses(project: &Project, toolkit: Toolkit, alpha: &str, beta: &str) -> Result<()> {
    let library = recorder(&project.path("recorder"), major(toolkit.version)?)?;
    let record = Record::run(&mut project.cargo(&["run", "-q", "-p", "tip"]), &library)?;
    let mut registrations = Vec::new();
    for kind in ["function", "variable", "managed"] {
        registrations.extend(record.words(kind));
    }
    for entity in &ENTITIES {
        let mut addresses = Vec::new();
        for words in &registrations {
            if words[2].contains(entity.name) {
                addresses.push(words[1]);
            }
        }
        let is_used = addresses.len() == 1
            && image(addresses[0]) == alpha
            && record
                .words(entity.record)
                .iter()
                .any(|words| words.contains(&addresses[0]));
        if !is_used {
            let name = entity.name;
            return Err(record
                .ran
                .error(&format!("{name} in {alpha}: {addresses:?}")));
        }
    }
    for kernel in ["static_kernel", "unnamed_kernel"] {
        let mut images = Vec::new();
        for words in &registrations {
            if words[2].contains(kernel) {
                images.push(image(words[1]));
            }
        }
        images.sort();
        assert_eq!(images, [alpha, beta], "{kernel}");
    }
    assert!(record.words("UNKNOWN").is_empty(), "{:#?}", record.lines);
    Ok(())
}

/// Adds a line to the table of a library.
fn add(project: &Project, library: &str, line: &str) -> Result<()> {
    let table = format!("[device-link.{library}]\n");
    let manifest = format!("{library}/GpuStub.toml");
    project.edit(&manifest, &table, &format!("{table}{line}\n"))
}

/// Both libraries static, `alpha` shared, both shared.
fn entities_are_used(toolkit: Toolkit) -> Result<Project> {
    let project = project(toolkit)?;
    project.build()?;
    expect_uses(&project, toolkit, "tip", "tip")?;
    for (library, beta) in [("alpha", "tip"), ("beta", "libbeta.so")] {
        add(&project, library, "type = \"shared\"")?;
        project.build()?;
        expect_uses(&project, toolkit, "libalpha.so", beta)?;
    }
    Ok(project)
}

#[test]
#[ignore = "needs CUDA's compiler of 12: ./tests/run --all"]
fn heavy_kernels_and_variables_of_another_library_with_toolkit_12() -> Result<()> {
    entities_are_used(TOOLKIT_12)?;
    Ok(())
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn kernels_and_variables_of_another_library() -> Result<()> {
    let project = entities_are_used(TOOLKIT_13)?;

    // The option of a table is stronger; the error names the value that links.
    let hidden = "compile-options = [\"--device-entity-has-hidden-visibility=true\"]";
    add(&project, "alpha", hidden)?;
    let refused = project.refused(&["build", "-p", "beta"])?;
    expect_parts(
        &refused,
        &[
            "hidden symbol",
            "help: nvcc hides kernels and variables from host code of other shared libraries since 13.0",
            "`compile-options = [\"--device-entity-has-hidden-visibility=false\"]`",
        ],
    );
    // A variable is stronger than the option of gpustub.
    project.edit("alpha/GpuStub.toml", &format!("{hidden}\n"), "")?;
    let value = "-device-entity-has-hidden-visibility=true";
    let mut build = project.cargo(&["build", "-p", "beta"]);
    let ran = run(build.env("NVCC_APPEND_FLAGS", value))?;
    assert!(!ran.status.success(), "{}", ran.stderr);
    let help = format!("help: the variable NVCC_APPEND_FLAGS is `{value}`, and nvcc hides");
    expect_parts(&ran.stderr, &["hidden symbol", &help]);
    Ok(())
}

#[track_caller]
fn expect_parts(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing from\n{text}");
    }
}
