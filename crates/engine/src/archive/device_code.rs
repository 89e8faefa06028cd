//! Device code in forms whose symbols no view finds.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use gpustub_core::diag::{Diagnostic, MALFORMED_LIBRARY, NO_SYMBOLS};
use gpustub_core::offload::{CodeKind, ContainerFormat, OffloadCode, containers};
use gpustub_core::text::join;
use gpustub_superarchive::{Input, Layer, has_unknown_symbols};

/// Why the symbols of a member's device code are unknown.
#[derive(PartialEq, Eq)]
pub(super) enum Hidden {
    /// The device code is in containers.
    Packed(OffloadCode),
    /// It is in containers of a host object, whose own symbols are known.
    BesideHostCode(OffloadCode),
    /// It is code for one GPU in a form without symbols for linkers.
    Unlinkable(CodeKind),
}

/// Prefix of the symbol that clang adds to each host object of HIP (`clang/lib/CodeGen/CodeGenModule.cpp`).
const HIP_UNIT: &[u8] = b"__hip_cuid_";

impl Hidden {
    /// The reason for a member; `None` if views find its symbols.
    pub(super) fn of(member: &Input<'_>) -> Option<Self> {
        let symbols = &member.symbols;
        let has_own = !symbols
            .iter()
            .all(|symbol| symbol.name.starts_with(HIP_UNIT));
        match OffloadCode::of(containers(member.data)) {
            Some(code) if has_own => Some(Self::BesideHostCode(code)),
            Some(code) => Some(Self::Packed(code)),
            None => {
                let kind = CodeKind::of(member.data);
                // Modules of SPIR-V may export nothing. One named like an object file is reported as such.
                let is_hidden = symbols.is_empty()
                    && kind.is_for_device()
                    && kind != CodeKind::SpirV
                    && !has_unknown_symbols(member);
                is_hidden.then_some(Self::Unlinkable(kind))
            }
        }
    }

    /// Warning about the first member of a layer with such code, and the number of further ones. `is_unpacked`: others were
    /// unpacked.
    pub(super) fn warning(
        &self,
        layer: &Layer<'_>,
        first: &Input<'_>,
        others: &str,
        is_unpacked: bool,
    ) -> Diagnostic {
        let help_with = |format| match format {
            ContainerFormat::Kpack | ContainerFormat::KpackReference => extraction(format),
            _ if is_unpacked => extraction(format),
            _ => UNPACK.to_owned(),
        };
        let name = String::from_utf8_lossy(&first.name);
        let (text, help) = match self {
            Self::Packed(code) => (
                format!(
                    "the device code of `{name}`{others}{} is in {}: no view finds its symbols",
                    for_archs(code),
                    code.container
                ),
                help_with(code.container),
            ),
            Self::BesideHostCode(code) => (
                format!(
                    "views find the symbols of `{name}`{others} for the host, and not those of its device code{}, which \
                     is in {}",
                    for_archs(code),
                    code.container
                ),
                help_with(code.container),
            ),
            Self::Unlinkable(kind) => (
                format!("`{name}`{others} is {kind}: no view finds its symbols"),
                RELOCATABLE.to_owned(),
            ),
        };
        let message = format!("layer `{}`: {text}", layer.name);
        Diagnostic::warning(&NO_SYMBOLS, message).help(help)
    }
}

const UNPACK: &str = "give the code of each architecture a view of its own: `--unpack`, in GpuStub.toml `unpack = true`";
const RELOCATABLE: &str =
    "give code that a device link takes: bitcode of clang (`-emit-llvm`), or cubins of `nvcc -dc`";

fn for_archs(code: &OffloadCode) -> String {
    match &Vec::from_iter(&code.archs)[..] {
        [] => String::new(),
        archs => format!(" for {}", join(archs, ", ")),
    }
}

fn extraction(format: ContainerFormat) -> String {
    format!(
        "extract the code of each architecture, for a view of its own: {}",
        format.extractor()
    )
}

/// Error for an input that is device code in such a form, and no archive or object file.
pub(super) fn unsupported(path: &Path) -> Option<Diagnostic> {
    let mut head = Vec::new();
    File::open(path)
        .ok()?
        .take(4096)
        .read_to_end(&mut head)
        .ok()?;
    let kind = CodeKind::of(&head);
    let (name, help) = match ContainerFormat::of_file(&head) {
        Some(format) => (format.to_string(), extraction(format)),
        None if kind.is_for_device() => (kind.to_string(), RELOCATABLE.to_owned()),
        None => return None,
    };
    let message = format!(
        "`{}` is {name}, neither an archive nor an object file",
        path.display()
    );
    Some(Diagnostic::error(&MALFORMED_LIBRARY, message).help(help))
}
