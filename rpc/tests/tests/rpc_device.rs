//! Code of devices: `gpurpc_client.h` and `gpurpc.hpp`, compiled for GPUs, and typed calls of host threads.

use std::path::{Path, PathBuf};
use std::process::Command;

use gpurpc_tests::cargo::capi;
use gpurpc_tests::command::{run, succeed};
use gpurpc_tests::compilers::Clang;
use gpurpc_tests::compilers::{TOOLKIT_12, TOOLKIT_13, Toolkit};
use gpurpc_tests::{Result, scratch, workspace};

const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Releases of LLVM with different clients.
const CLIENTS: [u32; 2] = [20, 23];

/// Sources for devices, and their languages.
const SOURCES: [(&str, [&str; 3]); 3] = [
    ("rpc-device.c", ["-x", "c", "-std=c11"]),
    ("rpc-device.c", ["-x", "c++", "-std=c++17"]),
    ("rpc-typed-device.cpp", ["-x", "c++", "-std=c++17"]),
];

fn headers() -> PathBuf {
    workspace().join("capi/include")
}

fn program(name: &str) -> PathBuf {
    workspace().join("tests/programs").join(name)
}

/// Target with its machine, the version of PTX, and the code of a warp's ballot.
type Machine = (&'static [&'static str], Option<&'static str>, &'static str);

const MACHINES: &[Machine] = &[
    (
        &["nvptx64-nvidia-cuda", "-march=sm_70"],
        Some("+ptx63"),
        "vote.sync.ballot",
    ),
    // clang 22 accepts no older version for it.
    (
        &["nvptx64-nvidia-cuda", "-march=sm_90"],
        Some("+ptx78"),
        "vote.sync.ballot",
    ),
    (&["amdgcn-amd-amdhsa", "-mcpu=gfx90a"], None, "v_cmp_ne_u32"),
    (
        &["amdgcn-amd-amdhsa", "-mcpu=gfx1100"],
        None,
        "v_cmp_ne_u32",
    ),
    (&["x86_64-linux-gnu"], None, "lock"),
];
/// Supported with lanes by clang since 22.
const SPIRV: &[Machine] = &[(&["spirv64"], None, "OpGroupNonUniformBallot")];

/// Command that compiles a source for a machine. `first` are arguments before it.
fn compile_for(
    clang: Clang,
    source: &str,
    first: &[&str],
    words: &[&str],
    ptx: Option<&str>,
    out: &Path,
) -> Result<Command> {
    let [target, machine @ ..] = words else {
        return Err("a machine without a target".into());
    };
    let mut compile = clang.command()?;
    compile.args(first);
    compile.arg(format!("--target={target}")).args(machine);
    if let Some(ptx) = ptx {
        compile.args(["-Xclang", "-target-feature", "-Xclang", ptx]);
    }
    compile.args(["-nogpulib", "-ffreestanding", "-fconvergent-functions"]);
    compile.args(["-O2", "-S", "-I"]).arg(headers());
    compile.arg(program(source)).arg("-o").arg(out);
    Ok(compile)
}

/// Errors of a compiler that refuses its input.
fn errors(compile: &mut Command) -> Result<Vec<String>> {
    let refused = run(compile)?;
    if refused.status.success() {
        return Err(refused.error("an error"));
    }
    let lines = refused.stderr.lines();
    let errors = lines.filter(|line| line.contains("error: "));
    Ok(errors.map(str::to_owned).collect())
}

/// A waiting lane sleeps where the instruction exists (PTX 6.3, sm_70), as in LLVM's client. Without the flag for that
/// version, the error says which it is.
fn waits_as_the_machine_can(clang: Clang) -> Result<()> {
    let dir = scratch()?;
    let out = dir.path().join("out.s");
    let command = |machine, ptx| {
        let words = ["nvptx64-nvidia-cuda", machine];
        compile_for(clang, "rpc-device.c", &[], &words, ptx, &out)
    };
    for (machine, sleeps) in [("-march=sm_60", false), ("-march=sm_70", true)] {
        succeed(&mut command(machine, Some("+ptx63"))?)?;
        let code = std::fs::read_to_string(&out)?;
        assert_eq!(code.contains("nanosleep.u32"), sleeps, "{machine}: {code}");
    }
    for (machine, ptx) in [
        ("-march=sm_60", None),
        // Lacks `activemask`.
        ("-march=sm_60", Some("+ptx61")),
        ("-march=sm_70", None),
        // Lacks `nanosleep`.
        ("-march=sm_70", Some("+ptx62")),
    ] {
        let errors = errors(&mut command(machine, ptx)?)?;
        let expected = "-Xclang -target-feature -Xclang +ptx63";
        assert!(
            errors.iter().any(|error| error.contains(expected)),
            "{clang:?} {machine} {ptx:?}: {errors:?}"
        );
    }
    Ok(())
}

