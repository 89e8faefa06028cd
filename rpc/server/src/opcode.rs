//! The numbers of services.
//!
//! The upper byte of an opcode says who gives out the others: `'c'` LLVM's libc
//! (`libc/shared/rpc_opcodes.h`), `'g'` this library. A program takes another one for its own.

/// The first opcode of LLVM's libc.
pub const LIBC: u32 = (b'c' as u32) << 24;
/// The first opcode of this library.
pub const OWN: u32 = (b'g' as u32) << 24;

macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident = $value:expr,)*) => {
        $($(#[$doc])* pub const $name: u32 = $value;)*

        /// Each opcode with its name.
        pub const ALL: &[(&str, u32)] = &[$((stringify!($name), $name)),*];
    };
}

opcodes! {
    /// A packet without an answer.
    NOOP = LIBC,
    /// Ends the program with a status.
    EXIT = LIBC | 1,
    /// Writes to the standard output.
    WRITE_TO_STDOUT = LIBC | 2,
    /// Writes to the standard error output.
    WRITE_TO_STDERR = LIBC | 3,
    /// Writes to a file.
    WRITE_TO_STREAM = LIBC | 4,
    /// Writes to the standard output, and a line feed.
    WRITE_TO_STDOUT_NEWLINE = LIBC | 5,
    /// Reads from a file.
    READ_FROM_STREAM = LIBC | 6,
    /// Reads a line from a file.
    READ_FGETS = LIBC | 7,
    /// Opens a file.
    OPEN_FILE = LIBC | 8,
    /// Closes a file.
    CLOSE_FILE = LIBC | 9,
    /// Allocates memory of the device.
    MALLOC = LIBC | 10,
    /// Frees memory of the device.
    FREE = LIBC | 11,
    /// Calls a function of the host.
    HOST_CALL = LIBC | 12,
    /// Ends the program as one that failed.
    ABORT = LIBC | 13,
    /// Whether a file is at its end.
    FEOF = LIBC | 14,
    /// Whether a file had an error.
    FERROR = LIBC | 15,
    /// Forgets the end and the errors of a file.
    CLEARERR = LIBC | 16,
    /// Sets the position in a file.
    FSEEK = LIBC | 17,
    /// The position in a file.
    FTELL = LIBC | 18,
    /// Writes what a file has not written yet.
    FFLUSH = LIBC | 19,
    /// Gives a byte back to a file.
    UNGETC = LIBC | 20,
    /// Formats to the standard output.
    PRINTF_TO_STDOUT = LIBC | 21,
    /// Formats to the standard error output.
    PRINTF_TO_STDERR = LIBC | 22,
    /// Formats to a file.
    PRINTF_TO_STREAM = LIBC | 23,
    /// Formats to the standard output; arguments have no padding.
    PRINTF_TO_STDOUT_PACKED = LIBC | 24,
    /// Formats to the standard error output; arguments have no padding.
    PRINTF_TO_STDERR_PACKED = LIBC | 25,
    /// Formats to a file; arguments have no padding.
    PRINTF_TO_STREAM_PACKED = LIBC | 26,
    /// Removes a file.
    REMOVE = LIBC | 27,
    /// Renames a file.
    RENAME = LIBC | 28,
    /// Runs a command.
    SYSTEM = LIBC | 29,
    /// LLVM's tests: adds one to a number.
    TEST_INCREMENT = LIBC | 1 << 15,
    /// LLVM's tests: sends and receives in all orders.
    TEST_INTERFACE = LIBC | ((1 << 15) + 1),
    /// LLVM's tests: sends back what it receives.
    TEST_STREAM = LIBC | ((1 << 15) + 2),
}
