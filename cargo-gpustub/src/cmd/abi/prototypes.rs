//! Prototypes of exported functions, as C headers declare them: `data/prototypes.txt`.
//!
//! ```text
//! @gpustub-prototypes 1
//!
//! @library cudart
//! @macro cudaGetDeviceProperties 11.7=cudaGetDeviceProperties 12.0=cudaGetDeviceProperties_v2
//! cudaGetDriverEntryPoint cudaError_t @(const char *symbol, void **funcPtr)
//!     12.0 cudaError_t @(const char *symbol, void **funcPtr, unsigned long long flags)
//! cudaGetDriverEntryPoint_ptsz =cudaGetDriverEntryPoint
//! ```
//!
//! A line has a function and its first prototype, with `@` for its name, or the function that has the same prototypes.
//! A line that begins with a tab has the first release whose headers declare the function above otherwise. `@macro` has
//! a name in sources, and the function that it stands for from each release on.

use std::collections::BTreeMap;

const FILE: &str = include_str!("../../../data/prototypes.txt");

/// Prototype from a release on; the first one has no release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prototype {
    /// Release, as written.
    pub since: Option<&'static str>,
    /// Declaration of the function.
    pub text: String,
}

/// Name in sources that stands for functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macro {
    /// The name.
    pub source: &'static str,
    /// Releases, as written, and the function from each on.
    pub functions: Vec<(&'static str, &'static str)>,
}

/// Prototypes of one library.
#[derive(Debug, Default)]
pub struct Prototypes {
    /// Lines of each function, or the name behind `=`.
    lines: BTreeMap<&'static str, Vec<&'static str>>,
    /// The macros.
    pub macros: Vec<Macro>,
}

impl Prototypes {
    /// Reads the section of a library; it is empty for libraries without an ABI table.
    pub fn of(library: &str) -> Self {
        let mut prototypes = Self::default();
        let sections = FILE.split("\n@library ").skip(1);
        let section = sections
            .filter_map(|section| section.split_once('\n'))
            .find_map(|(id, lines)| (id == library).then_some(lines));
        let mut current = None;
        for line in section.unwrap_or_default().lines() {
            if let Some(later) = line.strip_prefix('\t') {
                if let Some(lines) = current.and_then(|name| prototypes.lines.get_mut(name)) {
                    lines.push(later);
                }
            } else if let Some(words) = line.strip_prefix("@macro ") {
                let mut words = words.split(' ');
                let source = words.next().unwrap_or_default();
                let functions = words.filter_map(|word| word.split_once('=')).collect();
                prototypes.macros.push(Macro { source, functions });
            } else if let Some((name, first)) = line.split_once(' ') {
                prototypes.lines.insert(name, vec![first]);
                current = Some(name);
            }
        }
        prototypes
    }

    /// Prototypes of a function, ascending; empty: no header in C that was compared declares it.
    pub fn get(&self, name: &str) -> Vec<Prototype> {
        let Some(mut lines) = self.lines.get(name) else {
            return Vec::new();
        };
        if let Some(twin) = lines[0]
            .strip_prefix('=')
            .and_then(|twin| self.lines.get(twin))
        {
            lines = twin;
        }
        let mut prototypes = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            let (since, text) = match line.split_once(' ') {
                Some((release, text)) if index > 0 => (Some(release), text),
                _ => (None, *line),
            };
            let text = text.replacen('@', name, 1);
            prototypes.push(Prototype { since, text });
        }
        prototypes
    }
}