/// Compilers that would generate wrong code are refused. They are not installed: their numbers are defined instead.
#[test]
#[ignore = "needs clang 19: ./tests/run"]
fn old_compilers_are_refused() -> Result<()> {
    let dir = scratch()?;
    let out = dir.path().join("out.s");
    let older = [
        "-Wno-builtin-macro-redefined",
        "-U__clang_major__",
        "-D__clang_major__=18",
    ];
    for machine in [
        ["nvptx64-nvidia-cuda", "-march=sm_70"],
        ["amdgcn-amd-amdhsa", "-mcpu=gfx90a"],
    ] {
        let clang = Clang::System(19);
        let mut compile = compile_for(clang, "rpc-device.c", &older, &machine, None, &out)?;
        let errors = errors(&mut compile)?;
        let expected = "clang 19 or newer is required for device code in C and C++";
        assert!(errors[0].contains(expected), "{machine:?}: {errors:?}");
    }
    let mut nvcc = Command::new("gcc");
    nvcc.args(["-D__NVCC__", "-D__CUDACC__", "-D__CUDACC_VER_MAJOR__=9"]);
    nvcc.args(["-fsyntax-only", "-I"]).arg(headers());
    let errors = errors(nvcc.arg(headers().join("gpurpc_client.h")))?;
    let expected = "CUDA 10 or newer is required";
    assert!(errors[0].contains(expected), "{errors:?}");
    Ok(())
}

#[test]
#[ignore = "needs clang 19: ./tests/run"]
fn clang_waits_as_the_machine_can() -> Result<()> {
    waits_as_the_machine_can(Clang::System(19))
}

fn compiles_for(clang: Clang, machines: &[Machine]) -> Result<()> {
    let dir = scratch()?;
    for (words, ptx, sync) in machines {
        for ((source, language), llvm) in SOURCES.into_iter().zip(CLIENTS.into_iter().cycle()) {
            let out = dir.path().join("out.s");
            let release = format!("-DGPURPC_CLIENT_LLVM={llvm}");
            let first = [&language[..], &STRICT, &[&release]].concat();
            succeed(&mut compile_for(clang, source, &first, words, *ptx, &out)?)?;
            let code = std::fs::read_to_string(&out)?;
            assert!(code.contains(sync), "{clang:?} {words:?} {source}: {code}");
            // Lanes that call alone do so inside of the loop over them: behind it, all would call at once.
            if words[0].starts_with("nvptx") || words[0].starts_with("amdgcn") {
                let (_, report) = code
                    .split_once("-- Begin function report")
                    .ok_or("no function")?;
                assert!(
                    report.contains("Parent Loop BB"),
                    "{clang:?} {words:?} {report}"
                );
            }
            // A doorbell of LLVM 23.
            let rings = code.contains("sendmsg(MSG_INTERRUPT)");
            assert_eq!(
                rings,
                llvm == 23 && words[0].starts_with("amdgcn"),
                "{code}"
            );
            std::fs::remove_file(&out)?;
        }
    }
    Ok(())
}

