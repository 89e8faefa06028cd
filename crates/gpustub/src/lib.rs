//! Run-time queries of gpustub: whether a GPU library is available, its path, or the reason.
//!
//! Calls of a stubbed library do not need this crate: the first call loads the library, and without
//! the library every call returns the API's own error code. This crate reports the result:
//!
//! ```no_run
//! match gpustub::load("cudart") {
//!     Ok(cudart) => println!("CUDA {} at {:?}", cudart.version().unwrap(), cudart.path()),
//!     Err(why) => println!("no CUDA: {why}"),
//! }
//! if gpustub::has_function("cudart", "cudaMallocAsync") {
//!     // a call of cudaMallocAsync reaches the real library
//! }
//! ```
//!
//! No function prints, aborts or allocates (the C run time allocates when it loads a library).
//!
//! # Libraries that are known
//!
//! The libraries that a `GpuStub.toml` declares are known to the image, with and without calls. Of several
//! packages with a `GpuStub.toml`, lld leaves out those of which the image calls no function, except the first:
//! [`load`] returns [`Unavailable::UnknownLibrary`] then and [`is_available`] false, also on a machine that has the
//! library.
//!
//! # Provider of the stubs
//!
//! The stub archive defines the functions behind this crate. At least one package of the program has to
//! provide stubs, that is, have a `GpuStub.toml` with a `[stub]` table and call
//! `gpustub_build::build()` in its `build.rs`. If none does, the linker reports
//! `undefined symbol: gpustub_load`. Each linked image (program, shared library) queries its own
//! stubs, and those of the libraries with `type = "shared"` that it links.
//!
//! On targets that can have no stubs, such as Android, no library is known; nor on macOS, whose stubs load none.

#![no_std]

mod ffi;
mod name;
#[cfg(test)]
mod tests;
mod text;

use core::ffi::{CStr, c_int, c_void};
use core::fmt;
use core::ptr::NonNull;

use name::with_c_str;
pub use text::Text;

/// A library's version.
///
/// ```
/// use gpustub::Version;
///
/// let version = Version { major: 12, minor: 9 };
/// assert_eq!(version.to_string(), "12.9");
/// assert!(version < Version { major: 13, minor: 0 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The major number.
    pub major: u32,
    /// The minor number; 0 if only the major is known.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Numbers of the functions used by this image that were bound, refused and missing.
///
/// ```no_run
/// let counts = gpustub::load("cudart")?.counts();
/// if counts.missing > 0 {
///     println!("{} of {} functions are missing", counts.missing, counts.bound + counts.missing);
/// }
/// # Ok::<(), gpustub::Unavailable>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Functions bound to the real library.
    pub bound: u32,
    /// Functions refused because their ABI differs between the program's headers and this library.
    pub refused: u32,
    /// Functions that this library lacks.
    pub missing: u32,
}

/// A library that is loaded and bound.
///
/// ```no_run
/// let cudart = gpustub::load("cudart")?;
/// println!("{}: {} functions", cudart.path(), cudart.counts().bound);
/// # Ok::<(), gpustub::Unavailable>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    path: Text,
    version: Option<Version>,
    counts: Counts,
}

impl Loaded {
    /// The file, as the loader names it.
    ///
    /// ```no_run
    /// println!("loaded {}", gpustub::load("cudart")?.path());
    /// # Ok::<(), gpustub::Unavailable>(())
    /// ```
    pub fn path(&self) -> Text {
        self.path
    }

    /// The version, if known.
    ///
    /// ```no_run
    /// if let Some(version) = gpustub::load("cudart")?.version() {
    ///     println!("CUDA {version}");
    /// }
    /// # Ok::<(), gpustub::Unavailable>(())
    /// ```
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// Numbers of functions bound, refused and missing.
    ///
    /// ```no_run
    /// println!("{} functions bound", gpustub::load("cudart")?.counts().bound);
    /// # Ok::<(), gpustub::Unavailable>(())
    /// ```
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// Reason why a library cannot be used. Displayed as one line.
///
/// ```no_run
/// use gpustub::Unavailable;
///
/// match gpustub::load("cudart") {
///     Ok(_) => println!("CUDA is available"),
///     Err(Unavailable::Missing(reason)) => println!("no CUDA: {reason}"),
///     Err(error) => panic!("{error}"),
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// No usable library was found.
    Missing(Text),
    /// This image has no stubs for a library of that name.
    UnknownLibrary,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(reason) => reason.fmt(f),
            Self::UnknownLibrary => {
                f.write_str("this image has no stubs for a library of that name")
            }
        }
    }
}

