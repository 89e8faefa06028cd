//! Archives as LLVM's tools read them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::Result;
use crate::command::succeed;

/// Members of an archive, or of files in its place.
pub struct Archive {
    /// Members, in the order of the archive.
    pub members: Vec<Member>,
    /// Position of the first member that defines a symbol.
    pub index: BTreeMap<Arc<str>, usize>,
}

/// A member of an [`Archive`]. Copies share the contents.
#[derive(Clone)]
pub struct Member {
    /// Name in the archive.
    pub name: String,
    /// Contents.
    pub data: Arc<[u8]>,
    /// Symbols that it defines.
    pub symbols: Vec<Arc<str>>,
}

impl Member {
    /// A file, with the symbols that `llvm-nm` prints.
    pub fn read(file: &Path) -> Result<Self> {
        let mut nm = Command::new("llvm-nm-19");
        nm.args(["--defined-only", "--extern-only", "--format=just-symbols"]);
        let symbols = succeed(nm.arg(file))?.stdout;
        let name = file.file_name().unwrap_or_default();
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            data: fs::read(file)?.into(),
            symbols: symbols.lines().map(Arc::from).collect(),
        })
    }
}

impl Archive {
    /// Members as `llvm-ar` prints them, symbols as the archive's own index has them.
    pub fn read(file: &Path) -> Result<Self> {
        let mut members: Vec<Member> = Vec::new();
        let list = succeed(Command::new("llvm-ar-19").arg("tv").arg(file))?;
        let contents = Command::new("llvm-ar-19").arg("p").arg(file).output()?;
        let mut rest = &contents.stdout[..];
        for line in list.stdout.lines() {
            // Mode, owner, size, date in four words, name.
            let words: Vec<&str> = line.split_whitespace().collect();
            let (size, name) = match words[..] {
                [_, _, size, _, _, _, _, name] => (size.parse::<usize>()?, name.to_owned()),
                _ => return Err(list.error(line)),
            };
            let data = rest.get(..size).ok_or_else(|| list.error("too large"))?;
            rest = &rest[size..];
            members.push(Member {
                name,
                data: data.into(),
                symbols: Vec::new(),
            });
        }
        assert!(rest.is_empty(), "{}: {}", file.display(), rest.len());
        let mut positions: BTreeMap<String, usize> = BTreeMap::new();
        for (position, member) in members.iter().enumerate() {
            positions.insert(member.name.clone(), position);
        }
        // The index names members by their names.
        assert_eq!(positions.len(), members.len(), "{}", file.display());

        let mut nm = Command::new("llvm-nm-19");
        let map = succeed(nm.args(["--print-armap", "--just-symbol-name"]).arg(file))?;
        // An archive without symbols has no such section.
        let lines = map.stdout.lines().skip_while(|line| *line != "Archive map");
        for line in lines.skip(1).take_while(|line| !line.is_empty()) {
            let (symbol, member) = line.split_once(" in ").ok_or_else(|| map.error(line))?;
            let position = *positions.get(member).ok_or_else(|| map.error(line))?;
            members[position].symbols.push(symbol.into());
        }
        Ok(members.into())
    }
}

impl From<Vec<Member>> for Archive {
    fn from(members: Vec<Member>) -> Self {
        let mut index = BTreeMap::new();
        for (position, member) in members.iter().enumerate() {
            for symbol in &member.symbols {
                index.entry(Arc::clone(symbol)).or_insert(position);
            }
        }
        Self { members, index }
    }
}
