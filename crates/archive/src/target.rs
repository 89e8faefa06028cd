//! Names of views that are targets: AMD's target ids and NVIDIA's architectures.

use crate::error::Error;
use crate::super_archive::SuperArchive;
use crate::view::View;

/// Generic processors, each with those that it supports:
/// <https://llvm.org/docs/AMDGPUUsage.html#amdgpu-generic-processor-table>.
const GENERIC: &str = include_str!("../data/generic-processors.txt");

/// Longer names match only themselves. Bounds the work: names in a hostile file may share bytes.
const MAX_LENGTH: usize = 128;

/// Rank of code that was compiled for `code` in serving the target `target`; `None` if it cannot be linked or
/// run for it. The rank is larger for a better match: for the same name; for AMD the processor itself before a
/// generic one, then more features; for NVIDIA machine code, LTO code, PTX, each by number, then
/// with a letter. AMD's names may follow a triple and `--`, as HSA reports them. For a GPU with compute
/// capability 9.0 the name is `sm_90a`; code for `sm_90` runs on others too.
///
/// ```
/// use gpustub_archive::match_target;
///
/// let rank = |code: &str| match_target(code.as_bytes(), b"gfx90a:sramecc+:xnack-");
/// assert!(rank("gfx90a:xnack-") > rank("gfx90a"));
/// assert_eq!(rank("gfx90a:xnack+"), None);
/// assert!(match_target(b"gfx11-generic", b"gfx1151").is_some());
/// assert!(match_target(b"sm_80", b"sm_86") > match_target(b"compute_86", b"sm_86"));
/// ```
#[must_use]
pub fn match_target(code: &[u8], target: &[u8]) -> Option<u32> {
    if code == target {
        return Some(u32::MAX);
    }
    if [code, target]
        .iter()
        .any(|name| name.is_empty() || name.len() > MAX_LENGTH)
    {
        return None;
    }
    let (code, target) = (without_triple(code), without_triple(target));
    if code == target {
        return Some(u32::MAX);
    }
    match_amd(code, target).or_else(|| match_nvidia(code, target))
}

fn without_triple(name: &[u8]) -> &[u8] {
    let triple_end = name.windows(2).rposition(|pair| pair == b"--");
    triple_end
        .and_then(|end| name.get(end + 2..))
        .unwrap_or(name)
}

fn match_amd(code: &[u8], target: &[u8]) -> Option<u32> {
    let (processor, features) = parse_target_id(code)?;
    let (target_processor, target_features) = parse_target_id(target)?;
    let mut rank = if !processor.starts_with(b"gfx") {
        return None;
    } else if processor == target_processor {
        0x200
    } else if is_generic_of(processor, target_processor) {
        0x100
    } else {
        return None;
    };
    for feature in features {
        if !target_features
            .clone()
            .any(|target_feature| target_feature == feature)
        {
            return None;
        }
        rank += 1;
    }
    Some(rank)
}

/// The processor and the features: <https://clang.llvm.org/docs/ClangOffloadBundler.html#target-id>.
fn parse_target_id(id: &[u8]) -> Option<(&[u8], impl Iterator<Item = &[u8]> + Clone)> {
    let mut fields = id.split(|&byte| byte == b':');
    Some((fields.next()?, fields))
}

fn is_generic_of(generic: &[u8], processor: &[u8]) -> bool {
    GENERIC.lines().any(|line| {
        line.split_once(' ').is_some_and(|(name, processors)| {
            name.as_bytes() == generic
                && processors
                    .split(' ')
                    .any(|supported| supported.as_bytes() == processor)
        })
    })
}

/// An architecture by nvcc's name.
struct NvidiaArch {
    kind: u32,
    number: u32,
    suffix: u32,
}

const PTX: u32 = 1;
const LTO: u32 = 2;
const MACHINE: u32 = 3;
const FAMILY: u32 = 1;
const ACCELERATED: u32 = 2;

/// Number with a family of its own. CUDA 13 renamed it to 110 (PTX ISA 9.0).
const OWN_FAMILY: u32 = 101;

impl NvidiaArch {
    fn parse(name: &[u8]) -> Option<Self> {
        let (kind, number) = if let Some(number) = name.strip_prefix(b"sm_") {
            (MACHINE, number)
        } else if let Some(number) = name.strip_prefix(b"lto_") {
            (LTO, number)
        } else {
            (PTX, name.strip_prefix(b"compute_")?)
        };
        let (digits, suffix) = match number {
            [digits @ .., b'a'] => (digits, ACCELERATED),
            [digits @ .., b'f'] => (digits, FAMILY),
            digits => (digits, 0),
        };
        if !matches!(digits, [b'1'..=b'9', _] | [b'1'..=b'9', _, _])
            || !digits.iter().all(u8::is_ascii_digit)
        {
            return None;
        }
        Some(Self {
            kind,
            number: core::str::from_utf8(digits).ok()?.parse().ok()?,
            suffix,
        })
    }
}

/// The rules of nvlink 13.5 for machine code, and of ptxas 12.9 and 13.5 for PTX.
fn match_nvidia(code: &[u8], target: &[u8]) -> Option<u32> {
    let (code, target) = (NvidiaArch::parse(code)?, NvidiaArch::parse(target)?);
    if target.kind != MACHINE || code.number > target.number {
        return None;
    }
    let is_same_major = code.number / 10 == target.number / 10;
    let serves = match code.suffix {
        ACCELERATED => code.number == target.number && target.suffix == ACCELERATED,
        FAMILY => is_same_major && (code.number == OWN_FAMILY) == (target.number == OWN_FAMILY),
        _ => is_same_major || code.kind != MACHINE,
    };
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
        let (mut best_view, mut best_rank) = (None, 0);
        for view in self.views() {
            let view = view?;
            let rank = match_target(view.name(), target.as_ref()).unwrap_or(0);
            if rank > best_rank {
                (best_view, best_rank) = (Some(view), rank);
            }
        }
        Ok(best_view)
    }
}