impl core::error::Error for Unavailable {}

/// Reason why a handle was rejected.
///
/// ```no_run
/// use gpustub::HandleError;
///
/// # let handle = std::ptr::NonNull::dangling();
/// // SAFETY: the handle is that of the CUDA run time, which stays open.
/// match unsafe { gpustub::set_handle("cudart", handle) } {
///     Ok(()) | Err(HandleError::AlreadyBound) => {}
///     Err(error) => panic!("{error}: {}", gpustub::reason("cudart")),
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandleError {
    /// The library has been bound already.
    AlreadyBound,
    /// The handle's library cannot be used: [`reason`] returns the reason.
    Rejected,
    /// This image has no stubs for a library of that name.
    UnknownLibrary,
}

impl fmt::Display for HandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlreadyBound => "the library has been bound already",
            Self::Rejected => "the handle's library cannot be used",
            Self::UnknownLibrary => "this image has no stubs for a library of that name",
        })
    }
}

impl core::error::Error for HandleError {}

/// Finds, loads and binds a library, unless that has already happened. `library` is the name in
/// `GpuStub.toml`. Afterwards its stubs are async-signal-safe, also those of functions that the library
/// lacks. Exceptions: the functions that compilers call to register device code, and all functions while
/// `GPUSTUB_TRACE` or `GPUSTUB_FAIL` is set.
///
/// # Errors
///
/// [`Unavailable::Missing`] with the reason if no usable library was found,
/// [`Unavailable::UnknownLibrary`] if this image has no stubs for the library: none are declared, or the
/// image calls no function of any declared library.
///
/// ```no_run
/// let cudart = gpustub::load("cudart")?;
/// println!("{}", cudart.path());
/// # Ok::<(), gpustub::Unavailable>(())
/// ```
pub fn load(library: &str) -> Result<Loaded, Unavailable> {
    // SAFETY: the pointer is to a C string that outlives the call.
    match with_c_str(library, |name| unsafe { ffi::gpustub_load(name.as_ptr()) }) {
        Some(ffi::OK) => Ok(Loaded {
            // The run time always knows the file of a library that it uses.
            path: path(library).unwrap_or_default(),
            version: version(library),
            counts: counts(library).unwrap_or_default(),
        }),
        Some(ffi::UNAVAILABLE) => Err(Unavailable::Missing(reason(library))),
        _ => Err(Unavailable::UnknownLibrary),
    }
}

/// Returns whether the library can be used. Loads it unless that has already happened. False also if
/// this image calls no function of any declared library: linkers then leave the stubs out.
///
/// ```no_run
/// let device = if gpustub::is_available("cudart") { "cuda" } else { "cpu" };
/// ```
pub fn is_available(library: &str) -> bool {
    // SAFETY: as in `load`.
    with_c_str(library, |name| unsafe {
        ffi::gpustub_is_available(name.as_ptr())
    }) == Some(1)
}

/// Returns whether a call of this function would reach the real library. Loads the library unless
/// that has already happened.
///
/// ```no_run
/// if gpustub::has_function("cudart", "cudaMallocAsync") {
///     // a call of cudaMallocAsync reaches the real library
/// }
/// ```
pub fn has_function(library: &str, function: &str) -> bool {
    let is_bound = with_c_str(library, |library| {
        with_c_str(function, |function| {
            // SAFETY: as in `load`, for both pointers.
            unsafe { ffi::gpustub_has_function(library.as_ptr(), function.as_ptr()) }
        })
    });
    is_bound.flatten() == Some(1)
}

/// Path of the loaded file, as the loader names it; `None` if unavailable.
fn path(library: &str) -> Option<Text> {
    // SAFETY: as in `load`.
    text(with_c_str(library, |name| unsafe {
        ffi::gpustub_path(name.as_ptr())
    })?)
}

