//! Relocatable CUDA code under cargo, compared with a Makefile that runs nvcc in the same ways:
//! `cargo bench -p gpustub-tests --bench device_link`. Prints figures of one run; asserts no time.
//! `BENCHMARKS.md` has the last results.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::nvcc::TOOLKIT_13;
use gpustub_tests::rdc::{Library, Project};

const RUNS: usize = 5;

/// Packages with RDC libraries, and the number of sources in each.
const PACKAGES: [&str; 2] = ["b", "d"];
const SOURCES: usize = 10;

/// Options that gpustub-build passes to nvcc in a development build, except `--keep`.
const RULES: &str = "\
COMPILE = $(NVCC) -rdc=true -c -Xcompiler -fPIC -O0 -gencode arch=compute_80,code=sm_80
LINK = $(NVCC) -dlink -Xcompiler -fPIC -gencode arch=compute_80,code=sm_80

program: main.c tip.o libb.a libd.a
\tcc main.c tip.o libb.a libd.a $(CUDART) -lstdc++ -o program
tip.o: libb.a libd.a
\t$(LINK) libb.a libd.a -o tip.o
%.o: %.cu
\t$(COMPILE) -MD -MF $*.d $< -o $@
";

fn main() -> Result<()> {
    let project = project()?;
    let make = project.path("make");
    makefile(&project, &make)?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    let toolkit = TOOLKIT_13.root()?;
    let cargo = || {
        let mut cargo = project.cargo(&["build", "-j2"]);
        cargo.env("CUDA_HOME", &toolkit);
        cargo
    };
    let by_make = || {
        let mut command = Command::new("make");
        command.current_dir(&make).arg("-j2");
        command
    };
    succeed(&mut cargo())?;
    succeed(&mut by_make())?;

    println!("20 sources in two packages, one device link, one program, -j2; {RUNS} runs in turn");
    for (what, sources) in [
        ("all sources changed", SOURCES),
        ("one source changed", 1),
        ("nothing changed", 0),
    ] {
        let mut times = [const { Vec::new() }; 2];
        for _ in 0..RUNS {
            let mut contestants = [cargo(), by_make()];
            for (side, root) in [(0, project.root()), (1, make.clone())] {
                touch(&root, sources)?;
                let start = Instant::now();
                succeed(&mut contestants[side])?;
                times[side].push(start.elapsed().as_secs_f64());
            }
        }
        let [cargo, make] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            (times[0], times[times.len() / 2])
        });
        println!(
            "{what:20} cargo {:6.2} s (median {:6.2})   make {:6.2} s (median {:6.2})   ratio {:5.2} ({:.2} of medians)",
            cargo.0,
            cargo.1,
            make.0,
            make.1,
            cargo.0 / make.0,
            cargo.1 / make.1
        );
    }
    Ok(())
}

fn project() -> Result<Project> {
    let project = Project::new(TOOLKIT_13)?;
    for name in PACKAGES {
        project.library(Library::new(name, &[]))?;
        for number in 1..SOURCES {
            let text = format!("__device__ int {name}{number}() {{ return {number}; }}\n");
            project.write(&format!("{name}/cuda/{number}.cu"), &text)?;
        }
    }
    project.edit("d/GpuStub.toml", "provide = true", "provide = false")?;
    project.package(
        "tip",
        "[dependencies]\nb = { path = \"../b\" }\nd = { path = \"../d\" }\n",
        &[(
            "src/main.rs",
            "fn main() {\n    b::run();\n    d::run();\n}\n",
        )],
    )?;
    Ok(project)
}

/// The same sources with a Makefile.
fn makefile(project: &Project, to: &Path) -> Result<()> {
    let toolkit = TOOLKIT_13.root()?;
    let mut text = format!(
        "NVCC = {}\nCUDART = {}\n{RULES}",
        toolkit.join("bin/nvcc").display(),
        toolkit.join("lib/libcudart.so.13").display()
    );
    for name in PACKAGES {
        let mut copy = Command::new("cp");
        fs::create_dir_all(to.join(name))?;
        copy.arg("-r").arg(project.root().join(name).join("cuda"));
        succeed(copy.arg(to.join(name)))?;
        let numbered = (1..SOURCES).map(|number| number.to_string());
        let objects: Vec<_> = numbered
            .chain([name.to_owned()])
            .map(|source| format!("{name}/cuda/{source}.o"))
            .collect();
        let objects = objects.join(" ");
        writeln!(
            text,
            "lib{name}.a: {objects}\n\trm -f $@ && ar rcsD $@ {objects}"
        )?;
    }
    let main = "int b_run(void), d_run(void);\nint main(void) { return b_run() + d_run(); }\n";
    fs::write(to.join("main.c"), main)?;
    Ok(fs::write(to.join("Makefile"), text)?)
}

/// Rewrites the first sources of each package: only `b.cu` if the count is one.
fn touch(root: &Path, sources: usize) -> Result<()> {
    let packages: &[&str] = if sources == 1 { &["b"] } else { &PACKAGES };
    for name in packages {
        let numbered = (1..sources).map(|number| number.to_string());
        let last = (sources > 0).then(|| (*name).to_owned());
        for source in numbered.chain(last) {
            let path = root.join(format!("{name}/cuda/{source}.cu"));
            let text = fs::read(&path)?;
            fs::write(&path, text)?;
        }
    }
    Ok(())
}
