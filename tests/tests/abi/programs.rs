//! Fake libraries and callers of one library: how they are built and run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::{Library, override_variable};
use gpustub_core::symbols::{Symbol, SymbolList};
use gpustub_core::version::Version;
use gpustub_tests::command::succeed;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, components, elf, repository};

/// Library under test, with the versions and modes to try.
pub struct Programs {
    pub id: &'static str,
    /// Versions of the headers that callers are compiled with.
    headers: &'static [&'static str],
    libraries: &'static [&'static str],
    /// Whether all versions of the ABI table are tried instead (`cargo xtask abi-programs --all`).
    all: bool,
    /// Sonames of the libraries, from a version on.
    sonames: &'static [(Version, &'static str)],
    /// Component with the headers of a version, and the name of one header.
    component: (&'static str, &'static str),
    /// Components whose headers these include, by version, and the name of one of them.
    needs: Option<(&'static [(&'static str, &'static str)], &'static str)>,
    defines: &'static [&'static str],
    pub modes: &'static [Mode],
    /// Libraries whose search is disabled.
    off: &'static [&'static str],
    /// Shapes (`shapes.rs`) that no unchanged function of the library has: those of
    /// `xtask/programs/shapes.h` are tried instead.
    pub made_up: &'static [&'static str],
}

