//! Typed indices, and vectors that are indexed by them.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// An index of one kind of thing.
pub trait Id: Copy {
    /// The id with this index.
    fn from_index(index: usize) -> Self;

    /// Index of the id.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub usize);

        impl Id for $name {
            fn from_index(index: usize) -> Self {
                Self(index)
            }

            fn index(self) -> usize {
                self.0
            }
        }
    )*};
}

ids! {
    /// Index of a layer among those of a request.
    LayerId;
    /// Index of a view among those of a request.
    ViewId;
    /// Index of contents among those of a plan, each counted once.
    MemberId;
    /// Index of a symbol name, or of another name of the tables.
    NameId;
    /// Position of a layer in the search order of one view.
    LayerPosition;
    /// Position of a member in one layer.
    MemberPosition;
}

/// A vector with one element per id.
#[derive(Debug, Clone)]
pub struct IndexVec<I, T> {
    elements: Vec<T>,
    ids: PhantomData<fn() -> I>,
}

impl<I: Id, T> IndexVec<I, T> {
    /// Adds an element; returns its id.
    pub fn push(&mut self, element: T) -> I {
        self.elements.push(element);
        I::from_index(self.elements.len() - 1)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// The elements, in the order of their ids.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.elements.iter()
    }

    /// The elements, mutable.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.elements.iter_mut()
    }

    /// The ids of all elements.
    pub fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.elements.len()).map(I::from_index)
    }
}

impl<I, T> IntoIterator for IndexVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.elements.into_iter()
    }
}

impl<I: Id, T: Clone> IndexVec<I, T> {
    /// The same element for each of `count` ids.
    pub fn from_elem(element: T, count: usize) -> Self {
        vec![element; count].into()
    }
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T> From<Vec<T>> for IndexVec<I, T> {
    fn from(elements: Vec<T>) -> Self {
        let ids = PhantomData;
        Self { elements, ids }
    }
}

impl<I, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<Elements: IntoIterator<Item = T>>(elements: Elements) -> Self {
        elements.into_iter().collect::<Vec<T>>().into()
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.elements[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.elements[id.index()]
    }
}
