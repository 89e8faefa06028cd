//! Data of the template of the CMake package.

use std::path::Path;

use cargo_metadata::Package;
use gpustub_core::gpu_arch::{Arch, ArchKind, Vendor};
use gpustub_core::manifest::Cudart;
use gpustub_engine::device_link::hip_symbols;
use gpustub_engine::device_link::metadata::{DeviceLibrary, Stubs};
use gpustub_engine::device_link::visibility;
use gpustub_engine::toolchain::shared::link_file;
use gpustub_image::read_link_facts_file;
use gpustub_workspace::error::{Error, Result};
use serde_json::{Value, json};

use crate::compile::engine_error;

use super::installed::{all_stubs, file_name, has_code, has_code_for, static_name, stubs_of};

/// Data of the template for the package.
pub fn package_data(package: &Package, libraries: &[DeviceLibrary]) -> Result<Value> {
    let mut archs: Vec<Arch> = libraries
        .iter()
        .flat_map(|library| library.archs.clone())
        .collect();
    archs.sort_unstable();
    archs.dedup();
    let mut stubs: Vec<&Path> = libraries
        .iter()
        .flat_map(|library| all_stubs(library, libraries))
        .collect();
    stubs.sort_unstable();
    stubs.dedup();
    let stubs: Vec<Value> = stubs
        .into_iter()
        .map(|path| {
            json!({
                "target": stubs_target(package, path),
                "file": file_name(&link_file(path)),
                "soname": file_name(path),
            })
        })
        .collect();
    let libraries_data = libraries
        .iter()
        .map(|library| library_data(package, library, libraries))
        .collect::<Result<Vec<Value>>>()?;
    Ok(json!({
        "package": package.name,
        "runtime": libraries.iter().any(needs_toolkit),
        "hip_runtime": hip_runtime(libraries)?,
        "archs": cmake_archs(&archs),
        "hip_archs": hip_archs(&archs),
        "stubs": stubs,
        "libraries": libraries_data,
    }))
}

/// Data of the template for one library.
fn library_data(
    package: &Package,
    library: &DeviceLibrary,
    libraries: &[DeviceLibrary],
) -> Result<Value> {
    let include_dir = if library.include_dirs.is_empty() {
        String::new()
    } else {
        format!("${{_gpustub_prefix}}/include/{}", library.name)
    };
    let defines = library.defines.iter().map(|define| escaped(define));
    Ok(json!({
        "name": library.name,
        "include": include_dir,
        "defines": cmake_list(defines),
        "targets": targets(package, library, libraries)?,
    }))
}

