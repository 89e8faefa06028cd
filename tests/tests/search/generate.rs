//! Random machines, with few directories, names and values, so that these coincide.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::world::{Choice, Config, Content, Start, World};

const PROGRAMS: [&str; 6] = [
    "/app/bin/program",
    "/venv/bin/program",
    "/conda/bin/program",
    "/conda/lib/python3.12/site-packages/pkg/program",
    "/home/u/env/lib/python3.11/site-packages/pkg/bin/program",
    "/usr/lib/python3/dist-packages/pkg/program",
];

/// Directories of toolkit libraries, and decoys.
const TOOLKIT: [&str; 41] = [
    "/srv/search",
    "/app/lib",
    "/app/bin",
    "/home/u/env/lib/python3.11/site-packages/nvidia/cu13/lib",
    "/home/u/env/lib/python3.11/site-packages/nvidia/cuda_runtime/lib",
    "/home/u/env/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib",
    "/usr/lib/python3/dist-packages/nvidia/cu13/lib",
    "/usr/lib/python3/dist-packages/nvidia/cuda_runtime/lib",
    "/venv/lib/python3.9/site-packages/nvidia/cu13/lib",
    "/venv/lib/python3.11/site-packages/nvidia/cuda_runtime/lib",
    "/venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib",
    "/conda/lib",
    "/conda/lib/python3.12/site-packages/nvidia/cuda_runtime/lib",
    "/conda/targets/x86_64-linux/lib",
    "/ld/a",
    "/ld/b",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/home/cuda/lib64",
    "/home/cuda/targets/x86_64-linux/lib",
    "/home/cuda/lib",
    "/home/cuda/lib64/stubs",
    "/path/lib64",
    "/path/lib",
    "/usr/local/cuda-12.9/lib64",
    "/usr/local/cuda-12.10/lib64",
    "/usr/local/cuda-12.10/lib64/stubs",
    "/usr/local/cuda-13.0/lib64",
    "/usr/local/cuda-13.0/targets/x86_64-linux/lib",
    "/usr/local/cuda-11/lib64",
    "/usr/local/cuda/lib64",
    "/usr/local/cuda/lib64/stubs",
    "/opt/cuda/lib64",
    "/opt/cuda/lib",
    "/rel/lib64",
    "/rel/lib",
    "/rel",
    "/usr/local/lib",
    "/usr/lib/wsl/lib",
    "/override",
    "/override/stubs",
];

/// Directories of drivers, and decoys.
const DRIVER: [&str; 16] = [
    "/srv/search",
    "/app/lib",
    "/usr/lib/wsl/lib",
    "/ld/a",
    "/ld/b",
    "/run/opengl-driver/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu/tegra",
    "/usr/local/cuda/lib64/stubs",
    "/usr/local/cuda/compat",
    "/home/cuda/lib64",
    "/override",
    "/rel",
];

const ACME: [&str; 9] = [
    "/srv/search",
    "/app/lib",
    "/ld/a",
    "/ld/b",
    "/usr/lib/x86_64-linux-gnu",
    "/home/cuda/lib64",
    "/override",
    "/override/stubs",
    "/usr/lib",
];

/// Load name, with the soname and the versions that a library behind it may have.
type Name = (&'static str, &'static str, [u32; 2]);

const CUDART: [Name; 6] = [
    ("libcudart.so.13", "libcudart.so.13", [13000, 13010]),
    ("libcudart.so.12", "libcudart.so.12", [12020, 12090]),
    ("libcudart.so.11.0", "libcudart.so.11.0", [11040, 11080]),
    ("libcudart.so", "libcudart.so.13", [13000, 13010]),
    ("libcudart.so", "libcudart.so.12", [12020, 12090]),
    ("libcudart.so", "libcudart.so.11.0", [11040, 11080]),
];
const NVRTC: [Name; 5] = [
    ("libnvrtc.so.13", "libnvrtc.so.13", [13000, 13010]),
    ("libnvrtc.so.12", "libnvrtc.so.12", [12020, 12090]),
    ("libnvrtc.so.11.2", "libnvrtc.so.11.2", [11020, 11080]),
    ("libnvrtc.so.11.1", "libnvrtc.so.11.1", [11010, 11010]),
    ("libnvrtc.so", "libnvrtc.so.12", [12020, 12090]),
];
const CUDA: [Name; 4] = [
    ("libcuda.so.1", "libcuda.so.1", [11040, 12020]),
    ("libcuda.so.1", "libcuda.so.1", [12090, 13000]),
    ("libcuda.so.1", "libcuda.so.1", [11080, 12040]),
    ("libcuda.so", "libcuda.so.1", [11040, 13000]),
];
const ACME_NAMES: [Name; 3] = [
    ("libacme.so.3", "libacme.so.3", [0, 0]),
    ("libacme.so.2", "libacme.so.2", [0, 0]),
    ("libacme.so", "libacme.so.3", [0, 0]),
];

