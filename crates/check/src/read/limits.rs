//! Bounds on the data read, independent of the sizes that an archive declares.

/// Upper bounds on the data read for one name on the command line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Members of archives; files of directories are not counted.
    pub(super) members: usize,
    /// Inflated bytes of compressed members.
    pub(super) inflated: u64,
    /// Bytes of one member.
    pub(super) member: u64,
    /// Bytes of text that are kept.
    pub(super) text: u64,
    /// Nesting depth of archives.
    pub(super) depth: u32,
}

impl Limits {
    /// Counts a member; `false` if no more members are allowed.
    pub(super) fn take_member(&mut self) -> bool {
        match self.members.checked_sub(1) {
            Some(members) => {
                self.members = members;
                true
            }
            None => false,
        }
    }
}

pub(super) const LIMITS: Limits = Limits {
    members: 200_000,
    inflated: 32 << 30,
    member: 8 << 30,
    text: 32 << 20,
    depth: 2,
};

/// Message of a read that stops at the limit.
pub(super) const TOO_MANY: &str = "too many members: the rest was skipped";
