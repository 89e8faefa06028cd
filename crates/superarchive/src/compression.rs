//! Compressed forms of contents that ordinary tools do not read.

use std::collections::HashMap;

use crate::ids::{IndexVec, MemberId, ViewId};
use crate::names::FastHash;
use crate::pool::{Frame, Pool};
use crate::resolver::{ResolvedView, ViewMember};

/// Level of zstd. For libclc 16, level 6 gives 37 % more bytes; level 12 takes twice the time for 1 % less, level 19 twenty
/// times for 11 %.
const LEVEL: i32 = 9;

/// Compresses the contents that the default view does not have.
pub fn compress<'r>(
    pool: &Pool<'r>,
    views: &IndexVec<ViewId, ResolvedView<'r>>,
    default: Option<ViewId>,
) -> IndexVec<MemberId, Option<Frame>> {
    let bases = Bases::new(pool, views, default);
    let mut context = zstd_safe::CCtx::create();
    let level = zstd_safe::CParameter::CompressionLevel(LEVEL);
    context.set_parameter(level).expect("a level of zstd");
    let mut frames = IndexVec::default();
    for member in pool.contents.ids() {
        let data = &*pool.contents[member].data;
        let base = bases.bases[member];
        let frame = (!bases.is_ordinary[member]).then(|| {
            if let Some(base) = base {
                let base = &*pool.contents[base].data;
                context.ref_prefix(base).expect("a prefix of any size");
            }
            let mut bytes = Vec::with_capacity(zstd_safe::compress_bound(data.len()));
            context.compress2(&mut bytes, data).expect("enough memory");
            Frame { bytes, base }
        });
        // Small contents may become larger.
        frames.push(frame.filter(|frame| frame.bytes.len() < data.len()));
    }
    frames
}

/// The contents that others are compared with.
struct Bases {
    bases: IndexVec<MemberId, Option<MemberId>>,
    is_ordinary: IndexVec<MemberId, bool>,
}

impl Bases {
    /// The base of contents is the first member of the same name in another view, or at the same position of a view
    /// with as many members; that of a variant is its original. A base has none itself.
    fn new<'r>(
        pool: &Pool<'r>,
        views: &IndexVec<ViewId, ResolvedView<'r>>,
        default: Option<ViewId>,
    ) -> Self {
        let count = pool.contents.len();
        let mut bases = Self {
            bases: IndexVec::from_elem(None, count),
            is_ordinary: IndexVec::from_elem(false, count),
        };
        // Originals of variants have no base.
        let mut is_settled = IndexVec::from_elem(false, count);
        for member in pool.contents.ids() {
            if let Some(original) = pool.contents[member].original {
                bases.bases[member] = Some(original);
                (is_settled[member], is_settled[original]) = (true, true);
            }
        }
        let mut by_name: HashMap<&[u8], MemberId, FastHash> = HashMap::default();
        let mut by_position: HashMap<(usize, usize), MemberId, FastHash> = HashMap::default();
        let default = default.map(|view| &views[view]);
        for &ViewMember { member, .. } in default.iter().flat_map(|view| &view.members) {
            bases.is_ordinary[member] = true;
        }
        for view in default.into_iter().chain(views.iter()) {
            for (position, &ViewMember { name, member, .. }) in view.members.iter().enumerate() {
                if pool.contents[member].original.is_some() {
                    continue;
                }
                let shape = (view.members.len(), position);
                let base = by_name
                    .get(name)
                    .or_else(|| by_position.get(&shape))
                    .copied();
                let is_base = base.is_none_or(|base| base == member);
                if !is_settled[member] && !is_base && !bases.is_ordinary[member] {
                    bases.bases[member] = base;
                }
                // It may have a base by another name.
                if base.is_none() && bases.bases[member].is_none() {
                    by_name.insert(name, member);
                    by_position.insert(shape, member);
                }
                is_settled[member] = true;
            }
        }
        bases
    }
}
