//! Numbers of services.
//!
//! The upper byte of an opcode names the owner of the range: `'c'` LLVM's libc
//! (`libc/shared/rpc_opcodes.h`), `'g'` this library, `'o'` LLVM's OpenMP, `'r'` ROCm's HIP. Programs use any
//! other letter. No service of this library has an opcode of OpenMP or HIP: some of their calls name host
//! addresses, which the server would have to trust.

/// The first opcode of LLVM's libc.
pub const LIBC_BASE: u32 = (b'c' as u32) << 24;
/// The first opcode of this library.
pub const GPURPC_BASE: u32 = (b'g' as u32) << 24;

/// The first opcode of LLVM's OpenMP runtime for devices (`offload`), which this library does not serve.
pub const OPENMP_BASE: u32 = (b'o' as u32) << 24;
/// The first opcode of ROCm's HIP runtime (rocm-systems#4720), which this library does not serve.
pub const HIP_BASE: u32 = (b'r' as u32) << 24;

macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident = $value:expr,)*) => {
        $($(#[$doc])* pub const $name: u32 = $value;)*

        /// Each opcode with its name.
        pub const ALL: &[(&str, u32)] = &[$((stringify!($name), $name)),*];
    };
}

opcodes! {
    /// A packet without an answer.
    NOOP = LIBC_BASE,
    /// Ends the program with a status.
    EXIT = LIBC_BASE | 1,
    /// Writes to the standard output.
    WRITE_TO_STDOUT = LIBC_BASE | 2,
    /// Writes to the standard error output.
    WRITE_TO_STDERR = LIBC_BASE | 3,
    /// Writes to a file.
    WRITE_TO_STREAM = LIBC_BASE | 4,
    /// Writes to the standard output, and a line feed.
    WRITE_TO_STDOUT_NEWLINE = LIBC_BASE | 5,
    /// Reads from a file.
    READ_FROM_STREAM = LIBC_BASE | 6,
    /// Reads a line from a file.
    READ_FGETS = LIBC_BASE | 7,
    /// Opens a file.
    OPEN_FILE = LIBC_BASE | 8,
    /// Closes a file.
    CLOSE_FILE = LIBC_BASE | 9,
    /// Allocates memory of the device.
    MALLOC = LIBC_BASE | 10,
    /// Frees memory of the device.
    FREE = LIBC_BASE | 11,
    /// Calls a function of the host.
    HOST_CALL = LIBC_BASE | 12,
    /// Ends the program as one that failed.
    ABORT = LIBC_BASE | 13,
    /// Whether a file is at its end.
    FEOF = LIBC_BASE | 14,
    /// Whether a file had an error.
    FERROR = LIBC_BASE | 15,
    /// Clears the end and error indicators of a file.
    CLEARERR = LIBC_BASE | 16,
    /// Sets the position in a file.
    FSEEK = LIBC_BASE | 17,
    /// The position in a file.
    FTELL = LIBC_BASE | 18,
    /// Flushes a file.
    FFLUSH = LIBC_BASE | 19,
    /// Pushes a byte back to a file.
    UNGETC = LIBC_BASE | 20,
    /// Formats to the standard output.
    PRINTF_TO_STDOUT = LIBC_BASE | 21,
    /// Formats to the standard error output.
    PRINTF_TO_STDERR = LIBC_BASE | 22,
    /// Formats to a file.
    PRINTF_TO_STREAM = LIBC_BASE | 23,
    /// Formats to the standard output; arguments have no padding.
    PRINTF_TO_STDOUT_PACKED = LIBC_BASE | 24,
    /// Formats to the standard error output; arguments have no padding.
    PRINTF_TO_STDERR_PACKED = LIBC_BASE | 25,
    /// Formats to a file; arguments have no padding.
    PRINTF_TO_STREAM_PACKED = LIBC_BASE | 26,
    /// Removes a file.
    REMOVE = LIBC_BASE | 27,
    /// Renames a file.
    RENAME = LIBC_BASE | 28,
    /// Runs a command.
    SYSTEM = LIBC_BASE | 29,
    /// LLVM's tests: adds one to a number.
    TEST_INCREMENT = LIBC_BASE | 1 << 15,
    /// LLVM's tests: sends and receives in all orders.
    TEST_INTERFACE = LIBC_BASE | ((1 << 15) + 1),
    /// LLVM's tests: sends back what it receives.
    TEST_STREAM = LIBC_BASE | ((1 << 15) + 2),
    /// LLVM's OpenMP: calls a function of the host by its address. Not served.
    OPENMP_HOST_CALL = OPENMP_BASE,
    /// ROCm's HIP: calls a function of the host by its address. Not served.
    HIP_FUNCTION = HIP_BASE,
    /// ROCm's HIP: allocates or frees memory of the device. Not served.
    HIP_DEVMEM = HIP_BASE | 1,
    /// ROCm's HIP: reports a finding of AddressSanitizer. Not served.
    HIP_SANITIZER = HIP_BASE | 2,
    /// ROCm's HIP: formats in the messages of its hostcall. Not served.
    HIP_PRINTF = HIP_BASE | 3,
}
