//! Bounds on what is read, whatever an archive says.

/// Upper bounds on what is read for one name on the command line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Members of archives; files of directories are there anyway.
    pub(super) members: usize,
    /// Bytes that come out of compressed members.
    pub(super) inflated: u64,
    /// Bytes of one member.
    pub(super) member: u64,
    /// Bytes of text that are kept.
    pub(super) text: u64,
    /// Archives in archives.
    pub(super) depth: u32,
}

pub(super) const LIMITS: Limits = Limits {
    members: 200_000,
    inflated: 32 << 30,
    member: 8 << 30,
    text: 32 << 20,
    depth: 2,
};

/// Message where reading of an archive stops.
pub(super) const TOO_MANY: &str = "too many members: the rest was skipped";
