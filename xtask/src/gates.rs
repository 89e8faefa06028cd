//! `manifests/*.gates`, from the headers of all versions: what each exported function means.
//!
//! The packages are those of `tests/components/install DIR --all`; without `--all` it brings a few
//! versions, which the tests compare with the shipped files.

mod compare;
mod headers;
mod history;
mod reviewed;
mod text;
mod types;

use std::collections::BTreeSet;
use std::path::Path;

use gpustub_core::version::Version;

use crate::manifests::{diff, find, read, root};
use headers::Headers;
use history::{Evidence, History, history};
use reviewed::Reviewed;

/// A file, and what it is made from.
struct Recipe {
    id: &'static str,
    comment: &'static str,
    headers: Headers,
    /// The header by which the folder of all is found.
    header: &'static str,
    /// Folders of the components, `{}` for the version.
    folder: &'static str,
    /// Starts of the names of the libraries that export the functions.
    libraries: &'static [&'static str],
    versions: &'static [(u32, u32)],
    /// Libraries that lie elsewhere.
    elsewhere: &'static [((u32, u32), &'static str, &'static str)],
    reviewed: Reviewed,
}

const CUDA_VERSIONS: &[(u32, u32)] = &[
    (11, 7),
    (11, 8),
    (12, 0),
    (12, 1),
    (12, 2),
    (12, 3),
    (12, 4),
    (12, 5),
    (12, 6),
    (12, 8),
    (12, 9),
    (13, 0),
    (13, 1),
    (13, 2),
    (13, 3),
    (13, 4),
    (13, 5),
];

/// CUDA declares its old entry points with the first, and the variants for a stream of each thread
/// with the second.
const CUDA_MODES: &[&[&str]] = &[
    &[],
    &["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"],
    &["-D__CUDA_API_VERSION_INTERNAL"],
    &[
        "-D__CUDA_API_VERSION_INTERNAL",
        "-DCUDA_API_PER_THREAD_DEFAULT_STREAM",
    ],
];

const HIP_MODES: &[&[&str]] = &[&[], &["-DHIP_API_PER_THREAD_DEFAULT_STREAM"]];

const RECIPES: &[Recipe] = &[
    Recipe {
        id: "cuda",
        comment: "cuda.h of NVIDIA's wheels; a driver exports what the headers up to its version declare.",
        headers: Headers {
            include: &[
                "vdpau/vdpau.h",
                "cuda.h",
                "cudaGL.h",
                "cudaEGL.h",
                "cudaVDPAU.h",
            ],
            defines: &[],
            modes: CUDA_MODES,
            prefixes: &["cu"],
        },
        header: "cuda.h",
        folder: "wheels/cudart-{}",
        libraries: &[],
        versions: CUDA_VERSIONS,
        elsewhere: &[
            ((12, 2), "driver-535", "libcuda.so.1"),
            ((12, 4), "driver-550", "libcuda.so.1"),
        ],
        reviewed: reviewed::CUDA,
    },
    Recipe {
        id: "cudart",
        comment: "cuda_runtime_api.h of NVIDIA's wheels, and the exports of libcudart beside it.",
        headers: Headers {
            include: &[
                "cuda_runtime_api.h",
                "cuda_gl_interop.h",
                "cuda_egl_interop.h",
                "cuda_vdpau_interop.h",
            ],
            defines: &[],
            modes: CUDA_MODES,
            prefixes: &["cuda", "__cuda"],
        },
        header: "cuda_runtime_api.h",
        folder: "wheels/cudart-{}",
        libraries: &["libcudart.so."],
        versions: CUDA_VERSIONS,
        elsewhere: &[],
        reviewed: reviewed::CUDART,
    },
    Recipe {
        id: "hip",
        comment: "hip_runtime_api.h of Debian's packages, and the exports of libamdhip64 beside it.",
        headers: Headers {
            include: &["hip/hip_runtime_api.h"],
            defines: &["-D__HIP_PLATFORM_AMD__"],
            modes: HIP_MODES,
            prefixes: &["hip", "__hip"],
        },
        header: "hip/hip_runtime_api.h",
        folder: "hip-headers-{}",
        libraries: &["libamdhip64.so."],
        versions: &[(5, 2), (5, 7), (6, 4), (7, 2)],
        elsewhere: &[],
        reviewed: reviewed::HIP,
    },
    Recipe {
        id: "hiprtc",
        comment: "hiprtc.h of Debian's packages.",
        headers: Headers {
            include: &["hip/hiprtc.h"],
            defines: &["-D__HIP_PLATFORM_AMD__"],
            modes: &[&[]],
            prefixes: &["hiprtc"],
        },
        header: "hip/hiprtc.h",
        folder: "hip-headers-{}",
        libraries: &[],
        versions: &[(5, 2), (5, 7), (6, 4), (7, 2)],
        elsewhere: &[],
        reviewed: reviewed::NONE,
    },
    Recipe {
        id: "nvrtc",
        comment: "nvrtc.h of NVIDIA's wheels, and the exports of libnvrtc beside it.",
        headers: Headers {
            include: &["stdlib.h", "nvrtc.h"],
            defines: &[],
            modes: &[&[]],
            prefixes: &["nvrtc"],
        },
        header: "nvrtc.h",
        folder: "wheels/nvrtc-{}",
        libraries: &["libnvrtc.so."],
        versions: &[
            (11, 7),
            (11, 8),
            (12, 0),
            (12, 4),
            (12, 8),
            (12, 9),
            (13, 0),
            (13, 3),
            (13, 5),
        ],
        elsewhere: &[],
        reviewed: reviewed::NONE,
    },
];

