//! Canonical bitcode: modules without the processor that they were compiled for, so that more families
//! share them.

use crate::definitions::not_canonical::NotCanonical;
use crate::definitions::{canonical, definitions};
use crate::ids::{IndexVec, LayerId, MemberPosition};
use crate::request::{Input, Layer};

/// Canonical forms of members, from which layers borrow.
///
/// A module of LLVM bitcode loses its source file name, its producer (the identification and
/// `llvm.ident`), and the function attributes `target-cpu`, `target-features` and `tune-cpu`. Tools that
/// compile it have to be given these: `-mcpu` and `-mattr` of `llc` and of the linkers.
/// The triple and the data layout stay. Its meaning is otherwise the same.
#[derive(Debug, Default)]
pub struct CanonicalBitcode {
    /// Canonical form of each member of each layer; `None` for a member that is kept unchanged.
    forms: IndexVec<LayerId, Vec<Option<Vec<u8>>>>,
    /// Modules that have no canonical form.
    pub unchanged: Vec<UnchangedModule>,
}

/// A module of bitcode that has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnchangedModule {
    /// Layer of the module.
    pub layer: LayerId,
    /// Position in the layer.
    pub member: MemberPosition,
    /// The reason.
    pub reason: NotCanonical,
}

impl CanonicalBitcode {
    /// Canonical forms of the members of layers.
    pub fn from_layers(layers: &[Layer<'_>]) -> Self {
        let mut canonical = Self::default();
        for (index, layer) in layers.iter().enumerate() {
            let mut forms = Vec::with_capacity(layer.members.len());
            for (position, input) in layer.members.iter().enumerate() {
                let form = canonical_form(input).transpose();
                forms.push(form.unwrap_or_else(|reason| {
                    canonical.unchanged.push(UnchangedModule {
                        layer: LayerId(index),
                        member: MemberPosition(position),
                        reason,
                    });
                    None
                }));
            }
            canonical.forms.push(forms);
        }
        canonical
    }

    /// Number of members that have a canonical form.
    pub fn count(&self) -> usize {
        self.forms.iter().flatten().flatten().count()
    }

    /// The same layers, with the canonical forms of their members.
    pub fn apply<'c>(&'c self, mut layers: Vec<Layer<'c>>) -> Vec<Layer<'c>> {
        for (layer, forms) in layers.iter_mut().zip(self.forms.iter()) {
            for (member, form) in layer.members.iter_mut().zip(forms) {
                if let Some(form) = form {
                    member.data = form;
                }
            }
        }
        layers
    }
}

/// The canonical form of a member, which has the same definitions; `None` if the member is not bitcode.
fn canonical_form(input: &Input<'_>) -> Option<Result<Vec<u8>, NotCanonical>> {
    let form = canonical(input.data)?;
    Some(form.and_then(|form| {
        let mut symbols = definitions(&form).unwrap_or_default();
        let mut original_symbols = input.symbols.clone();
        for symbols in [&mut symbols, &mut original_symbols] {
            symbols.sort_by(|a, b| (&a.name, a.binding).cmp(&(&b.name, b.binding)));
        }
        if symbols == original_symbols {
            Ok(form)
        } else {
            // Symbols of inline assembly, and names of 32-bit Windows.
            Err(NotCanonical::UnsupportedForm(
                "symbols that only LLVM's own table has",
            ))
        }
    }))
}
