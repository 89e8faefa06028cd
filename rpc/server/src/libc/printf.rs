//! C's `printf` over arguments of a device.
//!
//! A device sends a format and the bytes of its arguments; strings are requested by their addresses. All of it
//! is untrusted, so the host's `printf` is not used: the format is interpreted here. `%n`, which would write to
//! memory, is refused, as is a text above the limit: such a lane prints nothing, and its `printf` returns -1.
//!
//! The output is that of glibc in its `C` locale, except for `%#g` of a number that rounds up to the power of
//! ten at which an exponent is due: it keeps all its zeros, as C requires. Behaviour that C leaves undefined:
//!
//! - An unknown or incomplete conversion is printed verbatim. Its `*` consume arguments, the conversion does
//!   not.
//! - `%ls` is `%s`, because devices send the bytes up to the first zero. `%lc` prints UTF-8.
//! - `%Lf` is `%f`: devices have no `long double`. Other length modifiers are ignored where they do not
//!   apply.

mod arguments;
mod budgeted_buffer;
mod call;
mod float;
mod format;
mod integer;
mod output;
mod parse;
#[cfg(test)]
mod tests;

// For tests, which exchange the packets of a `printf` without the streams.
#[doc(hidden)]
pub use call::{Received, Texts, finish, receive};
pub use format::Format;