/// What every file says of itself.
const HEAD: &str = "\
What exported functions mean, by version. Made by `cargo xtask gates`; not for editing.

`NAME VERSION=MEANING ...`: from that version on the library's NAME has that meaning; `-`: it is
gone. In a group, equal numbers are the same meaning, so that one can be bound in place of the
other. Listed are the groups in which a name changes its meaning, takes the place of another, or in
which a macro means another name than before; every other function is stable.

The meaning is the same if no memory is written beyond, and no argument misread by, what the types
of the caller's header hold. So these change it: another count, class or size of arguments; behind
a pointer, at any depth, a struct of another size, a field that moved, went away or took padding; an
enumerator with another number, unless both numbers keep what they meant under other names. These
do not: names of types, qualifiers, signs; a field renamed in place; a new field in bytes that the
older header names as reserved, or in a union that stays as large (callers set both to zero); new
enumerators, and those that count others (..._MAX). Two names that one library exports side by side
are never the same on account of their types alone: a person must have judged so. A name that is
exported but no longer declared keeps the meaning of its last declaration.
";

/// `cargo xtask gates`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let (check, components) = crate::manifests::arguments("gates", arguments)?;
    let mut same = true;
    for recipe in RECIPES {
        let path = root()
            .join("manifests")
            .join(recipe.id)
            .with_extension("gates");
        let found = recipe.read(&components, |_| true)?;
        let text = recipe.text(&found);
        if check {
            let old =
                std::fs::read_to_string(&path).map_err(|e| format!("`{}`: {e}", path.display()))?;
            let changes = diff::lines(&old, &text);
            if !changes.is_empty() {
                print!(
                    "--- manifests/{}.gates\n+++ regenerated\n{changes}",
                    recipe.id
                );
                same = false;
            }
        } else {
            std::fs::write(&path, text).map_err(|e| format!("`{}`: {e}", path.display()))?;
        }
    }
    Ok(same)
}

impl Recipe {
    /// The file.
    fn text(&self, found: &History) -> String {
        let mut comments = format!("{HEAD}\nFrom {}\n", self.comment);
        if !found.unknown.is_empty() {
            comments += "\nNot judged, since no header declares them:\n";
            let mut line = String::new();
            for name in &found.unknown {
                if line.len() + name.len() > 90 {
                    comments += &format!("{line}\n");
                    line.clear();
                }
                line += &format!("  {name}")[usize::from(!line.is_empty())..];
            }
            comments += &format!("{line}\n");
        }
        found.gates.to_text(&comments)
    }

    /// Reads the versions that `wanted` says.
    fn read(&self, components: &Path, wanted: impl Fn(Version) -> bool) -> Result<History, String> {
        let mut evidence = Vec::new();
        for &(major, minor) in self.versions {
            let version = Version::new(major, minor);
            if !wanted(version) {
                continue;
            }
            let folder = components.join(self.folder.replace("{}", &version.to_string()));
            let file = Path::new(self.header).file_name().unwrap_or_default();
            let header = find(&folder, &file.to_string_lossy())?;
            let below = Path::new(self.header).components().count();
            let headers = header.ancestors().nth(below).unwrap_or(Path::new(""));
            let mut exports: Option<BTreeSet<String>> = None;
            for library in self.libraries {
                let names = self.exports(&find(&folder, library)?)?;
                exports.get_or_insert_default().extend(names);
            }
            let headers = self.headers.read(headers)?;
            for (of, folder, library) in self.elsewhere {
                if *of == (major, minor) {
                    let names = self.exports(&find(&components.join(folder), library)?)?;
                    exports
                        .get_or_insert_with(|| headers.functions.keys().cloned().collect())
                        .extend(names);
                }
            }
            evidence.push(Evidence {
                version,
                headers,
                exports,
            });
        }
        Ok(history(&evidence, &self.reviewed))
    }

