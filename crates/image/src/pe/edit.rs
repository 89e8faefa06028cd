//! Edits of PE images, which replace names of DLLs in the tables of imports. The loader binds imports by DLL, so that nothing
//! else changes: code, tables of addresses and relocations keep their bytes and places.
//!
//! The new name is written over a replaced one if it is not longer, or else into the padding of a section, or into a section
//! of its own. The edited image is read again, and the plan is an error where it differs from the request.

mod checksum;
mod headers;
mod name;
mod tables;

use object::pe::ImageNtHeaders64;

use self::checksum::checksum;
use self::headers::{Headers, field};
use self::name::place;
use self::tables::{Descriptor, descriptors};
use super::image::{PeImage, PeImport, PeSymbol};
use crate::edit::{EditProblem, EditRequest, ImportKind, Imported, Inspection, PE_MACHINES, Patch};
use crate::elf::Source;
use crate::error::Problem;

/// A PE image that the loader accepts, with its requirements. It can be edited several times.
pub struct EditablePe<'d> {
    bytes: &'d [u8],
    image: PeImage<'d>,
    headers: Headers,
    /// Of imports, then of delayed imports, in the order of those of the image.
    descriptors: Vec<Descriptor>,
    inspection: Inspection,
}

impl<'d> EditablePe<'d> {
    /// Reads the requirements of a program or DLL.
    ///
    /// # Errors
    ///
    /// If no edit of the image is possible, whatever it is.
    pub fn new(bytes: &'d [u8]) -> Result<Self, EditProblem> {
        let image = PeImage::undamaged(bytes).map_err(damaged)?;
        if !PE_MACHINES.contains(&image.machine.as_str()) {
            return Err(EditProblem::Machine(image.machine));
        }
        let headers = Headers::read(bytes)?;
        let descriptors = descriptors(bytes, &headers, &image)?;
        let inspection = inspection(&image);
        Ok(Self {
            bytes,
            image,
            headers,
            descriptors,
            inspection,
        })
    }

    /// The requirements.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// Requirements of the edited image, which [`Self::plan`] compares with those that it reads from it.
    ///
    /// # Errors
    ///
    /// If this edit is not possible.
    pub fn expected(&self, request: &EditRequest) -> Result<Inspection, EditProblem> {
        check_name(request)?;
        let mut expected = self.inspection.clone();
        let files = (expected.imports.iter_mut()).filter_map(|import| import.file.as_mut());
        let names = (expected.needed.iter_mut().chain(&mut expected.delayed)).chain(files);
        for name in names.filter(|name| is_replaced(request, name)) {
            name.clone_from(&request.stub);
        }
        Ok(expected)
    }

    /// Returns the edited image that `request` describes. The patch belongs to the bytes of this image.
    ///
    /// # Errors
    ///
    /// If this edit is not possible.
    pub fn plan(&self, request: &EditRequest) -> Result<Patch, EditProblem> {
        check_name(request)?;
        let imports = self.image.imports.iter().chain(&self.image.delay_imports);
        let replaced: Vec<Descriptor> = (imports.zip(&self.descriptors))
            .filter(|(import, _)| is_replaced(request, import.dll))
            .map(|(_, descriptor)| *descriptor)
            .collect();
        if replaced.is_empty() {
            return Err(EditProblem::NotNeeded);
        }
        self.refuse(request)?;
        let patch = self.patch(request, &replaced)?;
        self.verify(&patch, request)?;
        Ok(patch)
    }

    /// Rejects an image that refers to DLLs in a way that the edit would not keep.
    fn refuse(&self, request: &EditRequest) -> Result<(), EditProblem> {
        let forwarders = (self.image.exports.iter()).filter_map(|export| export.forwarder);
        for target in forwarders {
            // NTDLL.RtlAllocateHeap: the name of a DLL, whose extension is implied, may contain dots.
            let dll = target.rsplit_once('.').map_or(target, |(dll, _)| dll);
            let mut replaced = request.libraries.iter().flat_map(|library| &library.needed);
            if replaced.any(|name| name.eq_ignore_ascii_case(&format!("{dll}.dll"))) {
                return Err(EditProblem::Forwarder(target.to_owned()));
            }
        }
        match (&self.headers.signature, request.removes_signature) {
            (Some(_), false) => Err(EditProblem::Signed),
            (Some(_), true) if self.headers.must_be_signed => Err(EditProblem::MustBeSigned),
            _ => Ok(()),
        }
    }