fn choice(
    majors: &[u32],
    header: Option<u32>,
    dirs: &[&str],
    require: bool,
    min_version: Option<(u32, u32)>,
) -> Choice {
    Choice {
        majors: majors.to_vec(),
        header,
        search_dirs: dirs.iter().map(|dir| (*dir).to_owned()).collect(),
        require,
        min_version,
    }
}

fn config(cudart: Choice, nvrtc: Choice, cuda: Option<Choice>, acme: Choice) -> Config {
    Config {
        stubs: [
            ("cudart", Some(cudart)),
            ("nvrtc", Some(nvrtc)),
            ("cuda", cuda),
            ("acme", Some(acme)),
        ]
        .into_iter()
        .filter_map(|(id, choice)| Some((id.to_owned(), choice?)))
        .collect(),
    }
}

/// Programs take time to compile: a few random configurations, each used once.
fn configs() -> Vec<Config> {
    let plain = Choice::default;
    vec![
        config(plain(), plain(), Some(plain()), plain()),
        config(plain(), plain(), None, plain()),
        config(
            choice(&[12, 11], Some(12), &["/srv/search"], false, None),
            choice(&[12, 11], None, &["/srv/search"], true, None),
            Some(choice(&[], None, &["/srv/search"], false, Some((12, 4)))),
            choice(&[2, 3], None, &["/srv/search"], true, None),
        ),
        config(
            choice(
                &[],
                Some(12),
                &["$ORIGIN/../lib", "/srv/search"],
                false,
                Some((12, 4)),
            ),
            choice(&[], Some(11), &["$ORIGIN/../lib"], false, Some((11, 2))),
            Some(choice(&[], None, &["$ORIGIN/../lib"], true, None)),
            choice(&[3], None, &["$ORIGIN/../lib"], false, None),
        ),
        config(
            choice(&[], Some(11), &[], true, None),
            choice(&[11, 13], Some(13), &["$ORIGIN"], true, Some((11, 5))),
            Some(plain()),
            choice(&[], None, &["$ORIGIN", "/srv/search"], true, None),
        ),
        config(
            choice(&[13], Some(13), &["/srv/search", "$ORIGIN"], true, None),
            choice(&[], Some(13), &[], false, None),
            None,
            plain(),
        ),
    ]
}

fn content(name: Name) -> BoxedStrategy<Content> {
    let (_, soname, versions) = name;
    let library = move |newer: bool, lacks| Content::Library {
        soname: soname.to_owned(),
        version: versions[usize::from(newer)],
        lacks,
    };
    prop_oneof![
        12 => any::<bool>().prop_map(move |newer| library(newer, false)),
        3 => any::<bool>().prop_map(move |newer| library(newer, true)),
        1 => Just(Content::WrongMachine),
        1 => Just(Content::Short),
        1 => Just(Content::Truncated),
        1 => Just(Content::Text),
        1 => Just(Content::Link(format!("/store/{soname}"))),
        1 => Just(Content::Link(format!("/store/stubs/{soname}"))),
        1 => Just(Content::Link("/store/nothing".to_owned())),
    ]
    .boxed()
}

fn file_of(
    directories: &'static [&'static str],
    names: &'static [Name],
) -> BoxedStrategy<(String, Content)> {
    (select(directories), select(names))
        .prop_flat_map(|(directory, name)| {
            content(name).prop_map(move |content| (format!("{directory}/{}", name.0), content))
        })
        .boxed()
}

fn file() -> BoxedStrategy<(String, Content)> {
    prop_oneof![
        9 => file_of(&TOOLKIT, &CUDART),
        6 => file_of(&TOOLKIT, &NVRTC),
        4 => file_of(&DRIVER, &CUDA),
        3 => file_of(&ACME, &ACME_NAMES),
    ]
    .boxed()
}

