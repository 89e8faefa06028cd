//! Containers of device code, made by their real tools: what each command says of them, as `tests/cases/device-code.md` has it,
//! and what other tools read. `BLESS=1` rewrites its rows.

mod differential;
mod inputs;
mod unpack;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use gpustub_core::offload::{CodeKind, Container, Model, containers};
use gpustub_image::offload::{archs, unpack_start};
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

use inputs::{HEAVY, INPUTS, Input, Maker};

/// Contents of a file, as one line of the page.
fn contents(file: &[u8]) -> String {
    let lines: Vec<String> = containers(file).map(|container| line(&container)).collect();
    match &lines[..] {
        [] => CodeKind::of(file).to_string(),
        lines => lines.join("; "),
    }
}

fn line(container: &Container<'_>) -> String {
    let mut line = container.format.to_string();
    if container.version > 0 {
        line += &format!(", version {}", container.version);
    }
    if !container.section.is_empty() {
        line += &format!(", in `{}`", String::from_utf8_lossy(container.section));
    }
    let mut table = Vec::new();
    for entry in &container.entries {
        let target = format!("{} {}", model_name(entry.model), entry.arch);
        let mut text = format!("{} ({})", target.trim_end(), entry.code);
        if let Some(compression) = entry.compression {
            text += &format!(" {compression:?}");
        }
        table.push(text);
    }
    if let Some(compression) = container.compression {
        assert!(unpack_start(container, 1 << 16).is_ok(), "{line}");
        line += &format!(", {compression:?}");
    }
    if table.is_empty() {
        table.extend(archs(container));
    }
    format!("{line}: {}", table.join(", "))
}

fn model_name(model: Model) -> &'static str {
    match model {
        Model::Host => "host",
        Model::Cuda => "CUDA",
        Model::Hip => "HIP",
        Model::OpenMp => "OpenMP",
        Model::Sycl => "SYCL",
        Model::Unknown => "unknown model",
    }
}

/// Output of a command about a file, without sizes, paths of the test and the lines that quote `GpuStub.toml`.
fn says(directory: &Path, words: &[&str]) -> Result<String> {
    let ran = run(gpustub(words)?.current_dir(directory))?;
    let text = format!(
        "{}{}",
        ran.stderr,
        if ran.status.success() {
            ""
        } else {
            &ran.stdout
        }
    );
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        let is_source = line.contains(" | ") || line.starts_with('|') || line.ends_with('|');
        let is_other = line.starts_with("-->") || line.starts_with("Checked ") && !lines.is_empty();
        if !line.is_empty() && !is_source && !is_other {
            lines.push(line.trim_start_matches("= ").to_owned());
        }
    }
    let text = lines
        .join(" <br> ")
        .replace(&format!("{}/", directory.display()), "");
    let words: Vec<&str> = text.split(' ').collect();
    let is_size = |index: usize| {
        words
            .get(index + 1)
            .is_some_and(|next| next.starts_with("bytes"))
    };
    let words = words.iter().enumerate();
    let words: Vec<&str> = words
        .map(|(index, word)| if is_size(index) { "…" } else { word })
        .collect();
    Ok(words.join(" "))
}

/// Output of `plan` about an archive as `prebuilt` with code for this architecture.
fn prebuilt(directory: &Path, archive: &str, arch: &str) -> Result<String> {
    let package = directory.join("package");
    fs::create_dir_all(package.join("src"))?;
    for (name, text) in [
        (
            "Cargo.toml",
            "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2024\"\nlinks = \"x\"\n[lib]\ntest = false\n[workspace]\n".to_owned(),
        ),
        ("build.rs", "fn main() {}".to_owned()),
        ("src/lib.rs", String::new()),
        (
            "GpuStub.toml",
            format!("schema = 1\n[device-link.x]\nprebuilt = \"{archive}\"\narchs = [\"{arch}\"]\n"),
        ),
    ] {
        fs::write(package.join(name), text)?;
    }
    fs::copy(directory.join(archive), package.join(archive))?;
    let text = says(&package, &["plan"])?;
    Ok(match &*text {
        "" => "links it".to_owned(),
        _ => text,
    })
}

/// The page's row of an input.
fn row(directory: &Path, input: &Input) -> Result<String> {
    let name = input.name;
    let mut lines = [
        format!("### `{name}`"),
        format!("{}.", input.title),
        format!("Read as {}.", contents(&fs::read(directory.join(name))?)),
        "| command | says |\n|---|---|".to_owned(),
    ];
    let mut add = |command: &str, text: String| {
        let last = lines.last_mut().expect("the head of the table");
        let text = match &*text {
            "" => "nothing: it reads the file",
            text => text,
        };
        *last += &format!("\n| {command} | {text} |");
    };
    add("`check`", says(directory, &["check", name])?);
    add("`symbols`", says(directory, &["symbols", name])?);
    let view = format!("v={name}");
    add(
        "`archive build`",
        says(
            directory,
            &["archive", "build", "-o", "out.a", "--view", &view],
        )?,
    );
    if !input.is_image {
        let archive = format!("lib{}.a", name.replace('.', "-"));
        let mut ar = Command::new("ar");
        succeed(ar.current_dir(directory).args(["rcs", &archive, name]))?;
        add(
            "`check` of an archive",
            says(directory, &["check", &archive])?,
        );
        let view = format!("v={archive}");
        let build = ["archive", "build", "-o", "out.a", "--view", &view];
        add("`archive build` of an archive", says(directory, &build)?);
        add("`prebuilt`", prebuilt(directory, &archive, "sm_80")?);
        add(
            "`prebuilt` for AMD",
            prebuilt(directory, &archive, "gfx90a")?,
        );
    }
    add(
        "`repair`",
        says(directory, &["repair", "--out-dir", "out", name])?,
    );
    Ok(lines.join("\n\n") + "\n")
}

/// Compares the rows of these inputs with those of the page.
fn compare(inputs: &[Input]) -> Result<()> {
    /// Two tests write the page.
    static PAGE: Mutex<()> = Mutex::new(());
    let _lock = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let page_path = repository().join("tests/cases/device-code.md");
    let mut page = fs::read_to_string(&page_path)?;
    let directory = scratch()?;
    let maker = Maker::new(directory.path())?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the caller's request to write the page"
    )]
    let blesses = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for input in inputs {
        maker.make(input)?;
        let row = row(directory.path(), input)?;
        if page.contains(&row) {
            continue;
        }
        if !blesses {
            wrong.push(row);
            continue;
        }
        let heading = format!("### `{}`\n", input.name);
        let (start, rest) = match page.find(&heading) {
            Some(start) => (
                start,
                page[start + 4..].find("\n### ").map(|end| start + 5 + end),
            ),
            None => (page.len(), None),
        };
        let rest = rest.map_or(String::new(), |rest| page[rest..].to_owned());
        page.truncate(start);
        page = page.trim_end().to_owned() + "\n\n" + &row;
        if !rest.is_empty() {
            page += &format!("\n{rest}");
        }
        fs::write(&page_path, &page)?;
    }
    assert!(
        wrong.is_empty(),
        "not as in tests/cases/device-code.md:\n{}",
        wrong.join("\n")
    );
    Ok(())
}

#[test]
#[ignore = "needs clang 19, clang-tools-19 and nvcc 13.5: ./tests/run"]
fn each_command_says_what_the_page_says() -> Result<()> {
    compare(INPUTS)
}

#[test]
#[ignore = "needs nvcc 12.4 and wheels for ROCm: ./tests/run --all"]
fn heavy_each_command_says_what_the_page_says() -> Result<()> {
    compare(HEAVY)
}
