//! Directories.

use std::fs::{self, DirEntry, File};
use std::io;
use std::path::Path;

use super::members::MemberReader;
use super::source::Source;
use super::{PackageReader, is_scratch_error};
use crate::display_path::printable;
use crate::package::{FlawKind, Package};

impl PackageReader<'_> {
    /// Reads a directory, which has the path `member_path` in the package.
    pub(super) fn directory(
        &mut self,
        path: &Path,
        member_path: &str,
        package: &mut Package,
    ) -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = printable(entry.file_name().as_encoded_bytes());
            let entry_path = match member_path {
                "" => name,
                directory => format!("{directory}/{name}"),
            };
            match self.directory_entry(&entry, &entry_path, package) {
                Err(error) if is_scratch_error(&error) => return Err(error),
                // Deleted in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => package.flaw(&entry_path, FlawKind::Unreadable, error.to_string()),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn directory_entry(
        &mut self,
        entry: &DirEntry,
        member_path: &str,
        package: &mut Package,
    ) -> io::Result<()> {
        let kind = entry.file_type()?;
        // Special files, such as pipes, are skipped: reading one may block indefinitely.
        if kind.is_dir() {
            self.directory(&entry.path(), member_path, package)
        } else if kind.is_file() {
            let file = File::open(entry.path())?;
            let size = file.metadata()?.len();
            self.member(
                package,
                member_path.to_owned(),
                &mut Source::file(file, size),
            )
        } else if kind.is_symlink() {
            if self.leads_out(&entry.path()) {
                let message = "a symbolic link out of the directory, which is not followed";
                package.flaw(member_path, FlawKind::Skipped, message.into());
            }
            Ok(())
        } else {
            let message = "a pipe, socket or device";
            package.flaw(member_path, FlawKind::Special, message.into());
            Ok(())
        }
    }

    /// Whether a symbolic link names a file or directory outside of the one that is read. Links are not followed: targets
    /// within the directory are read at their own paths.
    fn leads_out(&self, link: &Path) -> bool {
        let target = fs::canonicalize(link);
        target.is_ok_and(|target| {
            (target.is_file() || target.is_dir()) && !target.starts_with(&self.root)
        })
    }
}
