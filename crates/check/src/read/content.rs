//! Contents of programs, libraries and object files.

use gpustub_image::{
    ConsumedFn, ElfImage, PeImage, Problem, code_may_contain, read_image, read_object, read_strings,
};

use crate::evidence::{self, TEXTS};
use crate::package::Content;
use crate::symbol_names::is_relevant;

/// Whether a name is kept beyond those that rules need: that of a symbol, or a string of an image.
pub type KeepFn<'a> = &'a dyn Fn(&str) -> bool;

/// Contents of an ELF file of this name; `Other` for other files.
pub(super) fn of_elf(
    bytes: &[u8],
    file_name: &str,
    keep: KeepFn<'_>,
    consumed: ConsumedFn<'_>,
) -> Content {
    // ELF files with GPU code are not for host loaders and linkers: EM_CUDA, EM_AMDGPU.
    if !bytes.starts_with(b"\x7fELF") || matches!(bytes.get(18..20), Some([190 | 224, 0])) {
        return Content::Other;
    }
    let image = match ElfImage::parse(bytes) {
        Ok(image) => image,
        Err(error) => return Content::Damaged(error.problem().clone()),
    };
    let keep_symbol = |name: &str, node: Option<&str>| is_relevant(name, node) || keep(name);
    let error = match read_image(&image, &keep_symbol, consumed) {
        Ok(mut facts) => {
            let keep_string = |text: &str| evidence::is_kept(text) || keep(text);
            facts.strings = read_strings(&image, TEXTS, &keep_string, consumed);
            let names = evidence::dlopen_candidates(&facts, file_name);
            if !names.is_empty() {
                let composed_in_code = code_may_contain(&image, &names, consumed);
                facts.whole_strings = names
                    .iter()
                    .filter(|name| !composed_in_code.contains(name))
                    .map(|name| (*name).to_owned())
                    .collect();
            }
            return Content::Image(Box::new(facts));
        }
        Err(error) => error,
    };
    let error = match error.problem() {
        Problem::NoDynamicSymbols(_) => match read_object(&image, &keep_symbol) {
            Ok(Some(facts)) => return Content::Object(Box::new(facts)),
            Ok(None) => return Content::Other,
            Err(error) => error,
        },
        _ => error,
    };
    Content::Damaged(error.problem().clone())
}

/// Contents of a PE file. Its strings are not read.
pub(super) fn of_pe(bytes: &[u8], keep: KeepFn<'_>) -> Content {
    let keep_symbol = |name: &str, node: Option<&str>| is_relevant(name, node) || keep(name);
    match PeImage::parse(bytes) {
        Ok(image) => Content::Image(Box::new(image.facts(&keep_symbol))),
        Err(error) => Content::Damaged(error.problem().clone()),
    }
}
