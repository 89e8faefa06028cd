//! Stubs for Windows, with the ABIs of mingw-w64 and of MSVC: programs compiled by mingw-w64 and rustc, run by wine. What wine
//! does is not what Windows does in each detail; no machine with Windows runs these tests.
//!
//! | trap on Linux (`tests/traps`) | here |
//! |---|---|
//! | arguments, variadic, floating-point, errno, race, linking, trace, exceptions, and their `merged`, `missing` and `traced` variants | the same programs: `programs` |
//! | exceptions out of a constructor's callback | none: the loader stops an exception that leaves `DllMain` |
//! | backtrace, gdb, libunwind | the frames of `CaptureStackBackTrace`, in `DllMain` and in a call: `images` |
//! | errno | and `GetLastError`: `images` |
//! | vectors of 256 and 512 bits | none: the convention passes them by address |
//! | stack | none for arguments of any size: those of more than a word are passed by address |
//! | constructor-recursion, constructor-thread | a first call in `DllMain`: `images` |
//! | lock-order, shortage, interposed | none: the loader's lock is the system's, and its functions cannot be replaced |
//! | fork-during-load, signal, set-user-id | none: Windows has no such thing |
//! | late-destructor, exit-thread | a DLL that ends after the library, one that the program needs: `images` |
//! | unload | `FreeLibrary`: `images` |
//! | missing-function, override, read-only | `images`; a library in the current directory is not taken |
//! | capture, versions, weak-inline, ifunc, notype, preload | none: DLLs have no interposition, versions of symbols or such kinds of symbols |
//! | adapted | `adapters` |
//! | adapters | `cudaGetDeviceProperties` with real headers: `adapters` |
//! | shared | none: stubs for Windows are in the program |
//! | tests of `repair` (`tests/tests/repair`) | `repair` |
//! | missing functions that return structs (`programs/results.c`) | the same program, and functions of shipped libraries: `images` |
//! | — | callers with `dllimport`, unused functions, objects of two header versions: `images`; bytes and instructions of a stub: `figures`; order of the search, files opened by a bare name, delayed imports of the program: `search` |
//! | — | objects as cl and clang-cl make them: `programs`, `lld`; their source: `c11`; their archives: `archives` |

mod adapters;
mod archives;
mod arm64;
mod c11;
mod figures;
mod images;
mod lld;
mod programs;
mod real;
mod repair;
mod search;
mod trial;
