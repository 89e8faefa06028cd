//! The C interface of [`gpustub_archive`]: `include/gpustub_archive.h` documents each function.
//!
//! Functions validate pointers as far as possible, and return a status. They allocate nothing and have
//! no state. A panic could not unwind into C, but would abort the process: they are `extern "C"`. The
//! reader never panics.
//!
//! # Pointers
//!
//! A pointer is null, or points to a value of its type, zeroed or filled in by a function here; an
//! array of bytes has the length of the size beside it. The bytes that an archive was opened with stay
//! unchanged while the archive, or any value obtained from it, is in use.

mod handle;
mod status;

use std::ffi::{c_char, c_int, c_void};

use gpustub_archive::SuperArchive;
pub use handle::{CArchive, CMember, CSymbols, CView};
use handle::{Named, bytes, fill, put, read};
use status::{NONE, OK, error_status};

/// The second status, if the first is good.
fn both(first: c_int, second: impl FnOnce() -> c_int) -> c_int {
    if first == OK { second() } else { first }
}

/// Writes a name for the caller.
///
/// # Safety
///
/// Each pointer is null, or points to memory for its value.
unsafe fn text(of: &[u8], name: *mut *const c_char, length: *mut usize) -> c_int {
    // SAFETY: as the caller promises.
    both(unsafe { put(name, of.as_ptr().cast()) }, || unsafe {
        put(length, of.len())
    })
}

/// Status of a function body that may return early.
fn status(body: impl FnOnce() -> Result<c_int, c_int>) -> c_int {
    body().unwrap_or_else(|status| status)
}

/// Opens an archive of `size` bytes: [`SuperArchive::parse`].
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_open(
    archive: *mut CArchive,
    bytes: *const c_void,
    size: usize,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe {
        fill(archive, Ok(None));
        let bytes = handle::bytes(bytes.cast(), size)?;
        Ok(fill(archive, SuperArchive::parse(bytes).map(Some)))
    })
}

/// Reads and checks a whole archive: [`SuperArchive::verify`].
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_verify(archive: *const CArchive) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe {
        let archive = read(archive)?;
        Ok(archive.verify().map_or_else(error_status, |()| OK))
    })
}

/// Returns the number of views: [`SuperArchive::view_count`].
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_view_count(
    archive: *const CArchive,
    count: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe { Ok(put(count, read(archive)?.view_count())) })
}

/// Finds the view of that name: [`SuperArchive::view`].
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_view(
    archive: *const CArchive,
    name: *const c_char,
    length: usize,
    view: *mut CView,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe {
        let (archive, name) = (read(archive)?, bytes(name.cast(), length)?);
        Ok(fill(view, archive.view(name)))
    })
}

/// Returns the view of that index: [`SuperArchive::view_at`].
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_view_at(
    archive: *const CArchive,
    index: usize,
    view: *mut CView,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe { Ok(fill(view, read(archive)?.view_at(index))) })
}

/// Returns the view that ordinary tools see: [`SuperArchive::default_view`].
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_default_view(
    archive: *const CArchive,
    view: *mut CView,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe { Ok(fill(view, read(archive)?.default_view())) })
}

/// Returns the number of distinct contents: [`SuperArchive::contents_count`].
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_member_count(
    archive: *const CArchive,
    count: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe { Ok(put(count, read(archive)?.contents_count())) })
}

/// Returns the contents of that index, without a name: [`SuperArchive::contents_at`].
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_member_at(
    archive: *const CArchive,
    index: usize,
    member: *mut CMember,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe {
        let found = read(archive)?.contents_at(index);
        let named = |contents| Named {
            name: b"",
            contents,
        };
        Ok(fill(member, found.map(|found| found.map(named))))
    })
}

/// Returns the name of a view: [`View::name`](gpustub_archive::View::name).
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_view_name(
    view: *const CView,
    name: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe { Ok(text(read(view)?.name(), name, length)) })
}

