//! `archive extract`: a view as an ordinary archive or as files.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use gpustub_archive::{Contents, Member, SuperArchive, View};
use gpustub_engine::archive::replace;
use gpustub_superarchive::{Binding, Decompressed, Definition, Input, write_archive};
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::output::number;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::temporary::Temporary;

use super::open::{ArchiveResult, text, views};
use crate::cli::ArchiveExtract;

/// Runs the command.
pub fn run(
    archive: &SuperArchive<'_>,
    options: &ArchiveExtract,
    shell: &mut Shell,
) -> ArchiveResult<bool> {
    for view in views(archive, Some(&options.view))? {
        let mut contents = Decompressed::default();
        for member in view.members() {
            contents.add(&extracted(&member?, options.linked)?)?;
        }
        let members = members(&view, options.linked, &contents)?;
        let count = members.len();
        if let Some(path) = &options.output {
            let is_written = write_view(&members, path, &options.file)?;
            let verb = if is_written { "Extracted" } else { "Fresh" };
            shell.status(
                verb,
                format!("{}: {}", slashes(path), number(count, "member")),
            );
        } else if let Some(directory) = &options.out_dir {
            write_files(&members, directory)?;
            shell.status(
                "Extracted",
                format!("{}: {}", slashes(directory), number(count, "file")),
            );
        }
    }
    Ok(true)
}

/// The members of a view in the order of its layers, each with the symbols that it provides in the view. `linked`:
/// as linkers see them, with overridden symbols undefined; otherwise as they were.
fn members<'a>(
    view: &View<'a>,
    linked: bool,
    decompressed: &'a Decompressed,
) -> ArchiveResult<Vec<Input<'a>>> {
    let mut symbols: HashMap<usize, Vec<&'a [u8]>> = HashMap::new();
    for symbol in view.symbols() {
        let symbol = symbol?;
        symbols
            .entry(symbol.member.position())
            .or_default()
            .push(symbol.name);
    }
    let mut members = Vec::new();
    for member in view.members() {
        let member = member?;
        let mut names = symbols.remove(&member.position()).unwrap_or_default();
        names.sort();
        let symbols = names.into_iter().map(|name| Definition {
            name: Cow::Borrowed(name),
            binding: Binding::Strong,
        });
        members.push(Input {
            name: Cow::Borrowed(member.name()),
            data: decompressed.data(&extracted(&member, linked)?)?,
            symbols: symbols.collect(),
        });
    }
    Ok(members)
}

/// Contents of a member as linkers see them, or as they were.
fn extracted<'a>(member: &Member<'a>, linked: bool) -> ArchiveResult<Contents<'a>> {
    let contents = member.contents();
    Ok(if linked {
        contents
    } else {
        contents.original()?
    })
}

/// Writes members as an ordinary archive. Returns whether the file changed.
fn write_view(members: &[Input<'_>], path: &Path, super_archive: &Path) -> Result<bool> {
    if let Ok(output) = path.canonicalize()
        && super_archive
            .canonicalize()
            .is_ok_and(|input| input == output)
    {
        let error = Error::new(format!("`{}` is the super-archive itself", slashes(path)));
        return Err(error.help("write another file: `-o view.a`"));
    }
    replace(path, &|mut out: &mut dyn Write| {
        write_archive(members, &mut out)
    })
    .map_err(|e| Error::io("write", path, &e))
}

/// Writes members as files, without overwriting files or writing outside of the directory.
fn write_files(members: &[Input<'_>], directory: &Path) -> Result<()> {
    let mut names = HashSet::new();
    let mut files = Vec::new();
    for member in members {
        let name = String::from_utf8_lossy(&member.name);
        let is_plain = !name.is_empty() && name != "." && name != "..";
        if !is_plain || name.contains(['/', '\\', '\0']) {
            let error = Error::new(format!(
                "member name `{}` is no file name",
                text(&member.name)
            ));
            return Err(error.help("extract an archive with `-o`"));
        }
        // Archives may have several members of one name.
        let mut file_name = name.to_string();
        let mut number = 2;
        while !names.insert(file_name.clone()) {
            file_name = match name.rsplit_once('.') {
                Some((stem, extension)) if !stem.is_empty() => {
                    format!("{stem}-{number}.{extension}")
                }
                _ => format!("{name}-{number}"),
            };
            number += 1;
        }
        files.push((directory.join(file_name), member.data));
    }
    fs::create_dir_all(directory).map_err(|e| Error::io("create", directory, &e))?;
    for (path, data) in files {
        Temporary::create(|| {
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)?;
            Ok((path.clone(), file))
        })
        .and_then(|(_temporary, mut file)| file.write_all(data))
        .map_err(|e| Error::io("write", &path, &e))?;
    }
    Ok(())
}
