//! Typical machines, from `tests/cases/search.toml`.

use std::collections::BTreeMap;

use gpustub_tests::{Result, repository};
use serde::Deserialize;

use crate::world::{Choice, Config, Content, Start, Workshop, World};
use crate::{loader_directories, mistakes, reports};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Case {
    /// Libraries in `GpuStub.toml` with their keys, in the order of the requests.
    stubs: BTreeMap<String, Choice>,
    /// Path of the program.
    #[serde(default = "app")]
    program: String,
    #[serde(default)]
    start: Start,
    /// Files of the machine: a library (`cudart 12.9`), one without the required function
    /// (`cudart 12.9 lacks`), a file (`machine-mismatch`, `short`, `truncated`, `text`), or `-> path`.
    files: BTreeMap<String, String>,
    /// Directories that are links.
    #[serde(default)]
    links: BTreeMap<String, String>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    #[serde(default)]
    preloads: Vec<String>,
    /// The order of the program's requests, if it is not that of the names.
    #[serde(default)]
    order: Vec<String>,
    /// File that each library must come from; empty: it must be unavailable.
    expect: BTreeMap<String, String>,
    /// Words of the reason for which a file is rejected.
    #[serde(default)]
    why: BTreeMap<String, String>,
}

fn app() -> String {
    "/app/program".to_owned()
}

impl Case {
    fn world(&self) -> Result<World> {
        let mut files = Vec::new();
        for (path, content) in &self.files {
            files.push((path.clone(), parse(content)?));
        }
        let order = match &self.order[..] {
            [] => self.stubs.keys().cloned().collect(),
            order => order.to_vec(),
        };
        Ok(World {
            config: Config {
                stubs: self.stubs.clone(),
            },
            program: self.program.clone(),
            start: self.start,
            links: self.links.clone().into_iter().collect(),
            files,
            variables: self.variables.clone(),
            preloads: self.preloads.clone(),
            order,
        })
    }

