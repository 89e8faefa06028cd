//! onnxruntime's provider for TensorRT, whose library has no stubs: `--partial` leaves it that library alone, `--library`
//! none.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::succeed;
use gpustub_tests::components::{component, only_entry};

use super::unpack;

const PROVIDER: &str = "onnxruntime/capi/libonnxruntime_providers_tensorrt.so";

/// TensorRT's functions that the provider imports (1.31.1), by library.
const TENSORRT: [(&str, &[&str]); 2] = [
    (
        "libnvinfer.so.10",
        &[
            "createInferBuilder_INTERNAL",
            "createInferRefitter_INTERNAL",
            "createInferRuntime_INTERNAL",
            "getInferLibVersion",
            "getPluginRegistry",
        ],
    ),
    (
        "libnvonnxparser.so.10",
        &[
            "createNvOnnxParserRefitter_INTERNAL",
            "createNvOnnxParser_INTERNAL",
        ],
    ),
];

/// Compiles imitations of TensorRT's libraries.
fn tensorrt(directory: &Path) -> Result<()> {
    fs::create_dir(directory)?;
    for (soname, functions) in TENSORRT {
        let source = directory.join("library.c");
        let functions = functions
            .iter()
            .map(|name| format!("void *{name}(void) {{ return 0; }}\n"));
        fs::write(&source, functions.collect::<String>())?;
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", &format!("-Wl,-soname,{soname}"), "-o"]);
        succeed(cc.arg(directory.join(soname)).arg(&source))?;
    }
    Ok(())
}

/// Libraries and symbols that the loader does not find for the provider, whose constructors are not called: without
/// onnxruntime they end the process.
fn missing(site: &Path, library_path: &Path) -> Result<Vec<String>> {
    let mut ldd = Command::new("ldd");
    let ldd = ldd.arg("-r").arg(site.join(PROVIDER));
    let output = ldd.env("LD_LIBRARY_PATH", library_path).output()?;
    let text = String::from_utf8([output.stdout, output.stderr].concat())?;
    let mut names: Vec<String> = text
        .lines()
        .filter_map(|line| {
            let library = line.split_once(" => not found").map(|(name, _)| name);
            let symbol = line.split_once("undefined symbol: ").map(|(_, name)| name);
            let name = library.or(symbol)?.split_whitespace().next()?;
            // onnxruntime opens the library of this function before.
            (name != "Provider_GetHost").then(|| name.to_owned())
        })
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

#[test]
#[ignore = "repairs a published wheel of 250 MB: ./tests/run --all"]
fn heavy_a_provider_for_tensorrt() -> Result<()> {
    let wheel = only_entry(&component("wheels-repair/onnxruntime")?)?;
    let scratch = tempfile::tempdir()?;
    let tensorrt_directory = scratch.path().join("tensorrt");
    tensorrt(&tensorrt_directory)?;
    let nowhere = scratch.path().join("nowhere");
    let missing_in = |wheel: &Path| -> Result<[Vec<String>; 2]> {
        let site = scratch.path().join("site");
        unpack(wheel, &site)?;
        let names = [
            missing(&site, &nowhere)?,
            missing(&site, &tensorrt_directory)?,
        ];
        fs::remove_dir_all(&site)?;
        Ok(names)
    };
    let [_, before] = missing_in(&wheel)?;
    assert!(before.contains(&"libcublas.so.13".to_owned()), "{before:?}");

    let repair = |options: &[&str]| -> Result<(String, [Vec<String>; 2])> {
        let out = scratch.path().join("out");
        let mut repair = gpustub(&["repair", "--out-dir"])?;
        let repair = repair.arg(&out).arg(&wheel).args(options);
        let printed = succeed(repair.current_dir(&tensorrt_directory))?.stderr;
        let names = missing_in(&only_entry(&out)?)?;
        fs::remove_dir_all(&out)?;
        Ok((printed, names))
    };
    let (printed, [without, with]) = repair(&["--partial"])?;
    let part = "is repaired in part: it needs libnvinfer.so.10, libnvonnxparser.so.10, for which there are no stubs";
    assert!(printed.contains(part), "{printed}");
    for (soname, functions) in TENSORRT {
        for name in functions.iter().chain([&soname]) {
            assert!(without.contains(&(*name).to_owned()), "{without:?}");
        }
    }
    assert_eq!(without.len(), 9, "{without:?}");
    assert!(with.is_empty(), "{with:?}");

    let libraries = [
        "--library=nvinfer=libnvinfer.so.10",
        "--library=nvonnxparser=libnvonnxparser.so.10",
        "--returns=null",
    ];
    let (printed, names) = repair(&libraries)?;
    assert!(!printed.contains("unsupported-image"), "{printed}");
    assert!(names.iter().all(Vec::is_empty), "{names:?}");
    Ok(())
}
