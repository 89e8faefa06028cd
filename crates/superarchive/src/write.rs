//! Plans and writes super-archives.

use std::io::{self, Write};

use crate::ar::{Index, IndexEntry, OrdinaryFile};
use crate::ids::{IndexVec, LayerId, MemberId, ViewId};
use crate::layout::Layout;
use crate::pool::{Frame, Pool};
use crate::request::{Input, Layer, Request, View};
use crate::resolver::{Conflict, ResolvedView, ViewMember, ViewResolver};
use crate::tables::{Tables, TooLarge};

/// A super-archive that can be written.
#[derive(Debug)]
pub struct Plan<'r, 'd> {
    request: &'r Request<'d>,
    pool: Pool<'r>,
    views: IndexVec<ViewId, ResolvedView<'r>>,
    layout: Layout,
}

/// Function that compresses contents.
type Frames<'f, 'r> =
    &'f dyn Fn(&Pool<'r>, &IndexVec<ViewId, ResolvedView<'r>>) -> IndexVec<MemberId, Option<Frame>>;

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
    /// An override of a view cannot be carried out.
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
    /// [`WriteError::DuplicateViewName`] if the request is inconsistent, [`WriteError::Conflicts`] if an
    /// override cannot be carried out, [`WriteError::TooLarge`] if the format cannot hold it.
    pub fn new(request: &'r Request<'d>) -> Result<Self, WriteError<'r>> {
        Self::with_frames(request, &|_, _| IndexVec::default())
    }

    /// Plans a super-archive whose contents are compressed, except those of the default view.
    ///
    /// # Errors
    ///
    /// The errors of [`Plan::new`].
    #[cfg(feature = "zstd")]
    pub fn compressed(request: &'r Request<'d>) -> Result<Self, WriteError<'r>> {
        Self::with_frames(request, &|pool, views| {
            crate::compression::compress(pool, views, request.default)
        })
    }

    fn with_frames(
        request: &'r Request<'d>,
        frames: Frames<'_, 'r>,
    ) -> Result<Self, WriteError<'r>> {
        validate(request)?;
        let mut pool = Pool::new(&request.layers);
        let mut resolver = ViewResolver::new(request, &pool);
        let mut views: IndexVec<ViewId, _> = IndexVec::default();
        for (index, view) in request.views.iter().enumerate() {
            let resolved = resolver
                .resolve(&view.layers, &mut pool)
                .map_err(|conflicts| WriteError::Conflicts(ViewId(index), conflicts))?;
            views.push(resolved);
        }
        drop_unused(&mut pool, &mut views);
        pool.frames = frames(&pool, &views);
        let tables = Tables::new(request, &pool, &views)?;
        let ordinary: Vec<OrdinaryFile<'_>> = request
            .default
            .iter()
            .flat_map(|&view| &views[view].members)
            .map(|&ViewMember { name, member, .. }| OrdinaryFile { name, member })
            .collect();
        let mut symbols = Vec::new();
        for (member, file) in ordinary.iter().enumerate() {
            for &(name, _) in &pool.contents[file.member].symbols {
                let name = pool.names[name].bytes;
                symbols.push(IndexEntry { name, member });
            }
        }
        let layout = Layout::new(&pool, &ordinary, Index::new(symbols), Some(tables))?;
        Ok(Self {
            request,
            pool,
            views,
            layout,
        })
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.layout.size
    }

    /// Number of distinct contents of members.
    pub fn contents_count(&self) -> usize {
        self.pool.contents.len()
    }

    /// Size of all distinct contents of members.
    pub fn contents_bytes(&self) -> u64 {
        self.pool
            .contents
            .iter()
            .map(|contents| contents.data.len() as u64)
            .sum()
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
        self.layout.write(&self.pool, out)
    }
}

/// Checks names and indices of a request.
fn validate<'r>(request: &'r Request<'_>) -> Result<(), WriteError<'r>> {
    for (index, view) in request.views.iter().enumerate() {
        for &layer in &view.layers {
            if layer.0 >= request.layers.len() {
                let view = ViewId(index);
                return Err(WriteError::UnknownLayer { view, layer });
            }
        }
        if request.views[..index]
            .iter()
            .any(|earlier| earlier.name == view.name)
        {
            return Err(WriteError::DuplicateViewName(&view.name));
        }
    }
    match request.default {
        Some(view) if view.0 >= request.views.len() => Err(WriteError::UnknownDefaultView(view)),
        _ => Ok(()),
    }
}

/// Drops contents that no view has, and renumbers the others.
fn drop_unused(pool: &mut Pool<'_>, views: &mut IndexVec<ViewId, ResolvedView<'_>>) {
    let mut used = IndexVec::<MemberId, bool>::from_elem(false, pool.contents.len());
    for &ViewMember { member, .. } in views.iter().flat_map(|view| &view.members) {
        used[member] = true;
        if let Some(original) = pool.contents[member].original {
            used[original] = true;
        }
    }
    let ids = pool.retain(&used);
    for ViewMember { member, .. } in views.iter_mut().flat_map(|view| &mut view.members) {
        *member = ids[*member].expect("a member of a view is used");
    }
}

/// Writes an ordinary archive of these members, with an index: the result of `archive extract`.
///
/// # Errors
///
/// Errors of `out`, and [`io::ErrorKind::InvalidInput`] if a member is too large for an archive.
pub fn write_archive(members: &[Input<'_>], out: &mut impl Write) -> io::Result<()> {
    let layers = [Layer::new("", members.to_vec())];
    let pool = Pool::new(&layers);
    let mut files = Vec::with_capacity(members.len());
    let mut symbols = Vec::new();
    for (index, input) in members.iter().enumerate() {
        files.push(OrdinaryFile {
            name: &input.name,
            member: pool.layers[LayerId(0)][index],
        });
        symbols.extend(input.symbols.iter().map(|symbol| IndexEntry {
            name: &symbol.name,
            member: index,
        }));
    }
    let layout = Layout::new(&pool, &files, Index::new(symbols), None).map_err(|TooLarge| {
        let message = "a member is too large for an archive";
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })?;
    layout.write(&pool, out)
}
