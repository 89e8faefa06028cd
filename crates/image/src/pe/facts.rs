//! Facts about a PE image that policy checks need, in the form of those of ELF images.

use super::image::{PeImage, PeSymbol};
use crate::image_facts::{ImageFacts, ImageFormat, ImageKind, Import, Keep};
use crate::link_facts::LinkFacts;

impl PeImage<'_> {
    /// Facts about the image. Imported DLLs are `needed`, unless they are delayed; the name in the export table is the
    /// `soname`. Of the names those are kept that `keep` accepts.
    pub fn facts(&self, keep: Keep<'_>) -> ImageFacts {
        let needed = self.imports.iter().map(|import| import.dll.to_owned());
        let delayed = (self.delay_imports.iter()).map(|import| import.dll.to_owned());
        let mut facts = ImageFacts {
            format: ImageFormat::Pe,
            link: LinkFacts {
                machine: self.machine.clone(),
                soname: self.name.map(str::to_owned),
                needed: needed.collect(),
                ..LinkFacts::default()
            },
            delayed: delayed.collect(),
            kind: self.kind(),
            ..ImageFacts::default()
        };
        let symbols = (self.imports.iter().chain(&self.delay_imports))
            .flat_map(|import| &import.symbols)
            .filter_map(|symbol| match symbol {
                PeSymbol::Name(name) => Some(*name),
                PeSymbol::Ordinal(_) => None,
            });
        for name in symbols.filter(|name| keep(name, None)) {
            facts.imports.push(Import {
                name: name.to_owned(),
                weak: false,
                version: None,
            });
        }
        for name in self.exports.iter().filter_map(|export| export.name) {
            if keep(name, None) {
                facts.exports.push(name.to_owned());
            } else {
                facts.other_exports += 1;
            }
        }
        facts.exports.sort();
        facts.exports.dedup();
        facts
    }

    pub(super) fn kind(&self) -> ImageKind {
        if self.is_dll {
            ImageKind::Library
        } else {
            ImageKind::Program
        }
    }
}
