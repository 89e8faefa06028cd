//! Plans and writes.

use std::io::{self, Write};

use super::layers::{Conflict, Flat, Flattening};
use super::layout::Layout;
use super::tables::{Tables, TooLarge};
use super::unique::Unique;
use super::{Input, Request, View};

/// A super-archive that can be written.
#[derive(Debug)]
pub struct Plan<'r, 'd> {
    request: &'r Request<'d>,
    unique: Unique<'r, 'd>,
    flat: Vec<Flat<'r>>,
    layout: Layout,
}

/// Why a super-archive cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError<'r> {
    /// The request has a view, by its index, with the index of a layer that is not there.
    NoLayer(usize, usize),
    /// The request has the index of a default view that is not there.
    NoView(usize),
    /// Two views have this name.
    SameName(&'r str),
    /// A view, by its index, cannot be linked with.
    Conflicts(usize, Vec<Conflict<'r>>),
    /// A member, a table or the whole is more than the format can hold.
    TooLarge,
}

impl From<TooLarge> for WriteError<'_> {
    fn from(TooLarge: TooLarge) -> Self {
        Self::TooLarge
    }
}

impl<'r, 'd> Plan<'r, 'd> {
    /// Plans it.
    ///
    /// # Errors
    ///
    /// If the request has an index of a layer or a view that is not there, a view cannot be linked
    /// with, or the archive cannot be written.
    pub fn new(request: &'r Request<'d>) -> Result<Self, WriteError<'r>> {
        for (at, view) in request.views.iter().enumerate() {
            let missing = |layer: &&usize| **layer >= request.layers.len();
            if let Some(layer) = view.layers.iter().find(missing) {
                return Err(WriteError::NoLayer(at, *layer));
            }
            if request.views[..at]
                .iter()
                .any(|other| other.name == view.name)
            {
                return Err(WriteError::SameName(&view.name));
            }
        }
        let missing = |view: &usize| *view >= request.views.len();
        if let Some(view) = request.default.filter(missing) {
            return Err(WriteError::NoView(view));
        }
        let unique = Unique::of(&request.layers);
        let mut flattening = Flattening::new(&unique);
        let mut flat: Vec<_> = (request.views.iter())
            .map(|view| flattening.view(&view.layers))
            .collect();
        for (view, flat) in flat.iter().enumerate() {
            let conflicts = flat.conflicts(&unique.names);
            if !conflicts.is_empty() {
                return Err(WriteError::Conflicts(view, conflicts));
            }
        }
        let mut unique = unique.keep(&mut flat);
        let tables = Tables::of(request, &mut unique, &flat)?;
        let ordinary: Vec<usize> = (request.default.iter())
            .flat_map(|&view| flat[view].members.iter().map(|(member, _)| *member))
            .collect();
        let layout = Layout::new(&unique.members, &ordinary, Some(tables))?;
        Ok(Self {
            request,
            unique,
            flat,
            layout,
        })
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.layout.size
    }

    /// Its members, each once; those that no view has are not among them.
    pub fn members(&self) -> &[&'r Input<'d>] {
        &self.unique.members
    }

    /// Each view, flattened.
    pub fn views(&self) -> impl Iterator<Item = (&'r View, &Flat<'r>)> {
        self.request.views.iter().zip(&self.flat)
    }

    /// Writes it, from the beginning to the end.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.layout.write(&self.unique.members, out)
    }
}

/// Writes an ordinary archive of these members, with an index: what `extract` makes of a view.
///
/// # Errors
///
/// Those of `out`, and if a member is too large for an archive.
pub fn write_archive(members: &[&Input<'_>], out: &mut impl Write) -> io::Result<()> {
    let all: Vec<usize> = (0..members.len()).collect();
    let layout = Layout::new(members, &all, None).map_err(|TooLarge| {
        let message = "a member is too large for an archive";
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })?;
    layout.write(members, out)
}
