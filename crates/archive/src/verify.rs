//! Verification of all contents against the hashes written with them.

use crate::error::{Error, Part};
use crate::format::{HEADER_SIZE, MAX_SHARED_NAME};
use crate::hash::hash_bytes;
use crate::super_archive::SuperArchive;

impl SuperArchive<'_> {
    /// Checks the tables and each member's contents against their hashes, and that each symbol of each
    /// view is found. For any bytes, the time is proportional to the size of the archive.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for the first wrong part of the tables, [`Error::MemberMoved`] and
    /// [`Error::HashMismatch`] for the first wrong member.
    pub fn verify(&self) -> Result<(), Error> {
        let malformed = Error::Malformed(Part::Header);
        let size = self.tables.header.tables_size.checked_sub(HEADER_SIZE);
        let tables = size.and_then(|size| self.tables.blob.get(HEADER_SIZE, size));
        // The header's last field is the hash.
        let header = self.tables.blob.get(0, HEADER_SIZE - 8).ok_or(malformed)?;
        if hash_bytes(header.0) ^ hash_bytes(tables.ok_or(malformed)?.0)
            != self.tables.header.tables_hash
        {
            return Err(malformed);
        }
        // Neither members nor views share bytes, which bounds the work by the number of bytes.
        let mut left = self.tables.archive.len();
        for member in self.members() {
            let member = member?;
            let rest = left.checked_sub(member.size());
            left = rest.ok_or(Error::Malformed(Part::Members))?;
            member.verify()?;
        }
        let mut left = self.tables.header.tables_size;
        let mut names = u64::from(self.tables.header.texts.count);
        for view in self.views() {
            let view = view?;
            let rest = left.checked_sub(view.tables_size());
            left = rest.ok_or(Error::Malformed(Part::Views))?;
            names += view.max_symbols() * MAX_SHARED_NAME;
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
