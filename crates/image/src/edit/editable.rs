//! Images that can be edited.

use super::headers;
use super::inspect::{Details, Inspection, read_details};
use super::overlaps;
use super::patch::Patch;
use super::plan::{edit, refuse};
use super::problem::EditProblem;
use super::request::EditRequest;
use super::targets::Targets;
use super::verify::verify;
use crate::consumed::ConsumedFn;
use crate::elf::{ElfImage, Source};

/// A parsed image that the loader accepts, with its requirements. It can be edited several times.
pub struct Editable<'i, 'd> {
    image: &'i ElfImage<'d>,
    details: Details<'d>,
}

impl<'i, 'd> Editable<'i, 'd> {
    /// Reads the requirements of a program or shared library.
    ///
    /// # Errors
    ///
    /// If no edit of the image is possible, whatever it is.
    pub fn new(image: &'i ElfImage<'d>) -> Result<Self, EditProblem> {
        image.check_loadable()?;
        let details = read_details(image)?;
        Ok(Self { image, details })
    }

    /// The requirements.
    pub fn inspection(&self) -> &Inspection {
        &self.details.inspection
    }

    /// Requirements of the edited image, which [`Self::plan`] compares with those that it reads from it.
    ///
    /// # Errors
    ///
    /// If this edit is not possible.
    pub fn expected(&self, request: &EditRequest) -> Result<Inspection, EditProblem> {
        let inspection = &self.details.inspection;
        Ok(Targets::find(inspection, request)?.expected(inspection, request))
    }

    /// Returns the edited image that `request` describes. The patch belongs to the bytes of this image.
    ///
    /// # Errors
    ///
    /// If this edit is not possible.
    pub fn plan(&self, request: &EditRequest) -> Result<Patch, EditProblem> {
        let Self { image, details } = self;
        refuse(image)?;
        let targets = Targets::find(&details.inspection, request)?;
        let after = targets.expected(&details.inspection, request);
        if after == details.inspection {
            return Err(EditProblem::NotNeeded);
        }
        // The loader ends the process for a version of a library that is not loaded (`_dl_check_map_versions`).
        if let Some(need) = (after.verneed.iter()).find(|need| !after.needed.contains(&need.file)) {
            return Err(EditProblem::NotLoaded(need.file.clone()));
        }
        overlaps::check(image, details)?;
        let patch = edit(image, details, &targets, &after, request)?;
        verify(&patch, image, details, &targets, &after)?;
        Ok(patch)
    }
}

/// Parses a program or shared library for [`Editable::new`]. `consumed` receives the parts of large tables that were read.
///
/// # Errors
///
/// If no edit of the file is possible, because its headers cannot be read.
pub fn read<'d>(bytes: &'d [u8], consumed: ConsumedFn<'d>) -> Result<ElfImage<'d>, EditProblem> {
    let mut image = headers::read(Source::File(bytes))?;
    image.consumed = consumed;
    Ok(image)
}

/// [`Editable::inspection`] of the program or shared library in `bytes`.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, EditProblem> {
    let image = read(bytes, &|_| ())?;
    Ok(Editable::new(&image)?.details.inspection)
}

/// [`Editable::plan`] of the program or shared library in `bytes`.
pub fn plan(bytes: &[u8], request: &EditRequest) -> Result<Patch, EditProblem> {
    let image = read(bytes, &|_| ())?;
    image.check_loadable()?;
    refuse(&image)?;
    Editable::new(&image)?.plan(request)
}