/// Compiles as a CUDA and as a HIP compiler, without the headers of either.
fn compiles_as_cuda_and_hip(clang: Clang) -> Result<()> {
    let dir = scratch()?;
    let cuda = ["cuda", "--cuda-gpu-arch=sm_70", "-nocudainc", "-nocudalib"];
    let hip = ["hip", "--offload-arch=gfx90a", "-nogpuinc", "-nogpulib"];
    // Active lanes are a ballot too, so there are more; clang 23 has some in AMD's compares.
    let (cuda, hip) = (
        (cuda, &["@llvm.nvvm.vote.ballot.sync"][..]),
        (hip, &["@llvm.amdgcn.icmp", "@llvm.amdgcn.ballot"][..]),
    );
    let sources = ["rpc-device.c", "rpc-typed-device.cpp"];
    for (source, (words, ballots)) in sources
        .into_iter()
        .flat_map(|one| [(one, cuda), (one, hip)])
    {
        let out = dir.path().join("out.ll");
        let mut compile = clang.command()?;
        compile.arg("-x").args(words).args(STRICT);
        compile.args(["--cuda-device-only", "-std=c++17", "-fgpu-rdc"]);
        if words == cuda.0 {
            compile.args(["-Xclang", "-target-feature", "-Xclang", "+ptx63"]);
        }
        compile
            .args(["-O2", "-S", "-emit-llvm", "-I"])
            .arg(headers());
        succeed(compile.arg(program(source)).arg("-o").arg(&out))?;
        let code = std::fs::read_to_string(&out)?;
        let found: usize = ballots.iter().map(|name| code.matches(name).count()).sum();
        assert!(found > 3, "{clang:?} {words:?} {source}: {code}");
    }
    Ok(())
}

#[test]
#[ignore = "needs clang 19: ./tests/run"]
fn clang_compiles_the_client_for_devices() -> Result<()> {
    compiles_for(Clang::System(19), MACHINES)
}

#[test]
#[ignore = "needs clang 19: ./tests/run"]
fn clang_compiles_the_client_as_cuda_and_hip() -> Result<()> {
    compiles_as_cuda_and_hip(Clang::System(19))
}

#[test]
#[ignore = "needs clang 22: ./tests/run --all"]
fn heavy_clang_22_compiles_the_client() -> Result<()> {
    compiles_for(Clang::Component(22), MACHINES)?;
    compiles_for(Clang::Component(22), SPIRV)?;
    compiles_as_cuda_and_hip(Clang::Component(22))
}

#[test]
#[ignore = "needs clang 23 of a suite that moves on: ./tests/run --all"]
fn heavy_clang_23_compiles_the_client() -> Result<()> {
    compiles_for(Clang::Component(23), MACHINES)?;
    compiles_for(Clang::Component(23), SPIRV)?;
    compiles_as_cuda_and_hip(Clang::Component(23))
}

/// Compiles the headers for each of these architectures.
fn nvcc_compiles(toolkit: &Toolkit, machines: &[&str]) -> Result<()> {
    let dir = scratch()?;
    let copy = dir.path().join("device.cu");
    for (source, _) in &SOURCES[1..] {
        std::fs::copy(program(source), &copy)?;
        for (machine, llvm) in machines.iter().zip(CLIENTS.into_iter().cycle()) {
            nvcc_compiles_one(toolkit, &copy, machine, llvm)?;
        }
    }
    Ok(())
}

fn nvcc_compiles_one(toolkit: &Toolkit, source: &Path, machine: &str, llvm: u32) -> Result<()> {
    let mut compile = toolkit.nvcc()?;
    compile.args([machine, "-std=c++17", "-rdc=true", "-cubin"]);
    compile
        .args(["-Werror", "all-warnings", "-I"])
        .arg(headers());
    compile.arg(format!("-DGPURPC_CLIENT_LLVM={llvm}"));
    compile.arg("-o").arg(source.with_extension("cubin"));
    succeed(compile.arg(source)).map(drop)
}

#[test]
#[ignore = "needs nvcc 13: ./tests/run"]
fn nvcc_compiles_the_client() -> Result<()> {
    nvcc_compiles(&TOOLKIT_13, &["-arch=sm_75", "-arch=sm_90"])
}

#[test]
#[ignore = "needs nvcc 12: ./tests/run --all"]
fn heavy_nvcc_12_compiles_the_client() -> Result<()> {
    nvcc_compiles(&TOOLKIT_12, &["-arch=sm_60", "-arch=sm_70", "-arch=sm_90"])
}