/// The library's version; `None` if unknown or unavailable.
fn version(library: &str) -> Option<Version> {
    // SAFETY: as in `load`.
    let code = with_c_str(library, |name| unsafe {
        ffi::gpustub_version(name.as_ptr())
    })?;
    let code = u32::try_from(code).ok().filter(|&code| code > 0)?;
    Some(Version {
        major: code / 1000,
        minor: code % 1000 / 10,
    })
}

/// Reason why the library is unavailable, in one line; empty if it is available.
///
/// ```no_run
/// let reason = gpustub::reason("cudart");
/// if !reason.is_empty() {
///     println!("no CUDA: {reason}");
/// }
/// ```
pub fn reason(library: &str) -> Text {
    // SAFETY: as in `load`.
    let reason = with_c_str(library, |name| unsafe {
        ffi::gpustub_reason(name.as_ptr())
    });
    reason.and_then(text).unwrap_or_default()
}

/// Report of a few lines: the file that was chosen, the files that were tried and rejected with the
/// reasons, the functions that were bound. `None` if this image has no stubs for the library.
///
/// ```no_run
/// if let Some(report) = gpustub::report("cudart") {
///     println!("{report}");
/// }
/// ```
pub fn report(library: &str) -> Option<Text> {
    // SAFETY: as in `load`.
    text(with_c_str(library, |name| unsafe {
        ffi::gpustub_report(name.as_ptr())
    })?)
}

/// The number of functions that were bound; `None` if the library is unavailable.
fn counts(library: &str) -> Option<Counts> {
    let (mut bound, mut refused, mut missing): (c_int, c_int, c_int) = (0, 0, 0);
    let status = with_c_str(library, |name| {
        // SAFETY: as in `load`; the other pointers are to integers of this function.
        unsafe { ffi::gpustub_counts(name.as_ptr(), &mut bound, &mut refused, &mut missing) }
    });
    let [bound, refused, missing] =
        [bound, refused, missing].map(|count| u32::try_from(count).unwrap_or(0));
    (status == Some(ffi::OK)).then_some(Counts {
        bound,
        refused,
        missing,
    })
}

/// Uses this handle instead of searching. Must be called before the first use of the library.
///
/// # Safety
///
/// `handle` was returned by `dlopen` and stays open for the rest of the process. It is the library
/// that `library` names: its functions will be called with that library's types.
///
/// # Errors
///
/// [`HandleError::AlreadyBound`] after the first use of the library, [`HandleError::Rejected`] if
/// its functions cannot be used, [`HandleError::UnknownLibrary`] if this image has no stubs for it.
///
/// ```no_run
/// use core::ffi::{c_char, c_int, c_void};
/// use core::ptr::NonNull;
///
/// # unsafe extern "C" {
/// #     fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
/// # }
/// # const RTLD_NOW: c_int = 2;
/// // SAFETY: the name is a C string; the file is the CUDA run time, which stays open.
/// let handle = unsafe { dlopen(c"/opt/cuda/lib/libcudart.so.12".as_ptr(), RTLD_NOW) };
/// let handle = NonNull::new(handle).expect("the CUDA run time");
/// // SAFETY: as above.
/// unsafe { gpustub::set_handle("cudart", handle) }?;
/// # Ok::<(), gpustub::HandleError>(())
/// ```
pub unsafe fn set_handle(library: &str, handle: NonNull<c_void>) -> Result<(), HandleError> {
    let status = with_c_str(library, |name| {
        // SAFETY: the name is as in `load`; the caller guarantees the rest.
        unsafe { ffi::gpustub_set_handle(name.as_ptr(), handle.as_ptr()) }
    });
    match status {
        Some(ffi::OK) => Ok(()),
        Some(ffi::ALREADY_BOUND) => Err(HandleError::AlreadyBound),
        Some(ffi::UNAVAILABLE) => Err(HandleError::Rejected),
        _ => Err(HandleError::UnknownLibrary),
    }
}

/// A string of the run time; `None` for NULL.
fn text(string: *const core::ffi::c_char) -> Option<Text> {
    // SAFETY: strings of gpustub.h are NUL-terminated and stay valid until the process ends.
    (!string.is_null()).then(|| Text::new(unsafe { CStr::from_ptr(string) }))
}
