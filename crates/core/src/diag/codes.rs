//! All kinds of diagnostics. Ids are a contract: they may be named in configuration and scripts.

use super::Code;

macro_rules! codes {
    ($($konst:ident $id:literal: $summary:literal;)*) => {
        $(
            #[doc = concat!("`", $id, "`: ", $summary, ".")]
            pub static $konst: Code = Code {
                id: $id,
                summary: $summary,
                #[cfg(feature = "tools")]
                explanation: $crate::explanation!($id),
            };
        )*
        /// All codes, sorted by id.
        pub static CODES: &[&Code] = &[$(&$konst),*];
    };
}

codes! {
    COMPILER_ERROR "compiler-error": "the C compiler refused the generated sources";
    DATA_SYMBOL "data-symbol": "data symbol in a symbol list";
    DECORATED_SYMBOL "decorated-symbol": "functions of a DLL that get no stub because of their names";
    DEVICE_CODE_IN_BUILD_SCRIPT "device-code-in-build-script": "relocatable code in a build script or procedural macro";
    DEVICE_LINK_ERROR "device-link-error": "device code that cannot be linked";
    DEVICE_LINKED_ARCHIVE "device-linked-archive": "archive that contains a device link";
    DIFFERENT_LIBRARIES "different-libraries": "comparison of versions of two libraries";
    DUPLICATE_DEVICE_LINK "duplicate-device-link": "library in two device links of one process";
    DUPLICATE_DEVICE_OBJECTS "duplicate-device-objects": "one archive inside two images of a process";
    DUPLICATE_DEVICE_SYMBOL "duplicate-device-symbol": "two libraries of a device link that define the same device code";
    DUPLICATE_FUNCTION "duplicate-function": "two stubbed libraries with one function";
    DUPLICATE_STUB_NAME "duplicate-stub-name": "two stubs that would have the same name";
    DUPLICATE_SYMBOL "duplicate-symbol": "symbol listed twice";
    DYLIB_CRATE "dylib-crate": "a Rust dylib that would hide the stubs";
    EMPTY_LAYER "empty-layer": "a layer whose path matches no file";
    HARD_CODED_LOAD_NAME "hard-coded-load-name": "GPU library that a repaired image opens by name";
    HEADER_VERSION_MISMATCH "header-version-mismatch": "function unknown to the declared header version";
    INCOMPATIBLE_STUBS "incompatible-stubs": "stubs of one library for incompatible headers in one image";
    INCOMPLETE_DEVICE_LINK "incomplete-device-link": "device link over a library missing from the process";
    INDIRECT_DEVICE_LIBRARY "indirect-device-library": "device library that is only an indirect dependency";
    INVALID_GRAPH "invalid-graph": "a graph of libraries that cannot be read or planned";
    INVALID_LOAD_NAME "invalid-load-name": "a load name that no loader accepts";
    INVALID_SCHEMA "invalid-schema": "a GpuStub.toml that does not start with its schema";
    INVALID_SYMBOL_NAME "invalid-symbol-name": "a function name that assembly cannot spell";
    INVALID_TOML "invalid-toml": "a file that is not TOML";
    INVALID_VALUE "invalid-value": "a value of the wrong type or out of range";
    IO_ERROR "io-error": "a file that cannot be read or written";
    LAYER_CONFLICT "layer-conflict": "conflicting definitions in a view";
    LIMIT_EXCEEDED "limit-exceeded": "a number above the limit of the generated tables";
    MACHINE_MISMATCH "machine-mismatch": "a library for another architecture";
    MALFORMED_LIBRARY "malformed-library": "a file that is not a readable shared library";
    MALFORMED_SUPER_ARCHIVE "malformed-super-archive": "malformed or modified super-archive";
    MALFORMED_SYMBOL_LIST "malformed-symbol-list": "a symbol list that cannot be read";
    MISSING_ARCH "missing-arch": "no device code for a requested architecture";
    MISSING_BUILD_FEATURE "missing-build-feature": "a table or file that needs a cargo feature of gpustub-build";
    MISSING_COMPILER "missing-compiler": "no C compiler for the target";
    MISSING_DEVICE_LINK "missing-device-link": "relocatable code without a device link in its process";
    MISSING_HEADER_VERSION "missing-header-version": "unknown version of the headers";
    MISSING_HIP_COMPILER "missing-hip-compiler": "no HIP compiler";
    MISSING_KEY "missing-key": "a mandatory key is missing";
    MISSING_LLVM "missing-llvm": "no LLVM tools for splitting bitcode";
    MISSING_LOAD_NAME "missing-load-name": "a library without a file name on the target's system";
    MISSING_NVCC "missing-nvcc": "no CUDA compiler";
    MISSING_PTX "missing-ptx": "PTX in some libraries of a device link only";
    MISSING_SYMBOL_LIST "missing-symbol-list": "a symbol list that does not exist";
    MIXED_CUDART "mixed-cudart": "static and shared CUDA runtime in one process";
    NO_SYMBOLS "no-symbols": "an object file whose symbols are unknown";
    NONCANONICAL_BITCODE "noncanonical-bitcode": "bitcode that keeps the name of its processor";
    NOTHING_SHARED "nothing-shared": "super-archive whose views have no member in common";
    NOTHING_UNPACKED "nothing-unpacked": "inputs without device code to unpack";
    NVCC_ERROR "nvcc-error": "the CUDA compiler reported an error";
    OBJECT_LIBRARY "object-library": "relocatable code in objects outside of a library";
    OUT_OF_SYNC "out-of-sync": "files that are out of date with GpuStub.toml";
    OVERRIDE_MAY_BE_INLINED "override-may-be-inlined": "overridden functions that may be inlined";
    PYTHON_LOADER "python-loader": "Python code that loads a GPU library";
    REQUIRES_CYCLE "requires-cycle": "device-link libraries that require each other";
    RESERVED_SYMBOL "reserved-symbol": "name of the C or C++ run time in a symbol list";
    STATIC_LIBC "static-libc": "a statically linked C library that cannot load others";
    TOO_MANY_DIAGNOSTICS "too-many-diagnostics": "a file with more problems than are shown";
    UNKNOWN_DEVICE_LIBRARY "unknown-device-library": "a library that is not in the graph";
    UNKNOWN_FUNCTION "unknown-function": "a function that is not in the library's list";
    UNKNOWN_KEY "unknown-key": "a key that is unknown in this table";
    UNKNOWN_LAYER "unknown-layer": "a view that names an undeclared layer";
    UNKNOWN_LIBRARY "unknown-library": "a library that gpustub does not ship a manifest for";
    UNKNOWN_RESULT "unknown-result": "functions whose result without the library is unknown";
    UNKNOWN_SYMBOL "unknown-symbol": "a symbol that no view of a super-archive contains";
    UNKNOWN_VERSION "unknown-version": "a version that is unknown in the library's manifest";
    UNLOADABLE_IMAGE "unloadable-image": "an image that the dynamic loader rejects";
    UNMATCHED_SOURCES "unmatched-sources": "a pattern that matches no source file";
    UNSHARED_DEVICE_GLOBALS "unshared-device-globals": "device globals with a copy per image";
    UNSPLIT_BITCODE "unsplit-bitcode": "bitcode that is not split";
    UNSUPPORTED_FORMAT "unsupported-format": "file in a format newer than this gpustub";
    UNSUPPORTED_IMAGE "unsupported-image": "program or library that cannot be repaired";
    UNSUPPORTED_TARGET "unsupported-target": "a target without stubs or device links";
    UNSUPPORTED_WHEEL "unsupported-wheel": "wheel that cannot be rewritten";
    UNUSED_LAYER "unused-layer": "a layer of a super-archive that no view contains";
    WEAK_SYMBOL "weak-symbol": "weak C++ symbols that get no stub";
}