    /// Differences between the expected and the found libraries.
    fn mistakes(&self, workshop: &mut Workshop, system: &[String]) -> Result<Vec<String>> {
        let world = self.world()?;
        // The model's result must hold also: it explains every file.
        let mut mistakes = mistakes(workshop, &world, system)?;
        let reports = reports(&workshop.run(&world)?)?;
        for (id, path) in &self.expect {
            let reported = reports.get(id).and_then(|report| report["path"].as_str());
            if reported.unwrap_or_default() != path {
                mistakes.push(format!("{id} comes from {reported:?}, not from {path:?}"));
            }
        }
        for (path, words) in &self.why {
            let is_rejected = reports
                .values()
                .filter_map(|report| report["candidates"].as_array())
                .flatten()
                .filter(|candidate| candidate["name"] == path[..])
                .filter_map(|candidate| candidate["reason"].as_str())
                .any(|reason| reason.contains(words));
            if !is_rejected {
                mistakes.push(format!("{path} is not rejected because {words:?}"));
            }
        }
        Ok(mistakes)
    }
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn parse(text: &str) -> Result<Content> {
    if let Some(to) = text.strip_prefix("-> ") {
        return Ok(Content::Link(to.to_owned()));
    }
    let mut words = text.split(' ');
    let (id, version) = (words.next().unwrap_or_default(), words.next());
    let version = version.and_then(numbers);
    let soname = match (id, version) {
        ("machine-mismatch", _) => return Ok(Content::WrongMachine),
        ("short", _) => return Ok(Content::Short),
        ("truncated", _) => return Ok(Content::Truncated),
        ("text", _) => return Ok(Content::Text),
        ("cudart", Some((11, _))) => "libcudart.so.11.0".to_owned(),
        ("nvrtc", Some((11, _))) => "libnvrtc.so.11.2".to_owned(),
        ("cudart" | "nvrtc", Some((major, _))) => format!("lib{id}.so.{major}"),
        ("cuda", Some(_)) => "libcuda.so.1".to_owned(),
        ("opencl", None) => "libOpenCL.so.1".to_owned(),
        _ => return Err(format!("unknown content {text:?}").into()),
    };
    let (major, minor) = version.unwrap_or_default();
    Ok(Content::Library {
        soname,
        version: major * 1000 + minor * 10,
        lacks: words.next() == Some("lacks"),
    })
}

#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn search_finds_the_expected_files() -> Result<()> {
    let file = repository().join("tests/cases/search.toml");
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let cases: BTreeMap<String, Case> = toml::from_str(&text)?;
    let system = loader_directories()?;
    let mut workshop = Workshop::new()?;
    let mut failed = Vec::new();
    for (name, case) in &cases {
        let mistakes = case
            .mistakes(&mut workshop, &system)
            .unwrap_or_else(|failure| vec![failure.0]);
        if !mistakes.is_empty() {
            failed.push(format!("{name}:\n  {}", mistakes.join("\n  ")));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Every variable, `$ORIGIN` and the site-packages around the program name directories with
/// libraries: all are the caller's choice, and none is searched.
#[test]
#[ignore = "needs root: ./tests/run"]
fn set_user_id_program_reads_no_variable() -> Result<()> {
    let text = r#"
        stubs = { cuda = {}, cudart = { search-dirs = ["$ORIGIN"] }, nvrtc = {} }
        program = "/env/lib/python3.12/site-packages/pkg/program"
        files."/usr/local/cuda-12.9/lib64/libcudart.so.12" = "cudart 12.9"
        files."/env/lib/python3.12/site-packages/pkg/libcudart.so.13" = "cudart 13.0"
        files."/env/lib/python3.12/site-packages/nvidia/cu13/lib/libcudart.so.13" = "cudart 13.0"
        files."/trap/lib/libcudart.so.13" = "cudart 13.0"
        files."/trap/lib/libnvrtc.so.13" = "nvrtc 13.0"
        files."/trap/lib/libcuda.so.1" = "cuda 13.0"
        files."/trap/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13" = "nvrtc 13.0"
        variables = { GPUSTUB_LOG = "1", GPUSTUB_TRACE = "1" }
        expect = {}
    "#;
    let case: Case = toml::from_str(text)?;
    let mut workshop = Workshop::new()?;
    let world = case.world()?;
    let words = world.arguments();
    let words: Vec<&str> = words.iter().map(|word| &word[..]).collect();
    for (name, value) in [
        ("GPUSTUB_CUDART_PATH", "/trap/lib/libcudart.so.13"),
        ("GPUSTUB_CUDA_PATH", "/trap/lib"),
        ("VIRTUAL_ENV", "/trap"),
        ("CONDA_PREFIX", "/trap"),
        ("CUDA_HOME", "/trap"),
        ("CUDA_PATH", "/trap"),
        ("LD_LIBRARY_PATH", "/trap/lib"),
    ] {
        let variables = [(name, value), ("GPUSTUB_LOG", "1"), ("GPUSTUB_TRACE", "1")];
        let machine = workshop.build(&world)?;
        let ran = machine.run_with(&world.program, &words, &variables)?;
        assert!(
            ran.success()?.stdout.contains("/trap"),
            "{name} leads nowhere"
        );

        let machine = workshop.build(&world)?;
        let ran = machine.run_set_user_id(&world.program, &words, &variables)?;
        let ran = ran.success()?;
        assert_eq!(
            ran.stdout,
            "cuda nowhere\ncudart /usr/local/cuda-12.9/lib64/libcudart.so.12\nnvrtc nowhere\n",
            "{name}"
        );
        assert_eq!(ran.stderr, "", "{name}");
    }
    Ok(())
}

/// The path by which a program is started is the caller's choice, too.
#[test]
#[ignore = "needs root: ./tests/run"]
fn set_user_id_program_searches_no_environment_of_its_path() -> Result<()> {
    let text = r#"
        stubs = { cudart = {} }
        program = "/venv/bin/program"
        files."/venv/pyvenv.cfg" = "text"
        files."/venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcudart.so.13" = "cudart 13.0"
        expect = {}
    "#;
    let case: Case = toml::from_str(text)?;
    let world = case.world()?;
    let words = world.arguments();
    let words: Vec<&str> = words.iter().map(|word| &word[..]).collect();
    let mut workshop = Workshop::new()?;
    let machine = workshop.build(&world)?;
    let ran = machine.run_with(&world.program, &words, &[])?.success()?;
    assert!(ran.stdout.contains("/venv/lib"), "{}", ran.stdout);
    let ran = machine
        .run_set_user_id(&world.program, &words, &[])?
        .success()?;
    assert_eq!(ran.stdout, "cudart nowhere\n");
    Ok(())
}
