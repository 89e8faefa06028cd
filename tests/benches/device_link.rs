//! Relocatable CUDA code under cargo, compared with a Makefile that runs nvcc in the same ways, and
//! compiles a program in C or in Rust: `cargo bench -p gpustub-tests --bench device_link`. Prints
//! figures of one run; asserts no time. `BENCHMARKS.md` has the last results.

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
DEVICE = tip.o libb.a libd.a

program: main.c $(DEVICE)
\tcc main.c $(DEVICE) $(CUDART) -lstdc++ -o $@
rust-program: main.rs $(DEVICE)
\trustc -g main.rs $(addprefix -Clink-arg=,$(DEVICE) $(CUDART) -lstdc++) -o $@
tip.o: libb.a libd.a
\t$(LINK) libb.a libd.a -o tip.o
%.o: %.cu
\t$(COMPILE) -MD -MF $*.d $< -o $@
";

fn main() -> Result<()> {
    let project = project()?;
    let toolkit = TOOLKIT_13.root()?;
    let makes = [("make, C", "program"), ("make, Rust", "rust-program")];
    for (_, target) in makes {
        makefile(&project, &project.path(target))?;
    }
    succeed(&mut project.gpustub(&["sync"])?)?;
    let cargo = || {
        let mut cargo = project.cargo(&["build", "-j2"]);
        cargo.env("CUDA_HOME", &toolkit);
        cargo
    };
    let make = |target: &str| {
        let mut make = Command::new("make");
        make.current_dir(project.path(target)).args(["-j2", target]);
        make
    };
    let mut sides = vec![("cargo", project.root(), cargo())];
    for (name, target) in makes {
        sides.push((name, project.path(target), make(target)));
    }
    for (_, _, command) in &mut sides {
        succeed(command)?;
    }

    println!(
        "20 sources in two packages, one device link, one program, -j2; {RUNS} runs in turn: \
         median (least) in seconds, and cargo's ratios"
    );
    for (what, sources) in [
        ("all sources changed", SOURCES),
        ("one source changed", 1),
        ("nothing changed", 0),
    ] {
        let mut times = vec![Vec::new(); sides.len()];
        for _ in 0..RUNS {
            for ((_, root, command), times) in sides.iter_mut().zip(&mut times) {
                change(root, sources)?;
                let start = Instant::now();
                succeed(command)?;
                times.push(start.elapsed().as_secs_f64());
            }
        }
        let figures = times.iter_mut().map(|times| {
            times.sort_by(f64::total_cmp);
            (times[times.len() / 2], times[0])
        });
        let figures: Vec<(f64, f64)> = figures.collect();
        let cargo = figures[0];
        print!("{what:20}");
        for ((name, ..), (median, least)) in sides.iter().zip(figures) {
            let ratios = (cargo.0 / median, cargo.1 / least);
            print!("  {name} {median:.2} ({least:.2})");
            if *name != "cargo" {
                print!(" {:.2} ({:.2})", ratios.0, ratios.1);
            }
        }
        println!();
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
    let main = "extern \"C\" {\n    fn b_run() -> i32;\n    fn d_run() -> i32;\n}\n\
                fn main() {\n    unsafe { b_run() + d_run() };\n}\n";
    fs::write(to.join("main.rs"), main)?;
    Ok(fs::write(to.join("Makefile"), text)?)
}

/// Changes the first sources of each package: only `b.cu` if the count is one. The helper compiles a text once.
fn change(root: &Path, sources: usize) -> Result<()> {
    let packages: &[&str] = if sources == 1 { &["b"] } else { &PACKAGES };
    for name in packages {
        let numbered = (1..sources).map(|number| number.to_string());
        let last = (sources > 0).then(|| (*name).to_owned());
        for source in numbered.chain(last) {
            let path = root.join(format!("{name}/cuda/{source}.cu"));
            let text = fs::read_to_string(&path)?;
            fs::write(&path, text + "// changed\n")?;
        }
    }
    Ok(())
}
