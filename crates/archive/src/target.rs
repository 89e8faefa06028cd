//! Names of views that are targets: AMD's target ids and NVIDIA's architectures.

use crate::error::Error;
use crate::super_archive::SuperArchive;
use crate::view::View;

/// Generic processors, each with those that it supports:
/// <https://llvm.org/docs/AMDGPUUsage.html#amdgpu-generic-processor-table>.
const GENERIC: &str = include_str!("../data/generic-processors.txt");

/// Longer names match only themselves. Bounds the work: names in a hostile file may share bytes.
const MAX_LENGTH: usize = 128;

/// Rank of code for the target `have` in serving the target `wanted`; `None` if it cannot be linked or run for
/// it. The rank is larger for a better match: for the same name; for AMD the processor itself before a
/// generic one, then more features; for NVIDIA machine code, LTO code, PTX, each by number, then
/// with a letter. AMD's names may follow a triple and `--`, as HSA reports them. For a GPU with compute
/// capability 9.0 the name is `sm_90a`; code for `sm_90` runs on others too.
///
/// ```
/// use gpustub_archive::match_target;
///
/// let rank = |have: &str| match_target(have.as_bytes(), b"gfx90a:sramecc+:xnack-");
/// assert!(rank("gfx90a:xnack-") > rank("gfx90a"));
/// assert_eq!(rank("gfx90a:xnack+"), None);
/// assert!(match_target(b"gfx11-generic", b"gfx1151").is_some());
/// assert!(match_target(b"sm_80", b"sm_86") > match_target(b"compute_86", b"sm_86"));
/// ```
#[must_use]
pub fn match_target(have: &[u8], wanted: &[u8]) -> Option<u32> {
    if have == wanted {
        return Some(u32::MAX);
    }
    let is_usual = |name: &[u8]| (1..=MAX_LENGTH).contains(&name.len());
    if !is_usual(have) || !is_usual(wanted) {
        return None;
    }
    let (bare_have, bare_wanted) = (without_triple(have), without_triple(wanted));
    if bare_have == bare_wanted {
        return Some(u32::MAX);
    }
    match_amd(bare_have, bare_wanted).or_else(|| match_nvidia(bare_have, bare_wanted))
}

fn without_triple(name: &[u8]) -> &[u8] {
    let end = name.windows(2).rposition(|pair| pair == b"--");
    end.and_then(|end| name.get(end + 2..)).unwrap_or(name)
}

/// <https://clang.llvm.org/docs/ClangOffloadBundler.html#target-id>
fn match_amd(have: &[u8], wanted: &[u8]) -> Option<u32> {
    let is_colon = |&byte: &u8| byte == b':';
    let mut features = have.split(is_colon);
    let processor = features.next()?;
    let wanted_processor = wanted.split(is_colon).next()?;
    let rank = if !processor.starts_with(b"gfx") {
        return None;
    } else if processor == wanted_processor {
        0x200
    } else if is_generic_of(processor, wanted_processor) {
        0x100
    } else {
        return None;
    };
    features.try_fold(rank, |rank, feature| {
        let mut others = wanted.split(is_colon).skip(1);
        others.any(|other| other == feature).then_some(rank + 1)
    })
}

fn is_generic_of(generic: &[u8], processor: &[u8]) -> bool {
    GENERIC.lines().any(|line| {
        let mut words = line.split(' ').map(str::as_bytes);
        words.next() == Some(generic) && words.any(|word| word == processor)
    })
}

/// An architecture by nvcc's name.
struct Nvidia {
    kind: u32,
    number: u32,
    suffix: u32,
}

const PTX: u32 = 1;
const MACHINE: u32 = 3;
const FAMILY: u32 = 1;
const ACCELERATED: u32 = 2;

/// Number with a family of its own. CUDA 13 renamed it to 110 (PTX ISA 9.0).
const OWN_FAMILY: u32 = 101;

impl Nvidia {
    fn parse(name: &[u8]) -> Option<Self> {
        let prefixes: [(&[u8], u32); 3] = [(b"sm_", MACHINE), (b"lto_", 2), (b"compute_", PTX)];
        let (rest, kind) = (prefixes.iter())
            .find_map(|(prefix, kind)| Some((name.strip_prefix(*prefix)?, *kind)))?;
        let (digits, suffix) = match rest {
            [digits @ .., b'a'] => (digits, ACCELERATED),
            [digits @ .., b'f'] => (digits, FAMILY),
            digits => (digits, 0),
        };
        let is_number = matches!(digits, [b'1'..=b'9', rest @ ..] if matches!(rest.len(), 1 | 2))
            && digits.iter().all(u8::is_ascii_digit);
        let number = core::str::from_utf8(digits).ok()?.parse().ok();
        Some(Self {
            kind,
            number: number.filter(|_| is_number)?,
            suffix,
        })
    }
}

/// The rules of nvlink 13.5 for machine code, and of ptxas 12.9 and 13.5 for PTX.
fn match_nvidia(have: &[u8], wanted: &[u8]) -> Option<u32> {
    let (code, target) = (Nvidia::parse(have)?, Nvidia::parse(wanted)?);
    let is_same_major = code.number / 10 == target.number / 10;
    let serves = match code.suffix {
        ACCELERATED => code.number == target.number && target.suffix == ACCELERATED,
        FAMILY => is_same_major && (code.number == OWN_FAMILY) == (target.number == OWN_FAMILY),
        _ => is_same_major || code.kind != MACHINE,
    };
    let serves = serves && target.kind == MACHINE && code.number <= target.number;
    serves.then_some(code.kind << 12 | code.number << 2 | code.suffix)
}

impl<'a> SuperArchive<'a> {
    /// The view whose name matches a target best, the first of equal ones: [`match_target`].
    ///
    /// ```
    /// # use gpustub_archive::SuperArchive;
    /// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
    /// let archive = SuperArchive::parse(bytes)?;
    /// let view = archive.best_view("gfx900:xnack-")?.expect("a view");
    /// assert_eq!(view.name(), b"gfx900");
    /// assert!(archive.best_view("gfx906")?.is_none());
    /// # Ok::<(), gpustub_archive::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the tables are corrupt.
    pub fn best_view(&self, target: impl AsRef<[u8]>) -> Result<Option<View<'a>>, Error> {
        let mut best = (0, None);
        for view in self.views() {
            let view = view?;
            let rank = match_target(view.name(), target.as_ref()).unwrap_or(0);
            if rank > best.0 {
                best = (rank, Some(view));
            }
        }
        Ok(best.1)
    }
}
