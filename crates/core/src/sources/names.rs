//! Names of enumerators in `runtime/shared.h`, without their prefix.

use crate::library::{HookKind, Role, VersionEncoding};

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Driver => "DRIVER",
        Role::Toolkit => "TOOLKIT",
        Role::Loader => "LOADER",
    }
}

pub(super) fn encoding_name(encoding: VersionEncoding) -> &'static str {
    match encoding {
        VersionEncoding::Cuda => "CUDA",
        VersionEncoding::Pair => "PAIR",
        VersionEncoding::Hip => "HIP",
        VersionEncoding::Property => "PROPERTY",
        VersionEncoding::Driver => "DRIVER",
    }
}

pub(super) fn hook_name(kind: HookKind) -> &'static str {
    match kind {
        HookKind::Open => "OPEN",
        HookKind::Record => "RECORD",
        HookKind::Close => "CLOSE",
        HookKind::Call => "CALL",
        HookKind::CopyThrough => "COPY_THROUGH",
        HookKind::Update => "UPDATE",
    }
}
