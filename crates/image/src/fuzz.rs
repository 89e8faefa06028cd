//! Properties that hold for any bytes: bodies of fuzz targets and of the tests with damaged files.

use gpustub_core::diag::has_errors;
use gpustub_core::offload::{OffloadCode, containers, unpack_lz4, without_device_code};
use gpustub_core::symbols::SymbolList;

use crate::archive::archive_members;
use crate::device::{archive_device_code, read_device_code};
use crate::edit::{EditProblem, EditRequest, Inspection, Replaced, Unversioned, inspect, plan};
use crate::elf::ElfImage;
use crate::error::Error;
use crate::ifs::to_ifs;
use crate::image_facts::{ImageFacts, read_image};
use crate::link_facts::read_link_facts;
use crate::offload::{self, kpack_archs, kpack_reference};
use crate::pe::{EditablePe, PeImage, is_pe, read_dll_symbols, read_import_library};
use crate::relocatable::read_object;
use crate::strings_scan::{code_may_contain, read_strings};
use crate::symbols::{SymbolRequirements, read_symbols};

/// Reads `data` in every way, and panics on a violated property. Returns whether `data` is a readable
/// library.
#[doc(hidden)]
pub fn check(data: &[u8]) -> bool {
    // Values and errors are both fine; only a panic or an endless loop is not.
    let _ = read_link_facts(data);
    if let Ok(facts) = facts(data) {
        let notes: usize = facts.dlopen_notes.iter().map(String::len).sum();
        assert!(notes <= 1 << 20, "segments of notes may overlap");
    }
    if let Ok(image) = ElfImage::parse(data) {
        let _ = read_object(&image, &|_, _| true);
        let _ = read_strings(&image, &[".so"], &|_| true, &|_| ());
        let _ = code_may_contain(&image, &["libcuda.so"], &|_| ());
    }
    device(data);
    let Ok(list) = read_symbols(data, SymbolRequirements::default()) else {
        return pe(data);
    };
    check_list(&list);
    true
}

/// Reads `data` as a PE image. Returns whether it is one.
fn pe(data: &[u8]) -> bool {
    let Ok(image) = PeImage::parse(data) else {
        return false;
    };
    let imports = image.imports.iter().chain(&image.delay_imports);
    let entry_count: usize = imports.map(|import| import.symbols.len() + 1).sum();
    assert!(entry_count <= data.len() / 4, "no more entries than bytes");
    let _ = image.facts(&|_, _| true);
    if let Ok(list) = read_dll_symbols(data, SymbolRequirements::default()) {
        check_list(&list);
    }
    true
}

fn check_list(list: &SymbolList) {
    assert!(
        list.symbols
            .is_sorted_by(|a, b| (&a.name, &a.version) < (&b.name, &b.version)),
        "symbols are sorted and unique"
    );
    assert!(to_ifs(list).lines().count() >= 4);
    let text = list.to_text();
    let (reparsed, diagnostics) = SymbolList::parse("fuzz.symbols", &text);
    assert!(!has_errors(&diagnostics), "{}", diagnostics[0]);
    assert_eq!(
        reparsed, *list,
        "a list that was written reads as the same list"
    );
}

fn facts(data: &[u8]) -> Result<ImageFacts, Error> {
    read_image(&ElfImage::parse(data)?, &|_, _| true, &|_| ())
}

/// Edits `data`, and panics if the result violates a property. Returns whether `data` could be edited.
#[doc(hidden)]
pub fn edit(data: &[u8]) -> bool {
    if is_pe(data) {
        return edit_pe(data);
    }
    let request = fuzz_request();
    let Ok(before) = inspect(data) else {
        assert!(plan(data, &request).is_err(), "what is edited can be read");
        return false;
    };
    let patch = match plan(data, &request) {
        Ok(patch) => patch,
        Err(EditProblem::Verification(what)) => panic!("{what}"),
        Err(_) => return false,
    };
    // The zeros of .bss, tables and strings; all tables are in the file.
    assert!(
        patch.len() <= 3 * data.len() as u64 + (2 << 20),
        "bounded size"
    );
    let mut edited = Vec::new();
    patch
        .write(data, &mut edited)
        .expect("a vector takes all bytes");
    assert_eq!(edited.len() as u64, patch.len());
    let after = inspect(&edited).expect("an edited image is readable");
    assert_eq!(import_names(&before), import_names(&after));
    assert!(after.needed.contains(&request.stub));
    for library in request.libraries.iter().flat_map(|l| &l.needed) {
        assert!(!after.needed.contains(library));
        assert!(!after.verneed.iter().any(|need| need.file == *library));
    }
    // The other reader reads what it could read before.
    if let Ok(facts) = facts(data) {
        let edited = self::facts(&edited).expect("still readable");
        assert_eq!(facts.exports, edited.exports);
        assert_eq!(facts.imports.len(), edited.imports.len());
        assert_eq!(edited.link.needed, after.needed);
        assert_eq!(edited.link.verneed, after.verneed);
    }
    true
}