/// Data of the template for the CMake targets of a library.
fn targets(
    package: &Package,
    library: &DeviceLibrary,
    libraries: &[DeviceLibrary],
) -> Result<Vec<Value>> {
    let common = common_data(package, library, libraries)?;
    let name = target_name(package, &library.name);
    let links = required_targets(package, library, libraries, "", is_shared);
    if !has_code(library) {
        let file = String::new();
        return Ok(vec![target_data(&common, name, "INTERFACE", file, links)]);
    }
    // The archive of a shared library is for programs without shared libraries.
    let archive_links = if is_pair(library) {
        required_targets(package, library, libraries, "_static", has_code)
    } else {
        links.clone()
    };
    let archive_name = format!("{name}_static");
    let file = file_name(Path::new(&static_name(library)));
    let mut archive = target_data(&common, archive_name, "STATIC", file, archive_links);
    archive["part"] = "Static".into();
    let mut targets = vec![archive];
    if let (Some(middle), Some(r#final)) = (&library.middle, &library.r#final) {
        let stubs = all_stubs(library, libraries).into_iter();
        let stubs =
            cmake_list(stubs.map(|path| format!("${{_gpustub_prefix}}/lib/{}", file_name(path))));
        let final_name = format!("{name}_final");
        let file = file_name(middle);
        let mut middle = target_data(&common, name.clone(), "SHARED", file.clone(), links);
        middle["soname"] = file.into();
        middle["part"] = "Shared".into();
        let visible = has_code_for(library, Vendor::Nvidia).then(visible_entities);
        middle["flags"] = cmake_list(flags(library, libraries).chain(visible)).into();
        middle["stubs"] = stubs.clone().into();
        let file = file_name(r#final);
        let mut r#final = target_data(&common, final_name, "SHARED", file.clone(), name);
        r#final["soname"] = file.into();
        r#final["part"] = "Final".into();
        r#final["stubs"] = stubs.into();
        r#final["members"] = members(library, libraries).into();
        targets.extend([middle, r#final]);
    }
    Ok(targets)
}

/// The part of [`target_data`] that is the same for all targets of a library.
fn common_data(
    package: &Package,
    library: &DeviceLibrary,
    libraries: &[DeviceLibrary],
) -> Result<Value> {
    let name = target_name(package, &library.name);
    let archive_name = format!("{name}_static");
    let (middle, r#final) = if is_pair(library) {
        (name.clone(), format!("{name}_final"))
    } else {
        (archive_name.clone(), String::new())
    };
    let runtime = match &library.stubs {
        Stubs::None if needs_toolkit(library) => "toolkit",
        Stubs::Shared(_) | Stubs::External => "stubs",
        _ => "",
    };
    let stubs = stubs_of(library, Vendor::Nvidia, libraries);
    let hip_stubs = stubs_of(library, Vendor::Amd, libraries);
    let hip_stubs_target = hip_stubs.map(|stubs| stubs_target(package, stubs));
    let stubs_target = stubs.map(|stubs| stubs_target(package, stubs));
    let hip_symbols = if has_code_for(library, Vendor::Amd) {
        hip_symbols(library).map_err(engine_error)?
    } else {
        Vec::new()
    };
    Ok(json!({
        "soname": "",
        "flags": cmake_list(flags(library, libraries)),
        "runtime": needs_toolkit(library),
        "hip_runtime": needs_rocm(library) && is_pair(library),
        "stubs": "",
        "members": [],
        "part": "",
        "middle": middle,
        "final": r#final,
        "static": archive_name,
        "cudart": cudart(library),
        "archs": cmake_archs(&library.archs),
        "hip_archs": hip_archs(&library.archs),
        "cudadevrt": library.cudadevrt,
        "lto": library.archs.iter().any(|arch| arch.kind() == ArchKind::Lto),
        "from": runtime,
        "stubs_target": stubs_target.unwrap_or_default(),
        "hip_stubs_target": hip_stubs_target.unwrap_or_default(),
        "hip_symbols": cmake_list(hip_symbols),
    }))
}

/// Data of one target. `links` are the targets that it links.
fn target_data(common: &Value, name: String, kind: &str, file: String, links: String) -> Value {
    let mut data = common.clone();
    data["target"] = name.into();
    data["kind"] = kind.into();
    data["file"] = file.into();
    data["links"] = links.into();
    data
}

/// Options of nvcc and of clang for the sources of dependents. Headers alone are for the compilers of all libraries.
fn flags<'a>(
    library: &'a DeviceLibrary,
    libraries: &'a [DeviceLibrary],
) -> impl Iterator<Item = String> + 'a {
    let with_code = if has_code(library) {
        std::slice::from_ref(library)
    } else {
        libraries
    };
    let mut languages = Vec::new();
    for (language, vendor) in [("CUDA", Vendor::Nvidia), ("HIP", Vendor::Amd)] {
        if with_code.iter().any(|library| library.has_code(vendor)) {
            languages.push(language);
        }
    }
    let languages = languages.join(",");
    let options = library.compile_options.iter();
    options.map(move |option| format!("$<$<COMPILE_LANGUAGE:{languages}>:{}>", escaped(option)))
}

/// Option of nvcc for sources that use kernels and variables of a shared library.
fn visible_entities() -> String {
    let is_hiding = format!(
        "$<VERSION_GREATER_EQUAL:$<CUDA_COMPILER_VERSION>,{}>",
        visibility::FIRST_MAJOR
    );
    format!(
        "$<$<AND:$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>,{is_hiding}>:{}>",
        visibility::OPTION
    )
}

/// CMake target of a library.
fn target_name(package: &Package, library: &str) -> String {
    format!("{}::{library}", package.name)
}

/// The targets of the libraries that a library requires: those with `suffix`, if `has_suffix` holds for the library.
fn required_targets(
    package: &Package,
    library: &DeviceLibrary,
    libraries: &[DeviceLibrary],
    suffix: &str,
    has_suffix: fn(&DeviceLibrary) -> bool,
) -> String {
    cmake_list(library.requires.iter().map(|name| {
        let mut required = libraries.iter().filter(|required| required.name == *name);
        let suffix = if required.clone().any(has_suffix) {
            suffix
        } else if required.any(|required| !has_code(required)) {
            ""
        } else {
            "_static"
        };
        target_name(package, name) + suffix
    }))
}

fn is_shared(library: &DeviceLibrary) -> bool {
    library.middle.is_some()
}

/// Whether the library is a pair of shared libraries.
fn is_pair(library: &DeviceLibrary) -> bool {
    library.middle.is_some() && library.r#final.is_some()
}

/// The library and all libraries with device code that it requires.
fn members<'a>(library: &'a DeviceLibrary, libraries: &'a [DeviceLibrary]) -> Vec<&'a str> {
    let mut members = vec![library];
    let mut index = 0;
    while let Some(member) = members.get(index) {
        index += 1;
        let new_members: Vec<&DeviceLibrary> = libraries
            .iter()
            .filter(|required| member.requires.contains(&required.name))
            .filter(|required| !members.contains(required))
            .collect();
        members.extend(new_members);
    }
    members
        .into_iter()
        .filter(|member| has_code(member))
        .map(|member| member.name.as_str())
        .collect()
}

/// CMake target of shared stubs, for images with a device link of their own.
fn stubs_target(package: &Package, stubs: &Path) -> String {
    let file = file_name(stubs);
    let name = file.trim_start_matches("lib").trim_end_matches(".so");
    target_name(package, name)
}

/// Value of CMake's CUDA_RUNTIME_LIBRARY.
fn cudart(library: &DeviceLibrary) -> &'static str {
    match library.cudart {
        _ if !library.has_code(Vendor::Nvidia) => "None",
        Cudart::Shared => "Shared",
        Cudart::Static => "Static",
        Cudart::None => "None",
    }
}

/// Value of CMake's CUDA_ARCHITECTURES. A device link makes machine code of LTO code.
fn cmake_archs(archs: &[Arch]) -> String {
    let archs = Vendor::Nvidia.select(archs.iter().copied());
    let mut names: Vec<String> = archs
        .into_iter()
        .map(|arch| {
            let machine_code = arch.as_kind(ArchKind::Real).to_string();
            let kind = match arch.kind() {
                ArchKind::Virtual => "virtual",
                ArchKind::Real | ArchKind::Lto => "real",
            };
            format!("{}-{kind}", machine_code.trim_start_matches("sm_"))
        })
        .collect();
    names.dedup();
    cmake_list(names)
}

/// Value of CMake's HIP_ARCHITECTURES.
fn hip_archs(archs: &[Arch]) -> String {
    let archs = Vendor::Amd.select(archs.iter().copied());
    cmake_list(archs.into_iter().map(|arch| arch.to_string()))
}

fn needs_toolkit(library: &DeviceLibrary) -> bool {
    let has_runtime = library.stubs == Stubs::None && library.cudart != Cudart::None;
    has_runtime && has_code_for(library, Vendor::Nvidia)
}

fn needs_rocm(library: &DeviceLibrary) -> bool {
    library.hip_stubs == Stubs::None && has_code_for(library, Vendor::Amd)
}

/// Soname of ROCm's runtime that the shared libraries need; empty if they need none.
fn hip_runtime(libraries: &[DeviceLibrary]) -> Result<String> {
    let middles = libraries.iter().filter(|library| needs_rocm(library));
    let mut soname = String::new();
    for middle in middles.filter_map(|library| library.middle.as_ref()) {
        let facts = read_link_facts_file(middle).map_err(|e| Error::new(e.to_string()))?;
        let mut needed = facts.needed.into_iter();
        let name = needed.find(|name| name.starts_with("libamdhip64.so"));
        soname = name.unwrap_or_else(|| "libamdhip64.so".to_owned());
    }
    Ok(soname)
}

/// A CMake list.
fn cmake_list(elements: impl IntoIterator<Item = String>) -> String {
    elements.into_iter().collect::<Vec<_>>().join(";")
}

/// Text for a quoted argument of CMake (cmake-language(7), "Escape Sequences").
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if matches!(letter, '"' | '\\' | '$' | ';') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
