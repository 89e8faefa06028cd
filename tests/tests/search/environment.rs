//! Wheels of the virtual environment whose Python was started, for an extension module outside of its
//! site-packages: editable installs, `PYTHONPATH`, a build directory.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::wheel_libraries;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};

/// Prints the path of the interpreter without links, `…/python3.11`.
const PROGRAM: &str = "import os, sys; print(os.path.realpath(sys.executable))";

/// An extension module with stubs of cudart, loaded by the real Python as each environment starts it.
#[test]
#[ignore = "needs Python and the wheel of cudart: ./tests/run"]
fn wheels_of_a_started_virtual_environment_are_found() -> Result<()> {
    let dir = scratch()?;
    let root = dir.path();
    let python = succeed(Command::new("python3").args(["-c", PROGRAM]))?.stdout;
    let python = Path::new(python.trim_end());
    let version = python.file_name().ok_or("no name")?;
    let module = module(root)?;

    let site = root.join("venv/lib").join(version).join("site-packages");
    fs::create_dir_all(&site)?;
    fs::create_dir_all(root.join("venv/bin"))?;
    let library = wheel_libraries("cudart-13.0")?;
    let package = library.ancestors().find(|path| path.ends_with("nvidia"));
    symlink(package.ok_or("no package")?, site.join("nvidia"))?;
    symlink(python, root.join("venv/bin/python"))?;
    let home = python.parent().ok_or("no directory")?.display();
    fs::write(root.join("venv/pyvenv.cfg"), format!("home = {home}\n"))?;

    let code = format!(
        "import ctypes, os\nos.chdir('/')\nctypes.CDLL('{}').show()\n",
        module.display()
    );
    let venv_python = root.join("venv/bin/python");
    fs::write(
        root.join("run.py"),
        format!("#!{}\n{code}", venv_python.display()),
    )?;
    fs::set_permissions(root.join("run.py"), fs::Permissions::from_mode(0o755))?;
    let expected = format!("13000 {}\n", "environment of the started program");
    let bin = root.join("venv/bin");
    for (program, arguments, directory) in [
        (venv_python.as_path(), &["-c", &code][..], root),
        (Path::new("venv/bin/python"), &["-c", &code], root),
        (Path::new("./python"), &["-c", &code], &bin),
        (Path::new("./run.py"), &[], root),
    ] {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(directory);
        command.env("PWD", directory);
        command.env_remove("VIRTUAL_ENV").env_remove("CONDA_PREFIX");
        assert_eq!(
            succeed(&mut command)?.stdout,
            expected,
            "{}",
            program.display()
        );
    }

    // The same Python outside of the environment: the report names the variable.
    let mut command = Command::new(python);
    command.args(["-c", &code]).env("GPUSTUB_LOG", "1");
    let ran = run(command.env_remove("VIRTUAL_ENV").env_remove("CONDA_PREFIX"))?;
    assert_eq!(ran.stdout, "0 (none)\n");
    assert!(
        ran.stderr.contains("; no Python environment (VIRTUAL_ENV)"),
        "{}",
        ran.stderr
    );
    Ok(())
}

/// A shared library whose `show` prints the version of cudart, and the search that found it.
fn module(root: &Path) -> Result<std::path::PathBuf> {
    let manifest = "schema = 1\n[stub.cudart]\nheader-version = \"13\"\n";
    let plan = plan_or_fail(manifest, &[], &Machine::X86_64.target())?;
    let stubs = Stubs::write(root, &plan, "cc", &[])?;
    let source = root.join("module.c");
    fs::write(
        &source,
        "#include <stdio.h>\n#include <string.h>\n#include \"gpustub.h\"\n\
         int cudaRuntimeGetVersion(int *);\n\
         void show(void)\n{\n    int version = 0;\n    cudaRuntimeGetVersion(&version);\n\
         \x20   const char *by = strstr(gpustub_report(\"cudart\"), \", by \");\n\
         \x20   const char *end = by ? strstr(by + 5, \": \") : 0;\n\
         \x20   printf(\"%d %.*s\\n\", version, end ? (int)(end - by - 5) : 6, end ? by + 5 : \"(none)\");\n\
         \x20   fflush(stdout);\n}\n",
    )?;
    let module = root.join("module.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-I"]).arg(&stubs.sources);
    succeed(
        cc.arg("-o")
            .arg(&module)
            .arg(&source)
            .arg(stubs.archive()?)
            .arg("-ldl"),
    )?;
    Ok(module)
}
