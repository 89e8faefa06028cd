//! Everything checked against what was written.

use crate::error::{Error, Part};
use crate::format::HEADER_SIZE;
use crate::{SuperArchive, hash};

impl SuperArchive<'_> {
    /// Reads all of it: the tables against their hash, each member's contents against theirs, and
    /// that each symbol of each view is found.
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
        for member in self.members() {
            member?.verify()?;
        }
        for view in self.views() {
            let view = view?;
            for layer in view.layers() {
                layer?;
            }
            for member in view.members() {
                member?;
            }
            let mut count = 0;
            for symbol in view.symbols() {
                let symbol = symbol?;
                count += 1;
                let found = view.find(symbol.name)?.map(|member| member.index());
                if found != Some(symbol.member.index()) {
                    return Err(Error::Damaged(Part::Symbols));
                }
            }
            if count != view.symbol_count() {
                return Err(Error::Damaged(Part::Symbols));
            }
        }
        Ok(())
    }
}
