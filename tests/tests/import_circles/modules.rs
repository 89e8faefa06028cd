//! Modules of a crate, and which file imports from which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path as FilePath, PathBuf};

use gpustub_tests::Result;
use proc_macro2::TokenStream;

use crate::scan::{self, Contents, Path};

type ModuleId = usize;

struct Module {
    file: PathBuf,
    parent: Option<ModuleId>,
    children: BTreeMap<String, ModuleId>,
    contents: Contents,
}

/// The modules of a crate; the first is its root.
pub struct Modules {
    modules: Vec<Module>,
    /// The file of each `macro_rules!`.
    macros: BTreeMap<String, PathBuf>,
}

/// Target of a path.
enum Target {
    Module(ModuleId),
    /// An item that this file defines.
    Item(PathBuf),
}

/// A chain of re-exports is followed this far.
const MAX_DEPTH: usize = 16;

impl Modules {
    /// Reads the crate with this root file.
    pub fn read(root: &FilePath) -> Result<Self> {
        let mut crate_modules = Self {
            modules: Vec::new(),
            macros: BTreeMap::new(),
        };
        let directory = root.parent().ok_or("no directory")?.to_owned();
        crate_modules.add_file(root, &directory, None)?;
        Ok(crate_modules)
    }

    /// Adds the module in `file`; those that it declares are in `directory`.
    fn add_file(
        &mut self,
        file: &FilePath,
        directory: &FilePath,
        parent: Option<ModuleId>,
    ) -> Result<ModuleId> {
        let text = fs::read_to_string(file)?;
        let tokens: TokenStream = text
            .parse()
            .map_err(|error| format!("{}: {error}", file.display()))?;
        self.add(file, directory, parent, scan::read(tokens))
    }

    fn add(
        &mut self,
        file: &FilePath,
        directory: &FilePath,
        parent: Option<ModuleId>,
        mut contents: Contents,
    ) -> Result<ModuleId> {
        let id = self.modules.len();
        for name in &contents.macros {
            self.macros.insert(name.clone(), file.to_owned());
        }
        let inline = std::mem::take(&mut contents.inline);
        let declarations = std::mem::take(&mut contents.declarations);
        self.modules.push(Module {
            file: file.to_owned(),
            parent,
            children: BTreeMap::new(),
            contents,
        });
        for (name, contents) in inline {
            let child = self.add(file, &directory.join(&name), Some(id), contents)?;
            self.modules[id].children.insert(name, child);
        }
        for declaration in declarations {
            let name = declaration.name;
            let below = directory.join(&name);
            let (path, directory) = match declaration.path {
                Some(path) => {
                    let path = file.parent().ok_or("no directory")?.join(path);
                    let directory = path.parent().ok_or("no directory")?.to_owned();
                    (path, directory)
                }
                None if below.join("mod.rs").is_file() => (below.join("mod.rs"), below),
                None => (directory.join(format!("{name}.rs")), below),
            };
            let child = self.add_file(&path, &directory, Some(id))?;
            self.modules[id].children.insert(name, child);
        }
        Ok(id)
    }

    /// For each file, the files that it imports from.
    ///
    /// A file imports from the file that *defines* what a path names: re-exports on the way are
    /// followed, and a path to a module counts once something in the module is named. A re-export is an
    /// import, and so is a call by a child's name (`child::f()`); only `mod child;` alone is none. What is
    /// under `#[cfg(test)]` is left out.
    pub fn imports(&self) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
        let mut imports: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for (id, module) in self.modules.iter().enumerate() {
            let mut add = |target: Option<Target>| {
                if let Some(Target::Item(file)) = target
                    .filter(|target| !matches!(target, Target::Item(file) if *file == module.file))
                {
                    imports.entry(module.file.clone()).or_default().insert(file);
                }
            };
            let contents = &module.contents;
            for path in contents.imports.values() {
                add(self.resolve(id, path, 0));
            }
            for glob in &contents.globs {
                for name in &contents.identifiers {
                    add(self.resolve_glob(id, glob, name, 0));
                }
            }
            for path in &contents.paths {
                let is_macro = path.len() == 1;
                if is_macro && !contents.imports.contains_key(&path[0]) {
                    add(self.macros.get(&path[0]).cloned().map(Target::Item));
                } else if !is_macro {
                    add(self.resolve(id, path, 0));
                }
            }
        }
        imports
    }

    /// Resolves a path that is written in a module; `None`: it leads out of the crate.
    fn resolve(&self, from: ModuleId, path: &Path, depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        if depth > MAX_DEPTH {
            return None;
        }
        let mut module = match first.as_str() {
            "crate" => self.root_of(from),
            "self" => from,
            "super" => self.modules[from].parent?,
            name => match self.find(from, name, depth)? {
                Target::Module(module) => module,
                item => return Some(item),
            },
        };
        for name in rest {
            if name == "super" {
                module = self.modules[module].parent?;
                continue;
            }
            module = match self.find(module, name, depth) {
                Some(Target::Module(module)) => module,
                Some(item) => return Some(item),
                None => {
                    let file = self.macros.get(name).filter(|_| path[0] == "crate");
                    let file = file.unwrap_or(&self.modules[module].file);
                    return Some(Target::Item(file.clone()));
                }
            };
        }
        Some(Target::Module(module))
    }

    /// Finds a name in the scope of a module.
    fn find(&self, module: ModuleId, name: &str, depth: usize) -> Option<Target> {
        let Module {
            file,
            children,
            contents,
            ..
        } = &self.modules[module];
        if let Some(child) = children.get(name) {
            return Some(Target::Module(*child));
        }
        if contents.items.contains(name) {
            return Some(Target::Item(file.clone()));
        }
        if let Some(path) = contents.imports.get(name) {
            return self.resolve(module, path, depth + 1);
        }
        let mut globs = contents.globs.iter();
        globs.find_map(|glob| self.resolve_glob(module, glob, name, depth + 1))
    }

    /// Finds a name behind `glob::*`.
    fn resolve_glob(
        &self,
        from: ModuleId,
        glob: &Path,
        name: &str,
        depth: usize,
    ) -> Option<Target> {
        match self.resolve(from, glob, depth + 1)? {
            Target::Module(module) if module != from && depth < MAX_DEPTH => {
                self.find(module, name, depth + 1)
            }
            Target::Module(_) => None,
            // The variants of an enum.
            item => Some(item),
        }
    }

    fn root_of(&self, mut module: ModuleId) -> ModuleId {
        while let Some(parent) = self.modules[module].parent {
            module = parent;
        }
        module
    }
}

/// Groups of files that import from each other, directly or not.
pub fn circles(imports: &BTreeMap<PathBuf, BTreeSet<PathBuf>>) -> Vec<BTreeSet<PathBuf>> {
    let reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = imports
        .keys()
        .map(|file| (file, reach(imports, file)))
        .collect();
    let mut circles: Vec<BTreeSet<PathBuf>> = Vec::new();
    for (file, to) in &reached {
        if to.contains(file) && !circles.iter().any(|circle| circle.contains(*file)) {
            let mutual = to.iter().filter(|other| {
                let back = reached.get(*other);
                back.is_some_and(|back| back.contains(file))
            });
            circles.push(mutual.map(|file| (*file).clone()).collect());
        }
    }
    circles
}

fn reach<'a>(
    imports: &'a BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    from: &PathBuf,
) -> BTreeSet<&'a PathBuf> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&PathBuf> = imports.get(from).into_iter().flatten().collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(imports.get(file).into_iter().flatten());
        }
    }
    reached
}
