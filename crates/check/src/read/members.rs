//! Receiver of the members of archives.

use std::io;

use super::limits::Limits;
use super::source::Source;
use crate::package::Package;

/// Reads the members of an archive, including nested archives.
pub(super) trait MemberReader {
    /// Remaining limits.
    fn limits(&mut self) -> &mut Limits;

    /// Reads a member and adds it to the package. An error is one of the source.
    fn member(
        &mut self,
        package: &mut Package,
        path: String,
        source: &mut Source<'_>,
    ) -> io::Result<()>;
}
