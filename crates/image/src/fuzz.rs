//! Properties that hold for any bytes: bodies of fuzz targets and of the tests with damaged files.

use gpustub_core::diag::has_errors;
use gpustub_core::symbols::SymbolList;

use crate::archive::archive_members;
use crate::device::{archive_device_code, read_device_code};
use crate::ifs::to_ifs;
use crate::image_facts::read_image;
use crate::link_facts::read_link_facts;
use crate::relocatable::read_object;
use crate::strings_scan::{code_may_contain, read_strings};
use crate::symbols::{Options, read_symbols};

/// Reads `data` in every way, and panics on a violated property. Returns whether `data` is a readable
/// library.
#[doc(hidden)]
pub fn check(data: &[u8]) -> bool {
    // Values and errors are both fine; only a panic or an endless loop is not.
    let _ = read_link_facts(data);
    if let Ok(facts) = read_image(data, &|_, _| true) {
        let notes: usize = facts.dlopen_notes.iter().map(String::len).sum();
        assert!(notes <= 1 << 20, "segments of notes may overlap");
    }
    let _ = read_object(data, &|_, _| true);
    let _ = read_strings(data, &[".so"], &|_| true, &|_| ());
    let _ = code_may_contain(data, &["libcuda.so"], &|_| ());
    device(data);
    let Ok(list) = read_symbols(data, Options::default()) else {
        return false;
    };
    let unique = |pair: &[gpustub_core::symbols::Symbol]| {
        (&pair[0].name, &pair[0].version) < (&pair[1].name, &pair[1].version)
    };
    assert!(
        list.symbols.windows(2).all(unique),
        "symbols are sorted and unique"
    );
    assert!(to_ifs(&list).lines().count() >= 4);
    let text = list.to_text();
    let (again, diagnostics) = SymbolList::parse("fuzz.symbols", &text);
    assert!(!has_errors(&diagnostics), "{}", diagnostics[0]);
    assert_eq!(
        again, list,
        "a list that was written reads as the same list"
    );
    true
}

/// Reads `data` as an archive and its members as object files; returns the number of readable ones.
#[doc(hidden)]
pub fn archive(data: &[u8]) -> usize {
    let Ok(members) = archive_members(data) else {
        return 0;
    };
    let mut left = data.len();
    let mut read = 0;
    for member in members.flatten() {
        // Members do not overlap, so that a small archive is not a large amount of work.
        left = left.checked_sub(member.data.len()).expect("no overlap");
        read += usize::from(matches!(
            read_object(member.data, &|_, _| true),
            Ok(Some(_))
        ));
    }
    read
}

/// Reads `data` as an object, an image and an archive with relocatable device code; returns the
/// number of objects and device links found.
#[doc(hidden)]
pub fn device(data: &[u8]) -> usize {
    let found = [read_device_code(data), archive_device_code(data)];
    let mut ids = 0;
    for code in found.into_iter().flatten() {
        assert!(code.interposable.is_subset(&code.exported));
        assert!(code.exported.is_subset(&code.links));
        let texts = code.modules.iter().map(|module| &module.id);
        let texts: usize = texts.chain(&code.links).map(|id| id.len() + 1).sum();
        // A byte that is not UTF-8 becomes three.
        assert!(texts <= 3 * data.len() + 1, "no more than the file has");
        ids += code.modules.len() + code.links.len();
    }
    ids
}
