//! Layers and views of a super-archive to be written.

use std::borrow::Cow;

use crate::definitions::collector::Definition;
use crate::ids::{LayerId, LayerPosition, ViewId};

/// A member of a layer, with its definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input<'d> {
    /// File name.
    pub name: Cow<'d, [u8]>,
    /// Contents.
    pub data: &'d [u8],
    /// Symbols that other members can be linked with, in the member's own order.
    pub symbols: Vec<Definition<'d>>,
}

/// Members that are searched together: those of an archive or of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer<'d> {
    /// Human-readable name.
    pub name: String,
    /// Members; of two that define a symbol the first is chosen.
    pub members: Vec<Input<'d>>,
    /// Whether an earlier layer may override strong definitions: members were compiled so that each of
    /// their definitions can be replaced (`-fPIC -fsemantic-interposition`).
    pub interposable: bool,
}

impl<'d> Layer<'d> {
    /// A layer whose strong definitions cannot be overridden.
    pub fn new(name: impl Into<String>, members: Vec<Input<'d>>) -> Self {
        Self {
            name: name.into(),
            members,
            interposable: false,
        }
    }
}

/// An ordered list of layers, read as one archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Name.
    pub name: String,
    /// Layers, in search order.
    pub layers: Vec<LayerId>,
}

/// Contents of a super-archive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request<'d> {
    /// All layers, by [`LayerId`].
    pub layers: Vec<Layer<'d>>,
    /// All views, by [`ViewId`].
    pub views: Vec<View>,
    /// The view that ordinary tools read.
    pub default: Option<ViewId>,
}

impl<'d> Request<'d> {
    /// The layer at a position of a view of this request.
    ///
    /// # Panics
    ///
    /// If the view has no such position, or names a layer that the request does not have.
    pub fn layer_at(&self, view: &View, position: LayerPosition) -> &Layer<'d> {
        &self.layers[view.layers[position.0].0]
    }
}