/// As [`edit`], of a PE image: with a name that fits into the place of the old one, and with a long one.
fn edit_pe(data: &[u8]) -> bool {
    let Ok(editable) = EditablePe::new(data) else {
        return false;
    };
    let stubs = ["gpustub.dll", "gpustub_a_package_with_a_long_name_1_0.dll"];
    let edited = stubs.map(|stub| {
        let request = EditRequest {
            stub: stub.to_owned(),
            libraries: ["nvcuda.dll", "CUDART64_12.dll", "lazy.dll"]
                .map(|dll| replaced(dll, ""))
                .into(),
            removes_signature: true,
            ..EditRequest::default()
        };
        let patch = match editable.plan(&request) {
            Ok(patch) => patch,
            Err(EditProblem::Verification(what)) => panic!("{what}"),
            Err(_) => return false,
        };
        assert!(
            patch.len() <= data.len() as u64 + (256 << 10),
            "bounded size"
        );
        let mut edited = Vec::new();
        patch
            .write(data, &mut edited)
            .expect("a vector takes all bytes");
        let after = PeImage::parse(&edited).expect("an edited image is readable");
        let dlls = after.imports.iter().chain(&after.delay_imports);
        assert!(dlls.clone().any(|import| import.dll == stub));
        let mut replaced = request.libraries.iter().flat_map(|library| &library.needed);
        assert!(!replaced.any(|name| dlls.clone().any(|import| import.dll == name)));
        // The entries, their names, fields of the headers and a section header.
        let changed = data.iter().zip(&edited).filter(|(a, b)| a != b).count();
        assert!(changed <= 4 * dlls.count() + 256, "{changed} bytes changed");
        true
    });
    edited.contains(&true)
}

fn fuzz_request() -> EditRequest {
    EditRequest {
        stub: "libgpustub_fuzz.so".into(),
        runpath: Some("$ORIGIN/../fuzz.libs".into()),
        removed_runpath: Vec::new(),
        libraries: vec![
            replaced("libcudart.so.12", "GPUSTUB_fuzz_cudart"),
            replaced("libcuda.so.1", "GPUSTUB_fuzz_cuda"),
        ],
        unversioned: vec![Unversioned {
            symbol: "cuInit".into(),
            node: "GPUSTUB_fuzz_cuda".into(),
        }],
        data: Vec::new(),
        removes_signature: false,
    }
}

fn replaced(library: &str, node: &str) -> Replaced {
    Replaced {
        needed: vec![library.to_owned()],
        nodes: vec![library.to_owned()],
        node: node.to_owned(),
    }
}

fn import_names(facts: &Inspection) -> Vec<&str> {
    facts
        .imports
        .iter()
        .map(|import| import.name.as_str())
        .collect()
}

/// Reads `data` as an archive and its members as object files; returns the number of readable ones.
#[doc(hidden)]
pub fn archive(data: &[u8]) -> usize {
    let Ok(members) = archive_members(data) else {
        return 0;
    };
    if let Ok(exports) = read_import_library(data, SymbolRequirements::default()) {
        check_list(&exports.list);
        let names = exports.list.symbols.len() + exports.decorated.len();
        assert!(names <= data.len() / 60, "a header of 60 bytes for each");
    }
    let mut bytes_left = data.len();
    let mut object_count = 0;
    for member in members.flatten() {
        // Members do not overlap, so that a small archive is not a large amount of work.
        bytes_left = bytes_left
            .checked_sub(member.data.len())
            .expect("no overlap");
        let object =
            ElfImage::parse(member.data).and_then(|image| read_object(&image, &|_, _| true));
        object_count += usize::from(matches!(object, Ok(Some(_))));
    }
    object_count
}

/// Reads `data` as an object, an image and an archive with relocatable device code; returns the
/// number of objects and device links found.
#[doc(hidden)]
pub fn device(data: &[u8]) -> usize {
    let codes = [read_device_code(data), archive_device_code(data)];
    let archs = OffloadCode::read(data).map_or(0, |code| code.archs.len());
    assert!(archs <= 1024, "a bounded number of architectures");
    let mut id_count = 0;
    for code in codes.into_iter().flatten() {
        assert!(code.interposable.is_subset(&code.exported));
        assert!(code.exported.is_subset(&code.links));
        let module_ids = code.modules.iter().map(|module| &module.id);
        let size: usize = module_ids.chain(&code.links).map(|id| id.len() + 1).sum();
        // A byte that is not UTF-8 becomes three.
        assert!(size <= 3 * data.len() + 1, "no more than the file has");
        id_count += code.modules.len() + code.links.len();
    }
    id_count
}

/// Reads the containers of device code in `data`, and panics if the result violates a property. Returns the number of
/// their targets, also of compressed ones.
#[doc(hidden)]
pub fn offload(data: &[u8]) -> usize {
    #[cfg(feature = "unpack")]
    const MAX_UNPACKED: usize = 1 << 18;
    let (mut size, mut target_count) = (0, 0);
    for container in containers(data) {
        size += container.data.len();
        assert!(size <= 2 * data.len(), "sections may overlap once");
        for entry in &container.entries {
            let code = container.code(entry);
            assert!(code.is_some() || !container.is_complete);
        }
        #[cfg(feature = "unpack")]
        if let Ok(bundle) = offload::unpack(&container, MAX_UNPACKED) {
            assert_eq!(bundle.len(), container.unpacked_size);
            let start = offload::unpack_start(&container, 32);
            assert_eq!(start.as_deref(), Ok(&bundle[..bundle.len().min(32)]));
        }
        target_count += offload::archs(&container).len();
    }
    if let Some(host) = without_device_code(data) {
        assert!(host.len() < data.len() || host.len() == data.len() && host != data);
        assert!(
            without_device_code(&host).is_none(),
            "sections are removed once"
        );
    }
    for size in [0, 100, 1 << 16] {
        if let Some(bytes) = unpack_lz4(data, size) {
            assert_eq!(bytes.len(), size);
        }
    }
    let _ = kpack_reference(data);
    target_count + kpack_archs(data).map_or(0, |archs| archs.len())
}