/// Library of the C interface.
fn library() -> Result<PathBuf> {
    Ok(capi()?.join("libgpurpc_capi.a"))
}

/// Compiles a C++ program for this host with the client of each release, and runs it.
fn runs_on_the_host(source: &str, printed: &str) -> Result<()> {
    let (dir, library) = (scratch()?, library()?);
    let out = dir.path().join("program");
    for llvm in CLIENTS {
        let mut compile = Command::new("c++");
        compile.args(["-std=c++17", "-pthread"]).args(STRICT);
        compile.arg(format!("-DGPURPC_CLIENT_LLVM={llvm}"));
        compile.arg("-I").arg(headers()).arg("-o").arg(&out);
        compile.arg(program(source)).arg(&library);
        succeed(compile.args(["-lm", "-ldl"]))?;
        let ran = succeed(&mut Command::new(&out))?;
        assert_eq!(ran.stdout, printed, "LLVM {llvm}");
    }
    Ok(())
}

/// Threads of the host call through typed calls: values of each kind, one lane, without an answer.
#[test]
fn typed_calls_carry_all_values() -> Result<()> {
    runs_on_the_host("rpc-typed.cpp", "counted 8, reported 20\n")
}

/// The client's code for nvcc, with threads as lanes: all of a warp, those of a branch, each alone, one for all.
#[test]
fn lanes_call_together_and_alone() -> Result<()> {
    runs_on_the_host("rpc-warp.cpp", "all lanes were served\n")
}

/// Errors about signatures name the rule.
#[test]
fn typed_calls_refuse_other_signatures() -> Result<()> {
    let dir = scratch()?;
    let source = dir.path().join("source.cpp");
    let typed = |device: &str, server: &str| {
        format!(
            "#include <gpurpc.hpp>\nstruct Text {{ Text(); Text(const Text &); ~Text(); char *text; }};\n\
             struct Large {{ char bytes[65]; }};\n\
             void device(gpurpc_client_t *client) {{ (void)client; {device} }}\n\
             void host(gpurpc_server_t *server) {{ (void)server; {server} }}\n"
        )
    };
    let correct = typed(
        "gpurpc::call<int(float, int)>(client, 1, 1.0F, 2);",
        "static auto f = [](float, int by) { return by; }; gpurpc::register_typed<int(float, int)>(server, 1, f);",
    );
    let refused = [
        (
            "gpurpc::call<int>(client, 1, 2);",
            "",
            "a signature is a function type",
        ),
        (
            "gpurpc::call<int(int &)>(client, 1, 2);",
            "",
            "trivially copyable values, no references",
        ),
        (
            "gpurpc::call<void(Text)>(client, 1, Text());",
            "",
            "trivially copyable values",
        ),
        (
            "gpurpc::call<Text()>(client, 1);",
            "",
            "the result is copied as bytes",
        ),
        (
            "gpurpc::post<void(long double)>(client, 1, 2);",
            "",
            "no long double",
        ),
        (
            "gpurpc::post<void(Large)>(client, 1, Large());",
            "",
            "the arguments have at most 64 bytes",
        ),
        (
            "gpurpc::call<Large()>(client, 1);",
            "",
            "the result has at most 64 bytes",
        ),
        (
            "gpurpc::call_lane<int(int)>(client, 1);",
            "",
            "another number of arguments",
        ),
        (
            "gpurpc::post_lane<void(int)>(client, 1, 2, 3);",
            "",
            "another number of arguments",
        ),
        (
            "",
            "gpurpc::register_typed<int(int)>(server, 1, [](int of) { return of; });",
            "deleted function",
        ),
    ];
    let compile = |compiler: &str| {
        let mut compile = Command::new(compiler);
        compile
            .args(["-std=c++17", "-fsyntax-only", "-I"])
            .arg(headers());
        compile.arg(&source);
        compile
    };
    std::fs::write(&source, correct)?;
    succeed(&mut compile("c++"))?;
    for (device, server, reason) in refused {
        std::fs::write(&source, typed(device, server))?;
        let errors = errors(&mut compile("c++"))?;
        let named = errors.iter().any(|error| error.contains(reason));
        assert!(named, "{device}{server}: {errors:#?}");
    }
    Ok(())
}
