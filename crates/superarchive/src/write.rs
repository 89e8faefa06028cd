//! Plans and writes super-archives.

use std::io::{self, Write};

use crate::ar::{Index, IndexEntry, NamedMember};
use crate::ids::{IndexVec, LayerId, MemberId, ViewId};
use crate::layout::Layout;
use crate::pool::Pool;
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
        validate(request)?;
        let mut pool = Pool::new(&request.layers);
        let mut resolver = ViewResolver::new(request, &pool);
        let mut views: IndexVec<ViewId, _> = IndexVec::default();
        for (index, view) in request.views.iter().enumerate() {
            let resolved = resolver.resolve(&view.layers, &mut pool);
            views.push(resolved.map_err(|found| WriteError::Conflicts(ViewId(index), found))?);
        }
        drop_unused(&mut pool, &mut views);
        let tables = Tables::new(request, &pool, &views)?;
        let ordinary = (request.default.iter()).flat_map(|&view| &views[view].members);
        let ordinary: Vec<NamedMember<'_>> = ordinary
            .map(|&ViewMember { name, member, .. }| NamedMember { name, member })
            .collect();
        let symbols = ordinary.iter().enumerate().flat_map(|(member, file)| {
            let symbols = pool.contents[file.member].symbols.iter();
            symbols.map(move |&(name, _)| (name, member))
        });
        let symbols = symbols.map(|(name, member)| {
            let name = pool.names[name].bytes;
            IndexEntry { name, member }
        });
        let index = Index::new(symbols.collect());
        let layout = Layout::new(&pool, &ordinary, index, Some(tables))?;
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
        let sizes = self.pool.contents.iter().map(|one| one.data.len() as u64);
        sizes.sum()
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

/// Drops contents that no view has, and renumbers the others.
fn drop_unused(pool: &mut Pool<'_>, views: &mut IndexVec<ViewId, ResolvedView<'_>>) {
    let mut used = IndexVec::<MemberId, bool>::from_elem(false, pool.contents.len());
    for one in views.iter().flat_map(|view| &view.members) {
        used[one.member] = true;
        if let Some(original) = pool.contents[one.member].original {
            used[original] = true;
        }
    }
    let ids = pool.retain(&used);
    for one in views.iter_mut().flat_map(|view| &mut view.members) {
        one.member = ids[one.member].expect("a member of a view is used");
    }
}

/// Writes an ordinary archive of these members, with an index: the result of `archive extract`.
///
/// # Errors
///
/// Errors of `out`, and [`io::ErrorKind::InvalidInput`] if a member is too large for an archive.
pub fn write_archive(members: &[Input<'_>], out: &mut impl Write) -> io::Result<()> {
    let layer = Layer::new("", members.to_vec());
    let layers = [layer];
    let pool = Pool::new(&layers);
    let files = members.iter().zip(&pool.layers[LayerId(0)]);
    let files = files.map(|(input, &member)| NamedMember {
        name: &input.name,
        member,
    });
    let files: Vec<NamedMember<'_>> = files.collect();
    let symbols = members.iter().enumerate().flat_map(|(member, input)| {
        let names = input.symbols.iter().map(|symbol| &*symbol.name);
        names.map(move |name| IndexEntry { name, member })
    });
    let index = Index::new(symbols.collect());
    let layout = Layout::new(&pool, &files, index, None).map_err(|TooLarge| {
        let message = "a member is too large for an archive";
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })?;
    layout.write(&pool, out)
}