fn variables() -> BoxedStrategy<BTreeMap<String, String>> {
    let listed = subsequence(
        vec![
            "/ld/a",
            "/ld/b",
            "/usr/local/cuda/lib64/stubs",
            "/home/cuda/lib64",
            "/conda/lib",
            "/none",
        ],
        0..=4,
    );
    let any_of = |values: &'static [&'static str]| weighted(0.6, select(values));
    (
        listed.prop_shuffle(),
        any_of(&["/venv", "/venv", "venv", ""]),
        any_of(&["/conda", "/conda", "rel", "."]),
        any_of(&["/home/cuda", "/home/cuda", "/usr/local/cuda", "rel", ""]),
        any_of(&["/path", "/path", "/home/cuda", "rel"]),
    )
        .prop_map(|(listed, environment, conda, home, path)| {
            let mut variables = BTreeMap::new();
            if !listed.is_empty() {
                variables.insert("LD_LIBRARY_PATH".to_owned(), listed.join(":"));
            }
            for (name, value) in [
                ("VIRTUAL_ENV", environment),
                ("CONDA_PREFIX", conda),
                ("CUDA_HOME", home),
                ("CUDA_PATH", path),
            ] {
                if let Some(value) = value {
                    variables.insert(name.to_owned(), value.to_owned());
                }
            }
            variables
        })
        .boxed()
}

/// Values of the override variables: words, directories, or one of the files.
fn overrides() -> impl Strategy<Value = Vec<(&'static str, Option<&'static str>, Index)>> {
    let variable = select(vec![
        "GPUSTUB_CUDART_PATH",
        "GPUSTUB_NVRTC_PATH",
        "GPUSTUB_CUDA_PATH",
        "GPUSTUB_ACME_PATH",
    ]);
    let value = weighted(
        0.7,
        select(vec![
            "off",
            "rel",
            "/override",
            "/override",
            "/ld/a",
            "/override/stubs",
            "/conda/lib",
            "/no/such",
        ]),
    );
    prop_oneof![
        3 => Just(Vec::new()),
        2 => vec((variable, value, any::<Index>()), 1..3),
    ]
}

pub fn world() -> impl Strategy<Value = World> {
    let store = (0..2_usize, any::<bool>(), any::<bool>());
    let start = prop_oneof![
        4 => Just(Start::Directly),
        1 => Just(Start::ThroughLoader),
        1 => Just(Start::ThroughLoaderRelative),
        1 => Just(Start::WithoutProc),
        1 => Just(Start::ByLink),
    ];
    let marks = subsequence(vec!["/venv/pyvenv.cfg", "/conda/conda-meta/history"], 0..=2);
    (
        (
            select(configs()),
            select(&PROGRAMS[..]),
            weighted(
                0.3,
                select(vec!["/usr/local/cuda-12.9", "/usr/local/cuda-13.0"]),
            ),
        ),
        vec(file(), 0..24),
        variables(),
        overrides(),
        prop_oneof![2 => Just(Vec::new()), 1 => vec(any::<Index>(), 1..3)],
        Just(vec!["acme", "cuda", "cudart", "nvrtc"]).prop_shuffle(),
        store,
        (start, marks),
    )
        .prop_map(
            |(
                (config, program, cuda),
                mut files,
                mut variables,
                overrides,
                preloads,
                mut order,
                store,
                (start, marks),
            )| {
                for (variable, value, index) in overrides {
                    let value = match (value, &files[..]) {
                        (Some(value), _) => value.to_owned(),
                        (None, []) => "/override".to_owned(),
                        (None, files) => index.get(files).0.clone(),
                    };
                    variables.insert(variable.to_owned(), value);
                }
                let preloads = if files.is_empty() {
                    Vec::new()
                } else {
                    preloads
                        .iter()
                        .map(|index| index.get(&files).0.clone())
                        .collect()
                };
                let (newer, lacks, link) = store;
                for name in CUDART.iter().chain(&NVRTC).chain(&CUDA).chain(&ACME_NAMES) {
                    let library = Content::Library {
                        soname: name.1.to_owned(),
                        version: name.2[newer],
                        lacks,
                    };
                    for directory in ["/store", "/store/stubs"] {
                        let path = format!("{directory}/{}", name.1);
                        if files
                            .iter()
                            .any(|(_, content)| *content == Content::Link(path.clone()))
                        {
                            files.push((path, library.clone()));
                        }
                    }
                }
                files.extend(marks.iter().map(|mark| ((*mark).to_owned(), Content::Text)));
                order.retain(|id| config.stubs.contains_key(*id));
                let mut links: Vec<_> = cuda
                    .map(|to| ("/usr/local/cuda".to_owned(), to.to_owned()))
                    .into_iter()
                    .collect();
                if link {
                    links.push((
                        "/ld/b".to_owned(),
                        "/usr/local/cuda-12.10/lib64/stubs".to_owned(),
                    ));
                }
                let order = order.iter().map(|id| (*id).to_owned()).collect();
                World {
                    config,
                    program: program.to_owned(),
                    start,
                    links,
                    files,
                    variables,
                    preloads,
                    order,
                }
            },
        )
}
