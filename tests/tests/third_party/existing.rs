//! A project that uses cudarc already, `fixtures/third-party/existing`: the commands of `docs/start.md` lead
//! from it to a program that starts without CUDA.

use std::fs;

use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::Ran;
use gpustub_tests::readme::commands;

use super::*;

const PAGE: &str = "docs/start.md";

impl Project {
    /// The project without what an earlier run has written.
    fn existing() -> Result<Self> {
        let project = Self::new("existing", false)?;
        for made in ["GpuStub.toml", "GpuStub.lock", "build.rs"] {
            if project.directory().join(made).exists() {
                fs::remove_file(project.directory().join(made))?;
            }
        }
        Ok(project)
    }

    /// Executable of a debug build.
    fn program(&self) -> PathBuf {
        self.work.join("target-bare/debug/existing")
    }

    fn gpustub(&self, words: &[&str]) -> Result<Ran> {
        let mut command = gpustub(words)?;
        run(clean(command.current_dir(self.directory())))
    }
}

/// Commands of the page for a project that uses cudarc, with their output.
fn start() -> Result<Vec<(String, Vec<String>)>> {
    let commands = commands(PAGE)?;
    let position = |text: &str| commands.iter().position(|(line, _)| line.starts_with(text));
    let start = position("cargo add cudarc").ok_or("the page adds no cudarc")?;
    let end = position("target/debug/app").ok_or("the page runs no program")?;
    Ok(commands[start..=end].to_vec())
}

#[test]
#[ignore = "needs crates from the registry: ./tests/run"]
fn start_page_leads_to_a_program_without_cuda() -> Result<()> {
    let project = Project::existing()?;
    for (line, output) in start()? {
        let words: Vec<&str> = line.split(' ').collect();
        let printed = match words[..] {
            // The fixture has the feature already; its version is that of the lock file.
            ["cargo", "add", ..] => continue,
            ["cargo", "gpustub", ref words @ ..] => project.gpustub(words)?.success()?.stderr,
            ["cargo", ref words @ ..] => {
                succeed(&mut project.cargo(words, DEFAULT, false)?)?.stderr
            }
            ["readelf", ..] => {
                let mut readelf = Command::new("readelf");
                succeed(readelf.arg("-dW").arg(project.program()))?.stdout
            }
            _ => {
                let mut program = Command::new(project.program());
                succeed(project.switch_off(clean(&mut program)))?.stdout
            }
        };
        for expected in output {
            assert!(printed.contains(&expected), "{line}: {expected}: {printed}");
        }
        if line.starts_with("readelf") {
            assert_eq!(printed.matches("(NEEDED)").count(), 3, "{printed}");
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs crates from the registry: ./tests/run"]
fn add_offers_what_cudarc_links() -> Result<()> {
    let project = Project::existing()?;
    let offer = project.gpustub(&["add"])?;
    let links = "Found cudarc 0.19.10, which links cublas, cublaslt, cuda, cudart, curand, nvrtc\n";
    let header = "Found header version 12.8 (feature `cuda-12080` of cudarc 0.19.10)\n";
    for expected in [links, header] {
        assert!(offer.stderr.contains(expected), "{}", offer.stderr);
    }
    let (_, command) = offer
        .stderr
        .split_once("`cargo gpustub ")
        .ok_or("no command")?;
    let (command, _) = command.split_once('`').ok_or("no end")?;
    let words: Vec<&str> = command.split(' ').collect();
    let ran = project.gpustub(&words)?;
    assert!(ran.status.success(), "{ran:?}");
    let text = fs::read_to_string(project.directory().join("GpuStub.toml"))?;
    assert_eq!(
        text.matches("\nheader-version = \"12.8\"\n").count(),
        6,
        "{text}"
    );

    let build = ["build", "--message-format", "json"];
    for linker in [DEFAULT, BFD] {
        let built = succeed(&mut project.cargo(&build, linker, false)?)?;
        let images = images(&built.stdout, "existing")?;
        let (_, program) = images.first().ok_or("no program")?;
        check_image(program, linker)?;
        let mut command = Command::new(program);
        let ran = succeed(project.switch_off(clean(&mut command)))?;
        assert!(ran.stdout.contains("CUDA_ERROR_NO_DEVICE"), "{ran:?}");
        assert!(ran.stdout.contains("is not available"), "{ran:?}");
    }
    Ok(())
}

/// cudarc's default feature opens the libraries with dlopen.
#[test]
#[ignore = "needs crates from the registry: ./tests/run"]
fn stubs_that_cudarc_never_calls_are_reported() -> Result<()> {
    let project = Project::existing()?;
    let path = project.directory().join("Cargo.toml");
    let text = fs::read_to_string(&path)?;
    fs::write(&path, text.replace("\"dynamic-linking\", ", ""))?;
    let help = "enable the feature `dynamic-linking` of cudarc";
    for (words, code) in [
        (&["add"][..], 101),
        (&["add", "cuda"], 0),
        (&["check", "--deny", "dlopening-dependency"], 1),
    ] {
        let ran = project.gpustub(words)?;
        assert_eq!(ran.status.code(), Some(code), "{ran:?}");
        assert!(ran.stderr.contains("[dlopening-dependency]"), "{ran:?}");
        assert!(ran.stderr.contains(help), "{ran:?}");
    }
    Ok(())
}
