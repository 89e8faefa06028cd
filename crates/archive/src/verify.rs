//! Everything checked against what was written.

use crate::error::{Error, Part};
use crate::format::{HEADER_SIZE, SHARED_NAME};
use crate::{SuperArchive, hash};

impl SuperArchive<'_> {
    /// Reads all of it: the tables against their hash, each member's contents against theirs, and
    /// that each symbol of each view is found. Takes time by the size of the archive, whatever its
    /// bytes are.
    ///
    /// # Errors
    ///
    /// The first thing that is not as it was written.
    pub fn verify(&self) -> Result<(), Error> {
        let damaged = Error::Damaged(Part::Header);
        let size = self.header.tables_size.checked_sub(HEADER_SIZE);
        let tables = size.and_then(|size| self.blob.get(HEADER_SIZE, size));
        // The header's last field is the hash.
        let header = self.blob.get(0, HEADER_SIZE - 8).ok_or(damaged)?;
        if hash::of(header.0) ^ hash::of(tables.ok_or(damaged)?.0) != self.header.tables_hash {
            return Err(damaged);
        }
        // Neither members nor views share bytes: together they are no more work than there are bytes.
        let mut left = self.archive.len();
        for member in self.members() {
            let member = member?;
            let rest = left.checked_sub(member.size());
            left = rest.ok_or(Error::Damaged(Part::Members))?;
            member.verify()?;
        }
        let mut left = self.header.tables_size;
        let mut names = u64::from(self.header.texts.count);
        for view in self.views() {
            let view = view?;
            let rest = left.checked_sub(view.tables_size());
            left = rest.ok_or(Error::Damaged(Part::Views))?;
            names += view.most_symbols() * SHARED_NAME;
        }
        for view in self.views() {
            let view = view?;
            for layer in view.layers() {
                layer?;
            }
            for member in view.members() {
                member?;
            }
            view.verify_symbols(&mut names)?;
        }
        Ok(())
    }
}