    fn exports(&self, library: &Path) -> Result<BTreeSet<String>, String> {
        let list = read(library)?;
        let names = list.functions().map(|symbol| symbol.name.clone());
        Ok(names.filter(|name| self.headers.is_name(name)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use text::{Gates, Group, Meaning};

    /// What a plain run of the tests has.
    const AT_HAND: [Version; 4] = [
        Version::new(11, 8),
        Version::new(12, 9),
        Version::new(13, 0),
        Version::new(13, 5),
    ];

    #[expect(
        clippy::disallowed_methods,
        reason = "the test says where the packages are"
    )]
    fn components() -> PathBuf {
        std::env::var("GPUSTUB_TEST_COMPONENTS")
            .expect("GPUSTUB_TEST_COMPONENTS names the folder of unpacked packages")
            .into()
    }

    fn shipped(recipe: &Recipe) -> String {
        let path = root()
            .join("manifests")
            .join(recipe.id)
            .with_extension("gates");
        std::fs::read_to_string(&path).unwrap()
    }

    #[test]
    fn shipped_files_are_in_form() {
        assert!(RECIPES.is_sorted_by_key(|recipe| recipe.id));
        for recipe in RECIPES {
            assert!(recipe.versions.is_sorted());
            let gates = Gates::parse(&shipped(recipe)).unwrap();
            let versions: Vec<_> = recipe
                .versions
                .iter()
                .map(|(a, b)| Version::new(*a, *b))
                .collect();
            assert_eq!(gates.headers, versions, "{}", recipe.id);
            let mut seen = BTreeSet::new();
            for group in &gates.groups {
                for (name, line) in &group.names {
                    assert!(seen.insert(name), "{name} stands in two groups");
                    assert!(line.is_sorted_by(|a, b| a.0 < b.0 && a.1 != b.1), "{name}");
                    assert!(line[0].1 != Meaning::Absent, "{name}");
                }
            }
        }
    }

    #[test]
    #[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their folder (tests/run)"]
    fn shipped_gates_agree_with_the_headers_at_hand() {
        let components = components();
        for recipe in RECIPES {
            let found = recipe
                .read(&components, |version| AT_HAND.contains(&version))
                .unwrap()
                .gates;
            let shipped = Gates::parse(&shipped(recipe)).unwrap();
            agree(&shipped, &found);
        }
    }

    /// Whether `all`, from many versions, says of some what `some` says, which is from these.
    fn agree(all: &Gates, some: &Gates) {
        let with = |gates: &'_ Gates, name: &str| {
            gates
                .groups
                .iter()
                .position(|group| group.names.contains_key(name))
        };
        for group in &all.groups {
            let Some(other) = group.names.keys().find_map(|name| with(some, name)) else {
                continue;
            };
            let other = &some.groups[other];
            // A name that none of the few headers declares is not in `some`.
            let known = Group {
                names: (group.names.iter())
                    .filter(|(name, _)| other.names.contains_key(*name))
                    .map(|(name, line)| (name.clone(), line.clone()))
                    .collect(),
                ..Group::default()
            };
            assert_eq!(
                known.partition(&some.headers),
                other.partition(&some.headers),
                "shipped: {:#?}\nfound: {:#?}",
                group.names,
                other.names
            );
        }
        for group in some.groups.iter().filter(|group| group.is_listed) {
            for name in group.names.keys() {
                assert!(
                    with(all, name).is_some(),
                    "{name} should be listed: {group:#?}"
                );
            }
        }
    }

    #[test]
    #[ignore = "needs the headers of all versions: GPUSTUB_TEST_COMPONENTS (tests/run --all)"]
    fn heavy_shipped_gates_are_those_of_all_headers() {
        let components = components();
        for recipe in RECIPES {
            let found = recipe.read(&components, |_| true).unwrap();
            let changes = diff::lines(&shipped(recipe), &recipe.text(&found));
            assert!(
                changes.is_empty(),
                "`cargo xtask gates` changes {}:\n{changes}",
                recipe.id
            );
        }
    }
}
