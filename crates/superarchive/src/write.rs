//! Plans and writes super-archives.

use std::io::{self, Write};

use crate::dedup::{StoredMembers, UniqueMembers, dedup_members};
use crate::ids::{IndexVec, LayerId, MemberId, ViewId};
use crate::layout::Layout;
use crate::request::{Input, Request, View};
use crate::resolver::{Conflict, ResolvedView, ViewResolver};
use crate::tables::{Tables, TooLarge};

/// A super-archive that can be written.
#[derive(Debug)]
pub struct Plan<'r, 'd> {
    request: &'r Request<'d>,
    members: StoredMembers<'r, 'd>,
    views: IndexVec<ViewId, ResolvedView<'r>>,
    layout: Layout,
}

/// Reason why a super-archive cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError<'r> {
    /// A view names a layer that the request does not have.
    UnknownLayer {
        /// The view.
        view: ViewId,
        /// The layer.
        layer: LayerId,
    },
    /// The default view is not among the views of the request.
    UnknownDefaultView(ViewId),
    /// Two views have this name.
    DuplicateViewName(&'r str),
    /// Programs cannot be linked with a view.
    Conflicts(ViewId, Vec<Conflict<'r>>),
    /// A member, a table or the whole file exceeds the limits of the format.
    TooLarge,
}

impl From<TooLarge> for WriteError<'_> {
    fn from(TooLarge: TooLarge) -> Self {
        Self::TooLarge
    }
}

impl<'r, 'd> Plan<'r, 'd> {
    /// Plans a super-archive.
    ///
    /// # Errors
    ///
    /// [`WriteError::UnknownLayer`], [`WriteError::UnknownDefaultView`] and
    /// [`WriteError::DuplicateViewName`] if the request is inconsistent, [`WriteError::Conflicts`] if programs
    /// cannot be linked with a view, [`WriteError::TooLarge`] if the format cannot hold it.
    pub fn new(request: &'r Request<'d>) -> Result<Self, WriteError<'r>> {
        validate(request)?;
        let members = dedup_members(&request.layers);
        let mut resolver = ViewResolver::new(&members);
        let views = request.views.iter();
        let mut views: IndexVec<ViewId, _> =
            views.map(|view| resolver.resolve(&view.layers)).collect();
        for view in views.ids() {
            let conflicts = views[view].conflicts(&members.names);
            if !conflicts.is_empty() {
                return Err(WriteError::Conflicts(view, conflicts));
            }
        }
        let mut members = drop_unused(members, &mut views);
        let tables = Tables::new(request, &mut members, &views)?;
        let ordinary: Vec<MemberId> = (request.default.iter())
            .flat_map(|&view| views[view].members.iter().map(|one| one.member))
            .collect();
        let layout = Layout::new(&members.inputs, &ordinary, Some(tables))?;
        Ok(Self {
            request,
            members,
            views,
            layout,
        })
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.layout.size
    }

    /// Members that at least one view has, each once, by [`MemberId`].
    pub fn members(&self) -> &[&'r Input<'d>] {
        self.members.inputs.as_slice()
    }

    /// Each view, with its members and overrides.
    pub fn views(&self) -> impl Iterator<Item = (&'r View, &ResolvedView<'r>)> {
        self.request.views.iter().zip(self.views.iter())
    }

    /// Writes the file, from the beginning to the end.
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.layout.write(&self.members.inputs, out)
    }
}

/// Checks names and indices of a request.
fn validate<'r>(request: &'r Request<'_>) -> Result<(), WriteError<'r>> {
    for (index, view) in request.views.iter().enumerate() {
        let unknown = |layer: &&LayerId| layer.0 >= request.layers.len();
        if let Some(&layer) = view.layers.iter().find(unknown) {
            let view = ViewId(index);
            return Err(WriteError::UnknownLayer { view, layer });
        }
        let mut before = request.views[..index].iter();
        if before.any(|other| other.name == view.name) {
            return Err(WriteError::DuplicateViewName(&view.name));
        }
    }
    let unknown = |view: &ViewId| view.0 >= request.views.len();
    match request.default.filter(unknown) {
        Some(view) => Err(WriteError::UnknownDefaultView(view)),
        None => Ok(()),
    }
}

/// Renumbers the members of views, and drops members without a view.
fn drop_unused<'r, 'd>(
    unique: UniqueMembers<'r, 'd>,
    views: &mut IndexVec<ViewId, ResolvedView<'r>>,
) -> StoredMembers<'r, 'd> {
    let mut is_used = IndexVec::<MemberId, bool>::from_elem(false, unique.inputs.len());
    for one in views.iter().flat_map(|view| &view.members) {
        is_used[one.member] = true;
    }
    let mut stored = StoredMembers {
        inputs: IndexVec::default(),
        content_hashes: IndexVec::default(),
        names: unique.names,
    };
    let mut new_ids: IndexVec<MemberId, Option<MemberId>> = IndexVec::default();
    for member in is_used.ids() {
        new_ids.push(is_used[member].then(|| {
            stored.content_hashes.push(unique.content_hashes[member]);
            stored.inputs.push(unique.inputs[member])
        }));
    }
    for view in views.iter_mut() {
        let symbols = view.symbols.iter_mut().map(|one| &mut one.member);
        let members = view.members.iter_mut().map(|one| &mut one.member);
        for member in symbols.chain(members) {
            *member = new_ids[*member].expect("a member with a symbol of a view is in the view");
        }
    }
    stored
}

/// Writes an ordinary archive of these members, with an index: the result of `archive extract`.
///
/// # Errors
///
/// Errors of `out`, and [`io::ErrorKind::InvalidInput`] if a member is too large for an archive.
pub fn write_archive(members: &[&Input<'_>], out: &mut impl Write) -> io::Result<()> {
    let members: IndexVec<MemberId, _> = members.to_vec().into();
    let all: Vec<MemberId> = members.ids().collect();
    let layout = Layout::new(&members, &all, None).map_err(|TooLarge| {
        let message = "a member is too large for an archive";
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })?;
    layout.write(&members, out)
}
