//! Paths of newcomers, in a clean directory with an empty cargo home: the subcommand is installed as the page says, from a
//! repository in place of GitHub's, and then the commands of a page are typed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::cargo::{cargo_home, without_own_cargo};
use gpustub_tests::command::{Ran, path_with_all, succeed};
use gpustub_tests::readme::block_commands;
use gpustub_tests::rustup::toolchain;
use gpustub_tests::{Failure, Result, repository};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    before: String,
    page: String,
    blocks: Vec<String>,
    #[serde(default)]
    installed: Vec<String>,
    after: String,
    output: String,
}

/// A newcomer's account.
struct Account<'d> {
    home: &'d Path,
}

impl Case {
    /// Commands of the blocks, and the lines that they print.
    fn commands(&self) -> Result<(String, Vec<String>)> {
        let mut script = String::new();
        let mut expected = Vec::new();
        let mut installed = self.installed.iter().collect::<BTreeSet<_>>();
        for text in &self.blocks {
            for (command, lines) in block_commands(&self.page, text)? {
                if !self.installed.contains(&command) {
                    script += &format!("{command}\n");
                    expected.extend(lines);
                }
                installed.remove(&command);
            }
        }
        assert!(installed.is_empty(), "no block has {installed:?}");
        Ok((script, expected))
    }
}

impl Case {
    /// Targets whose standard library is installed.
    fn targets(&self) -> Vec<&str> {
        (self.installed.iter())
            .filter_map(|command| command.strip_prefix("rustup target add "))
            .collect()
    }
}

impl Account<'_> {
    /// Runs a script in a directory, with both outputs in one, and with the standard libraries of these targets.
    fn run(&self, script: &str, directory: &Path, targets: &[&str]) -> Result<Ran> {
        let cargo_home = self.home.join("cargo");
        let mut directories = vec![cargo_home.join("bin")];
        if !targets.is_empty() {
            directories.push(toolchain(targets)?);
        }
        let mut bash = Command::new("bash");
        without_own_cargo(bash.current_dir(directory));
        bash.args(["-euc", &format!("exec 2>&1\n{script}")])
            .env("PATH", path_with_all(directories)?)
            // As cargo sets it, rustc of another toolchain has the libraries of the user's.
            .env_remove("LD_LIBRARY_PATH")
            .env("CARGO_HOME", &cargo_home)
            .env("WINEPREFIX", self.home.join("wine"))
            .env("GIT_CONFIG_GLOBAL", self.home.join("gitconfig"))
            .env("CARGO_NET_GIT_FETCH_WITH_CLI", "true")
            .env_remove("CARGO_NET_OFFLINE");
        succeed(&mut bash)
    }

    /// Follows the page of a case in a new directory.
    fn follow(&self, case: &Case, directory: &Path) -> Result<()> {
        fs::create_dir(directory)?;
        let (commands, mut expected) = case.commands()?;
        expected.push(case.output.clone());
        let script = [&case.before, &commands, &case.after].map(String::as_str);
        let expected = Vec::from_iter(expected.iter().map(String::as_str));
        self.run(&script.concat(), directory, &case.targets())?
            .expect_in_order(&expected)?;
        Ok(())
    }
}

#[test]
#[ignore = "compiles the subcommand and packages, with Python packages, CUDA's compiler and wine: minutes (tests/run --all)"]
fn heavy_paths_of_newcomers() -> Result<()> {
    // Outside of this repository, whose workspace cargo would add new packages to.
    let directory = tempfile::tempdir()?;
    let home = directory.path();
    cargo_home(home)?;
    let url = "https://github.com/gpustub/gpustub";
    let repository = repository();
    fs::write(
        home.join("gitconfig"),
        format!(
            "[url \"file://{}\"]\n\tinsteadOf = {url}\n[safe]\n\tdirectory = *\n",
            repository.display()
        ),
    )?;
    let account = Account { home };
    for (command, _) in block_commands("docs/install.md", "--git")? {
        account.run(&command, home, &[])?;
    }

    let text = fs::read_to_string(repository.join("tests/cases/newcomers.toml"))?;
    let cases: BTreeMap<String, Case> = toml::from_str(&text)?;
    assert!(!cases.is_empty());
    // The installation takes minutes, so one run reports all failures.
    let failures = (cases.iter())
        .filter_map(|(name, case)| {
            println!("{name}");
            let Failure(message) = account.follow(case, &home.join(name)).err()?;
            Some(format!("{name}: {message}"))
        })
        .collect::<Vec<_>>();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    Ok(())
}