/// Returns the number of symbols: [`View::symbol_count`](gpustub_archive::View::symbol_count).
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_symbol_count(
    view: *const CView,
    count: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe { Ok(put(count, read(view)?.symbol_count())) })
}

/// Finds the member that defines a symbol: [`View::find_symbol`](gpustub_archive::View::find_symbol).
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_find(
    view: *const CView,
    symbol: *const c_char,
    length: usize,
    member: *mut CMember,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe {
        let (view, symbol) = (read(view)?, bytes(symbol.cast(), length)?);
        let found = view.find_symbol(symbol);
        Ok(fill(member, found.map(|found| found.map(Named::from))))
    })
}

/// Starts an iteration over all symbols: [`View::symbols`](gpustub_archive::View::symbols).
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_symbols(
    view: *const CView,
    symbols: *mut CSymbols,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe { Ok(fill(symbols, Ok(Some(read(view)?.symbols())))) })
}

/// Returns the next symbol, and the member that defines it.
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_next_symbol(
    symbols: *mut CSymbols,
    name: *mut *const c_char,
    length: *mut usize,
    member: *mut CMember,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe {
        let mut rest = read(symbols)?;
        let next = rest.next().transpose();
        // An error does not end the iteration: the next call continues after it.
        fill(symbols, Ok(Some(rest)));
        let (found, symbol) = match next {
            Ok(Some(symbol)) => (Ok(Some(symbol.member.into())), symbol.name),
            Ok(None) => (Ok(None), &[][..]),
            Err(error) => (Err(error), &[][..]),
        };
        Ok(both(fill(member, found), || text(symbol, name, length)))
    })
}

/// Returns the number of members: [`View::member_count`](gpustub_archive::View::member_count).
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_view_member_count(
    view: *const CView,
    count: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe { Ok(put(count, read(view)?.member_count())) })
}

/// Returns a member, and the index of its layer: [`View::member_at`](gpustub_archive::View::member_at).
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_view_member_at(
    view: *const CView,
    index: usize,
    member: *mut CMember,
    layer: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe {
        let found = read(view)?.member_at(index);
        let at = found.ok().flatten().map_or(0, |member| member.layer());
        let found = found.map(|found| found.map(Named::from));
        Ok(both(fill(member, found), || put(layer, at)))
    })
}

/// Returns the number of layers: [`View::layer_count`](gpustub_archive::View::layer_count).
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_layer_count(
    view: *const CView,
    count: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe { Ok(put(count, read(view)?.layer_count())) })
}

/// Returns the name of a layer: [`View::layer_at`](gpustub_archive::View::layer_at).
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_layer_name(
    view: *const CView,
    index: usize,
    name: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe {
        Ok(match read(view)?.layer_at(index) {
            Ok(Some(layer)) => text(layer.name, name, length),
            Ok(None) => NONE,
            Err(error) => error_status(error),
        })
    })
}

/// Returns the name of a member: [`Member::name`](gpustub_archive::Member::name).
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_member_name(
    member: *const CMember,
    name: *mut *const c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe { Ok(text(read(member)?.name, name, length)) })
}

/// Returns the contents of a member: [`Member::data`](gpustub_archive::Member::data).
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_member_data(
    member: *const CMember,
    data: *mut *const c_void,
    size: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe {
        Ok(match read(member)?.contents.data() {
            Ok(found) => both(put(data, found.as_ptr().cast()), || put(size, found.len())),
            Err(error) => error_status(error),
        })
    })
}

/// Returns the index of a member's contents: [`Contents::index`](gpustub_archive::Contents::index).
///
/// # Safety
///
/// [What holds for all pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpustub_archive_member_index(
    member: *const CMember,
    index: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    status(|| unsafe { Ok(put(index, read(member)?.contents.index())) })
}

/// Returns the English text of a status.
#[unsafe(no_mangle)]
pub extern "C" fn gpustub_archive_strerror(status: c_int) -> *const c_char {
    status::text(status).as_ptr()
}