    fn patch(&self, request: &EditRequest, replaced: &[Descriptor]) -> Result<Patch, EditProblem> {
        let headers = &self.headers;
        let mut length = self.bytes.len() as u64;
        let mut changes = Vec::new();
        if let Some(signature) = &headers.signature {
            length = signature.start;
            changes.push((headers.signature_directory, vec![0; 8]));
        }
        let place = place(&request.stub, replaced, self.bytes, length, headers)?;
        changes.extend(place.changes);
        for descriptor in replaced {
            changes.push((descriptor.name_field, place.address.to_le_bytes().to_vec()));
        }
        let checksum_field = headers.optional + field::CHECKSUM;
        let with_checksum = |checksum: u32| {
            let mut changes = changes.clone();
            if headers.checksum != 0 {
                changes.push((checksum_field, checksum.to_le_bytes().to_vec()));
            }
            let added = place.added.iter().cloned().collect();
            Patch::new(length, changes, (length, added))
        };
        let patch = with_checksum(0)?;
        let checksum = checksum(patch.parts(self.bytes));
        if headers.checksum == 0 {
            return Ok(patch);
        }
        with_checksum(checksum)
    }

    /// Compares the edited image with the original and the request. It is read again, so that a fault of the editor is an
    /// error and not a file that does not load.
    fn verify(&self, patch: &Patch, request: &EditRequest) -> Result<(), EditProblem> {
        let wrong = |what: &str| EditProblem::Verification(what.to_owned());
        let pieces = patch
            .apply(self.bytes)
            .ok_or_else(|| wrong("the patch has parts that are not in the image"))?;
        // A name or an entry that is part of another one changes with it, into any bytes.
        let overlap = EditProblem::Malformed("tables overlap");
        let Ok(edited) = PeImage::read::<ImageNtHeaders64>(Source::Pieces(&pieces)) else {
            return Err(overlap);
        };
        let replaced = |dlls: &[PeImport<'_>], original: &[PeImport<'_>]| {
            (dlls.iter().zip(original)).all(|(dll, original)| {
                !is_replaced(request, original.dll) || dll.dll == request.stub
            })
        };
        if !replaced(&edited.imports, &self.image.imports)
            || !replaced(&edited.delay_imports, &self.image.delay_imports)
        {
            return Err(wrong(
                "the edited image has another stub library than requested",
            ));
        }
        let is_same = inspection(&edited) == self.expected(request)?
            && edited.exports == self.image.exports
            && edited.name == self.image.name;
        if is_same { Ok(()) } else { Err(overlap) }
    }
}

fn check_name(request: &EditRequest) -> Result<(), EditProblem> {
    if request.stub.is_empty() || request.stub.contains('\0') {
        return Err(EditProblem::Request("the stub has no name".to_owned()));
    }
    Ok(())
}

fn is_replaced(request: &EditRequest, dll: &str) -> bool {
    let mut names = request.libraries.iter().flat_map(|library| &library.needed);
    names.any(|name| name == dll)
}

fn damaged(problem: Problem) -> EditProblem {
    match problem {
        Problem::Truncated(what) => EditProblem::Truncated(what),
        Problem::Malformed(what) => EditProblem::Malformed(what),
        _ => EditProblem::Malformed("not a PE image"),
    }
}

/// Requirements of an image.
fn inspection(image: &PeImage<'_>) -> Inspection {
    let dlls = |imports: &[PeImport<'_>]| -> Vec<String> {
        imports.iter().map(|import| import.dll.to_owned()).collect()
    };
    let mut inspection = Inspection {
        machine: image.machine.clone(),
        kind: image.kind(),
        soname: image.name.map(str::to_owned),
        needed: dlls(&image.imports),
        delayed: dlls(&image.delay_imports),
        ..Inspection::default()
    };
    for import in image.imports.iter().chain(&image.delay_imports) {
        for symbol in &import.symbols {
            let (name, kind) = match symbol {
                PeSymbol::Name(name) => ((*name).to_owned(), ImportKind::Unknown),
                PeSymbol::Ordinal(number) => (number.to_string(), ImportKind::Ordinal),
            };
            inspection.imports.push(Imported {
                name,
                file: Some(import.dll.to_owned()),
                node: None,
                kind,
                weak: false,
                copied: false,
                referenced: true,
            });
        }
    }
    inspection
}
