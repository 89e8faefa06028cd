//! onnxruntime's provider for TensorRT, whose library has no stubs: `--partial` makes it start with any CUDA, `--library`
//! without TensorRT too.

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
        let code = functions
            .iter()
            .map(|name| format!("int {name}(void) {{ return 7; }}\n"));
        fs::write(&source, code.collect::<String>())?;
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", &format!("-Wl,-soname,{soname}"), "-o"]);
        succeed(cc.arg(directory.join(soname)).arg(&source))?;
    }
    Ok(())
}

/// The loader's error for the provider, or `loaded`. The image binds all of its symbols at once (DF_1_NOW). Its destructors call
/// the host, which is not there.
fn load(site: &Path, library_path: &Path) -> Result<String> {
    let provider = site.join(PROVIDER);
    let shared = provider.with_file_name("libonnxruntime_providers_shared.so");
    let script = format!(
        "import ctypes, os\nctypes.CDLL({shared:?}, ctypes.RTLD_GLOBAL)\n\
         try:\n  ctypes.CDLL({provider:?})\n  print('loaded', flush=True); os._exit(0)\n\
         except OSError as error:\n  print(error)\n"
    );
    let mut python = Command::new("python3");
    python.args(["-c", &script]);
    Ok(succeed(python.env("LD_LIBRARY_PATH", library_path))?.stdout)
}

#[test]
#[ignore = "repairs a published wheel of 250 MB: ./tests/run --all"]
fn heavy_a_provider_for_tensorrt() -> Result<()> {
    let wheel = only_entry(&component("wheels-repair/onnxruntime")?)?;
    let scratch = tempfile::tempdir()?;
    let tensorrt_directory = scratch.path().join("tensorrt");
    tensorrt(&tensorrt_directory)?;
    let nowhere = scratch.path().join("nowhere");
    let load_unpacked = |wheel: &Path| -> Result<[String; 2]> {
        let site = scratch.path().join("site");
        unpack(wheel, &site)?;
        let outputs = [load(&site, &nowhere)?, load(&site, &tensorrt_directory)?];
        fs::remove_dir_all(&site)?;
        Ok(outputs)
    };
    for output in load_unpacked(&wheel)? {
        assert!(
            output.starts_with("libcublas.so.13: cannot open"),
            "{output}"
        );
    }

    let repair = |options: &[&str]| -> Result<(String, [String; 2])> {
        let out = scratch.path().join("out");
        let mut repair = gpustub(&["repair", "--out-dir"])?;
        repair
            .arg(&out)
            .arg(&wheel)
            .args(options)
            .current_dir(&tensorrt_directory);
        let printed = succeed(&mut repair)?.stderr;
        let outputs = load_unpacked(&only_entry(&out)?)?;
        fs::remove_dir_all(&out)?;
        Ok((printed, outputs))
    };
    let (printed, [without, with]) = repair(&["--partial"])?;
    let part = "is repaired in part: it needs libnvinfer.so.10, libnvonnxparser.so.10, for which there are no stubs";
    assert!(printed.contains(part), "{printed}");
    assert!(
        without.starts_with("libnvinfer.so.10: cannot open"),
        "{without}"
    );
    assert_eq!(with, "loaded\n");

    let libraries = [
        "--library",
        "nvinfer=libnvinfer.so.10",
        "--library",
        "nvonnxparser=libnvonnxparser.so.10",
        "--returns",
        "null",
    ];
    let (printed, outputs) = repair(&libraries)?;
    assert!(!printed.contains("unsupported-image"), "{printed}");
    assert_eq!(outputs, ["loaded\n", "loaded\n"]);
    Ok(())
}