/// Suffix of a caller's name, and the flags of that mode.
pub type Mode = (&'static str, &'static [&'static str]);

const CUDA_MODES: &[Mode] = &[
    ("", &[]),
    ("-per-thread", &["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]),
];

pub const CUDART: Programs = Programs {
    id: "cudart",
    headers: &["11.8", "12.9", "13.5"],
    // The last and first of each major, and one between: some functions are added within a major.
    libraries: &["11.8", "12.0", "12.4", "12.9", "13.0", "13.5"],
    all: false,
    sonames: &[
        (Version::new(11, 0), "libcudart.so.11.0"),
        (Version::new(12, 0), "libcudart.so.12"),
        (Version::new(13, 0), "libcudart.so.13"),
    ],
    component: ("wheels/cudart-", "cuda_runtime_api.h"),
    needs: None,
    defines: &[],
    modes: CUDA_MODES,
    off: &["cuda"],
    made_up: &[
        "16 arguments",
        "float4",
        "float8",
        "float4:stack",
        "float8:stack",
        "struct_vv",
        "struct_vi",
        "struct_ii:stack",
        "->void",
        "->float4",
        "->float8",
        "->struct_ii",
        "->struct_vv",
        "->struct_vi",
    ],
};

pub const CUDA: Programs = Programs {
    id: "cuda",
    sonames: &[(Version::new(11, 0), "libcuda.so.1")],
    component: ("wheels/cudart-", "cuda.h"),
    off: &[],
    made_up: &[
        "16 arguments",
        "float8",
        "float4:stack",
        "float8:stack",
        "struct_ii",
        "struct_vv",
        "struct_vi",
        "struct_ii:stack",
        "->int",
        "->void",
        "->float4",
        "->float8",
        "->struct:memory",
        "->struct_ii",
        "->struct_vv",
        "->struct_vi",
    ],
    ..CUDART
};

pub const HIP: Programs = Programs {
    id: "hip",
    headers: &["5.2", "5.7", "6.4", "7.2"],
    libraries: &["5.2", "5.7", "6.4", "7.2"],
    sonames: &[
        (Version::new(5, 0), "libamdhip64.so.5"),
        (Version::new(6, 0), "libamdhip64.so.6"),
        (Version::new(7, 0), "libamdhip64.so.7"),
    ],
    all: false,
    component: ("hip-headers-", "hip/hip_runtime_api.h"),
    needs: None,
    defines: &["-D__HIP_PLATFORM_AMD__"],
    // No function of an ABI table has a twin for per-thread streams: both modes are equal today.
    modes: &[
        ("", &[]),
        ("-per-thread", &["-DHIP_API_PER_THREAD_DEFAULT_STREAM"]),
    ],
    off: &[],
    made_up: &[
        "16 arguments",
        "float8",
        "float4:stack",
        "float8:stack",
        "struct_vv",
        "struct_vi",
        "struct_ii:stack",
        "->float4",
        "->float8",
        "->struct_ii",
        "->struct_vv",
        "->struct_vi",
    ],
};

pub const CUFFT: Programs = Programs {
    id: "cufft",
    headers: &["11.7", "11.8", "12.0", "12.2", "12.9", "13.5"],
    libraries: &["11.7", "11.8", "12.0", "12.3", "12.9", "13.0"],
    sonames: &[
        (Version::new(11, 0), "libcufft.so.10"),
        (Version::new(12, 0), "libcufft.so.11"),
        (Version::new(13, 0), "libcufft.so.12"),
    ],
    component: ("headers/cufft-", "cufft.h"),
    needs: Some((
        &[
            ("11.7", "wheels/cudart-11.7"),
            ("11.8", "wheels/cudart-11.8"),
            ("12.0", "wheels/cudart-12.0"),
            ("12.2", "wheels/cudart-12.2"),
            ("12.9", "wheels/cudart-12.9"),
            ("13.5", "wheels/cudart-13.5"),
        ],
        "cuda_runtime_api.h",
    )),
    modes: &[("", &[])],
    off: &["cuda"],
    made_up: &[
        "16 arguments",
        "float4",
        "float8",
        "float4:stack",
        "float8:stack",
        "struct_ii",
        "struct_vv",
        "struct_vi",
        "struct:stack",
        "struct_ii:stack",
        "->int",
        "->void",
        "->float4",
        "->float8",
        "->struct:memory",
        "->struct_ii",
        "->struct_vv",
        "->struct_vi",
        "/in/",
    ],
    ..CUDART
};

/// cuFile, which is numbered independently of the toolkit.
pub const CUFILE: Programs = Programs {
    id: "cufile",
    headers: &["1.11", "1.18", "1.19", "1.20"],
    libraries: &["1.11", "1.18", "1.19", "1.20"],
    sonames: &[(Version::new(1, 0), "libcufile.so.0")],
    component: ("headers/cufile-", "cufile.h"),
    needs: Some((
        &[
            ("1.11", "wheels/cudart-12.9"),
            ("1.18", "wheels/cudart-13.5"),
            ("1.19", "wheels/cudart-13.5"),
            ("1.20", "wheels/cudart-13.5"),
        ],
        "cuda_runtime_api.h",
    )),
    made_up: &[
        "16 arguments",
        "float4",
        "float8",
        "float4:stack",
        "float8:stack",
        "struct_ii",
        "struct_vv",
        "struct_vi",
        "struct:stack",
        "struct_ii:stack",
        "->float4",
        "->float8",
        "->struct:memory",
        "->struct_ii",
        "->struct_vv",
        "->struct_vi",
        "/in/",
    ],
    ..CUFFT
};

/// cuSPARSE: the libraries of CUDA 12 and 13 have one soname and differ in their own numbers.
pub const CUSPARSE: Programs = Programs {
    id: "cusparse",
    headers: &["11.8", "13.1", "13.5"],
    libraries: &["11.8", "12.9", "13.0", "13.2", "13.3", "13.5"],
    sonames: &[
        (Version::new(11, 0), "libcusparse.so.11"),
        (Version::new(12, 0), "libcusparse.so.12"),
    ],
    defines: &["-DCUSPARSE_ENABLE_EXPERIMENTAL_API"],
    component: ("headers/cusparse-", "cusparse.h"),
    needs: Some((
        &[
            ("11.8", "wheels/cudart-11.8"),
            ("13.1", "wheels/cudart-13.1"),
            ("13.5", "wheels/cudart-13.5"),
        ],
        "cuda_runtime_api.h",
    )),
    made_up: &[
        "float4:stack",
        "float8:stack",
        "struct_ii",
        "struct_vi",
        "struct:stack",
        "struct_ii:stack",
        "->void",
        "->float4",
        "->float8",
        "->struct:memory",
        "->struct_ii",
        "->struct_vv",
        "->struct_vi",
    ],
    ..CUFFT
};

pub const NVML: Programs = Programs {
    id: "nvml",
    headers: &["11.8", "12.2", "12.9", "13.5"],
    libraries: &["11.8", "12.2", "12.9", "13.5"],
    sonames: &[(Version::new(11, 0), "libnvidia-ml.so.1")],
    component: ("headers/nvml-", "nvml.h"),
    needs: None,
    modes: &[
        ("", &[]),
        ("-versioned", &["-DNVML_NO_UNVERSIONED_FUNC_DEFS"]),
    ],
    off: &[],
    made_up: &[
        "16 arguments",
        "int:stack",
        "float4",
        "float8",
        "float4:stack",
        "float8:stack",
        "struct_ii",
        "struct_vv",
        "struct_vi",
        "struct:stack",
        "struct_ii:stack",
        "->void",
        "->float4",
        "->float8",
        "->struct:memory",
        "->struct_ii",
        "->struct_vv",
        "->struct_vi",
        "/in/",
    ],
    ..CUDART
};

pub const ROCBLAS: Programs = Programs {
    id: "rocblas",
    headers: &["5.5", "6.4", "7.2"],
    libraries: &["5.5", "6.4", "7.2"],
    sonames: &[
        (Version::new(5, 0), "librocblas.so.0"),
        (Version::new(6, 0), "librocblas.so.4"),
        (Version::new(7, 0), "librocblas.so.5"),
    ],
    all: false,
    component: ("rocblas-", "rocblas/rocblas.h"),
    needs: Some((
        &[
            ("5.5", "hip-headers-5.7"),
            ("6.4", "hip-headers-6.4"),
            ("7.2", "hip-headers-7.2"),
        ],
        "hip/hip_runtime_api.h",
    )),
    defines: &["-D__HIP_PLATFORM_AMD__"],
    modes: &[("", &[])],
    off: &[],
    made_up: &[
        "float4",
        "float8",
        "float4:stack",
        "float8:stack",
        "struct_ii",
        "struct_vv",
        "struct_vi",
        "struct:stack",
        "struct_ii:stack",
        "->float4",
        "->float8",
        "->struct:memory",
        "->struct_ii",
        "->struct_vv",
        "->struct_vi",
    ],
};

impl Programs {
    /// The same, with all versions of the ABI table.
    pub fn of_all_versions(self) -> Self {
        Self { all: true, ..self }
    }

    fn versions(&self, some: &[&str]) -> Vec<Version> {
        let shipped = Library::builtin(self.id).map(|library| library.abi.headers());
        match shipped {
            Some(versions) if self.all => versions.to_vec(),
            _ => some
                .iter()
                .filter_map(|text| Version::parse(text))
                .collect(),
        }
    }

    /// Versions of the headers that callers are compiled with.
    pub fn headers(&self) -> Vec<Version> {
        self.versions(self.headers)
    }

    /// Versions of the fake libraries, and their files below a directory.
    pub fn libraries(&self, dir: &Path) -> Vec<(Version, PathBuf)> {
        let versions = self.versions(self.libraries).into_iter();
        let file = |version: Version| {
            let sonames = self.sonames.iter().rev();
            let soname = sonames
                .filter(|(from, _)| *from <= version)
                .map(|(_, name)| name);
            let directory = dir.join(version.to_string());
            (
                version,
                directory.join(soname.copied().next().unwrap_or_default()),
            )
        };
        versions.map(file).collect()
    }

    /// Writes the sources of callers, and the fake libraries.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let (directory, _) = self.component;
        let components = components::component(&format!("{directory}{}", self.headers()[0]))?;
        let root = components
            .ancestors()
            .nth(Path::new(directory).components().count());
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .current_dir(repository())
            .args(["run", "--quiet", "--offline", "--package", "xtask", "--"])
            .arg("abi-programs")
            .arg(dir)
            .arg(self.id)
            .args(self.all.then_some("--all"))
            .arg("--components")
            .arg(root.unwrap_or(&components));
        succeed(&mut cargo)?;
        for (version, library) in self.libraries(dir) {
            let soname = library.file_name().unwrap_or_default().to_string_lossy();
            fs::create_dir_all(library.parent().unwrap_or(dir))?;
            let mut cc = Command::new("cc");
            cc.current_dir(dir.join(self.id))
                .args(["-O1", "-shared", "-fPIC"]);
            cc.arg(format!("-Wl,-soname,{soname}"));
            cc.arg(format!("-Wl,--version-script=fake-{version}.map"));
            cc.arg("-o").arg(&library);
            succeed(cc.arg(format!("fake-{version}.c")))?;
        }
        Ok(())
    }

    /// Symbol list of the stubs: the shipped one, and the invented functions of the fake libraries.
    pub fn symbols(&self, dir: &Path, shipped: &Library) -> Result<SymbolList> {
        let (_, library) = &self.libraries(dir)[0];
        let mut list = shipped.symbols.clone();
        let names = exported(library)?;
        let made_up = names.into_iter().filter(|name| name.starts_with(MADE_UP));
        list.symbols.extend(made_up.map(|name| Symbol {
            name,
            ..Symbol::default()
        }));
        list.normalise();
        Ok(list)
    }

    /// Directories of the real headers of a version.
    fn includes(&self, version: Version) -> Result<Vec<PathBuf>> {
        let (directory, header) = self.component;
        let mut directories = vec![Self::include(&format!("{directory}{version}"), header)?];
        if let Some((needs, header)) = self.needs {
            let mut needs = needs.iter();
            let (_, component) = (needs.find(|(of, _)| *of == version.to_string()))
                .ok_or_else(|| format!("no headers for {version}"))?;
            directories.push(Self::include(component, header)?);
        }
        Ok(directories)
    }

    fn include(component: &str, header: &str) -> Result<PathBuf> {
        let component = components::component(component)?;
        let mut find = Command::new("find");
        find.arg(&component).arg("-path").arg(format!("*/{header}"));
        let found = succeed(&mut find)?.stdout;
        let found = Path::new(found.lines().next().unwrap_or_default());
        let include = found
            .ancestors()
            .nth(Path::new(header).components().count());
        Ok(include.unwrap_or(&component).to_owned())
    }

    /// Directory of a caller and its stubs.
    fn directory(dir: &Path, version: Version, mode: Mode, declared: bool) -> PathBuf {
        dir.join(format!("stubs-{version}{}-{declared}", mode.0))
    }

    /// A caller compiled against the headers of a version, with stubs that declare this version or
    /// none.
    pub fn caller(
        &self,
        dir: &Path,
        version: Version,
        mode: Mode,
        declared: bool,
        symbols: &SymbolList,
    ) -> Result<PathBuf> {
        let directory = Self::directory(dir, version, mode, declared);
        let stubs = self.stubs(dir, version, mode, declared, symbols)?;
        let (end, flags) = mode;
        let mut cc = Command::new("cc");
        cc.current_dir(dir.join(self.id))
            .args(["-O1", "-c", "-Wno-deprecated-declarations"])
            .args(self.defines)
            .args(flags);
        cc.arg("-isystem").arg(repository().join("xtask/headers"));
        for directory in self.includes(version)? {
            cc.arg("-isystem").arg(directory);
        }
        cc.arg("-o").arg(directory.join("caller.o"));
        cc.arg(format!("caller-{version}{end}.c"));
        succeed(&mut cc)?;
        Self::link(&directory, &stubs)
    }

    /// Sources of the stubs of a caller.
    pub fn stubs(
        &self,
        dir: &Path,
        version: Version,
        mode: Mode,
        declared: bool,
        symbols: &SymbolList,
    ) -> Result<Stubs> {
        let directory = Self::directory(dir, version, mode, declared);
        fs::create_dir_all(&directory)?;
        let header = if declared {
            format!("header-version = \"{version}\"\n")
        } else {
            "header-version = \"none\"\n".to_owned()
        };
        let manifest = format!(
            "schema = 1\n[stub.{}]\nsymbols = \"symbols\"\n{header}",
            self.id
        );
        let lists = [("symbols", symbols.to_text())];
        let plan = plan_or_fail(&manifest, &lists, &Machine::X86_64.target())?;
        Stubs::write(&directory, &plan, "cc", &[])
    }

    /// Compiles the stubs, and links them with the caller's object in a directory.
    pub fn link(directory: &Path, stubs: &Stubs) -> Result<PathBuf> {
        let program = directory.join("caller");
        let mut cc = Command::new("cc");
        cc.arg("-o").arg(&program).arg(directory.join("caller.o"));
        succeed(cc.arg(stubs.archive()?))?;
        Ok(program)
    }

    /// Runs a caller on a library, with each call or with the cases of a file. Returns its calls, and those
    /// that the library recorded.
    pub fn run(
        &self,
        dir: &Path,
        caller: &Path,
        library: &Path,
        cases: Option<&Path>,
    ) -> Result<(String, String)> {
        let log = dir.join("log");
        fs::write(&log, "")?;
        let mut command = Command::new(caller);
        command
            .env(override_variable(self.id), library)
            .envs(self.off.iter().map(|id| (override_variable(id), "off")))
            .envs(cases.map(|file| ("GPUSTUB_TEST_CASES", file)))
            .env("GPUSTUB_TEST_FAKE_LOG", &log);
        let printed = succeed(&mut command)?.stdout;
        Ok((printed, fs::read_to_string(&log)?))
    }
}

/// Name prefix of invented functions.
pub const MADE_UP: &str = "shape_";

/// Functions that a fake library exports.
pub fn exported(library: &Path) -> Result<BTreeSet<String>> {
    let rows = elf::symbols("--dyn-syms", library)?;
    let rows = rows.into_iter().filter(|row| row.section != "UND");
    Ok(rows
        .map(|row| row.name.split('@').next().unwrap_or_default().to_owned())
        .collect())
}

/// Call of a caller.
pub struct Call<'t> {
    /// Name that was linked.
    pub name: &'t str,
    /// Shape of the call, in the words of `shapes.rs`.
    pub shape: &'t str,
    /// Arguments, as the fake library prints them; `None` if it was not called.
    pub passed: Option<&'t str>,
    /// `STATUS filled`, `STATUS untouched`, …
    pub result: &'t str,
}

pub fn calls(printed: &str) -> impl Iterator<Item = Call<'_>> {
    printed.split("call ").skip(1).map(|call| {
        let mut lines = call.lines();
        let names = lines.next().unwrap_or_default();
        let rest: Vec<&str> = lines.collect();
        let mut names = names.split(' ').skip(1);
        let name = names.next().unwrap_or_default();
        let passed = rest.iter().find_map(|line| line.strip_prefix("passed "));
        Call {
            name,
            shape: names.next().unwrap_or_default(),
            passed: passed.map(|line| line.strip_prefix(name).unwrap_or(line)),
            result: rest.last().copied().unwrap_or_default(),
        }
    })
}
