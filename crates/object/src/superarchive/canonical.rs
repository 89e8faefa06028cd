//! Members of which families have more in common: bitcode without the processor it was made for.

use std::fmt;

use super::{Input, Layer};
use crate::definitions::{canonical, definitions};
use crate::error::{Error, Problem};

/// The canonical forms of members, from which layers borrow.
///
/// A module of LLVM bitcode loses its source file name, who wrote it (the identification and
/// `llvm.ident`), and of its functions the attributes `target-cpu`, `target-features` and
/// `tune-cpu`. Who compiles it has to say them: `-mcpu` and `-mattr` of `llc` and of the linkers.
/// The triple and the data layout stay. It means the same in all else.
#[derive(Debug, Default)]
pub struct Canonical {
    /// Of each layer, of each member, unless it stays as it is.
    layers: Vec<Vec<Option<Vec<u8>>>>,
    /// Modules that stay as they are: the indices of the layer and of the member in it, and why.
    pub left: Vec<(usize, usize, Left)>,
}

/// Why a module of bitcode stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Left {
    /// It has a form that is not known well enough to change it; it is in words, of "it".
    Form(&'static str),
    /// It is damaged.
    Damaged(Problem),
}

impl Canonical {
    /// The canonical forms of the members of layers.
    pub fn of(layers: &[Layer<'_>]) -> Self {
        let mut all = Self::default();
        for (at, layer) in layers.iter().enumerate() {
            let mut forms = Vec::with_capacity(layer.members.len());
            for (member, input) in layer.members.iter().enumerate() {
                let form = form(input).transpose();
                forms.push(form.unwrap_or_else(|left| {
                    all.left.push((at, member, left));
                    None
                }));
            }
            all.layers.push(forms);
        }
        all
    }

    /// How many members there is a canonical form of.
    pub fn count(&self) -> usize {
        self.layers.iter().flatten().flatten().count()
    }

    /// The layers, with the members in that form.
    pub fn apply<'c>(&'c self, mut layers: Vec<Layer<'c>>) -> Vec<Layer<'c>> {
        for (layer, forms) in layers.iter_mut().zip(&self.layers) {
            for (member, form) in layer.members.iter_mut().zip(forms) {
                if let Some(form) = form {
                    member.data = form;
                }
            }
        }
        layers
    }
}

/// The form of one, which defines what the member defines.
fn form(input: &Input<'_>) -> Option<Result<Vec<u8>, Left>> {
    let form = canonical(input.data)?;
    Some(form.and_then(|form| {
        let mut now = definitions(&form).unwrap_or_default();
        let mut before = input.symbols.clone();
        for list in [&mut now, &mut before] {
            list.sort_by(|a, b| (&a.name, a.weak).cmp(&(&b.name, b.weak)));
        }
        match now == before {
            true => Ok(form),
            // Those of inline assembly, and names of 32-bit Windows.
            false => Err(Left::Form(
                "it has symbols that only LLVM's own table tells",
            )),
        }
    }))
}

impl From<Problem> for Left {
    fn from(problem: Problem) -> Self {
        Self::Damaged(problem)
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(what) => f.write_str(what),
            Self::Damaged(problem) => write!(f, "{}", Error::from(problem.clone())),
        }
    }
}
