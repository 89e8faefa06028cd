/* gpurpc_opcodes.h - numbers of services, for device code and the host.
 *
 * C11, C++17, CUDA, HIP; includes nothing. The upper byte of an opcode names the owner of the range: 'c' LLVM's
 * libc (libc/shared/rpc_opcodes.h), 'g' this library, 'o' LLVM's OpenMP, 'r' ROCm's HIP. Programs use any other
 * letter. No service of this library has an opcode of OpenMP or HIP: some of their calls name host addresses,
 * which the server would have to trust. */
#ifndef GPURPC_OPCODES_H
#define GPURPC_OPCODES_H

/* An opcode of the program's own: a letter of its choice, and a number below 2^24. */
#define GPURPC_OPCODE(letter, number) ((unsigned)(letter) << 24 | (unsigned)(number))

/* The first opcodes of LLVM's OpenMP runtime for devices and of ROCm's HIP runtime. */
#define GPURPC_OPENMP_BASE GPURPC_OPCODE('o', 0)
#define GPURPC_HIP_BASE GPURPC_OPCODE('r', 0)

enum gpurpc_opcode {
    /* A packet without an answer. */
    GPURPC_OPCODE_NOOP = 0x63000000,
    /* Ends the program with a status. */
    GPURPC_OPCODE_EXIT = 0x63000001,
    /* Writes to the standard output. */
    GPURPC_OPCODE_WRITE_TO_STDOUT = 0x63000002,
    /* Writes to the standard error output. */
    GPURPC_OPCODE_WRITE_TO_STDERR = 0x63000003,
    /* Writes to a file. */
    GPURPC_OPCODE_WRITE_TO_STREAM = 0x63000004,
    /* Writes to the standard output, and a line feed. */
    GPURPC_OPCODE_WRITE_TO_STDOUT_NEWLINE = 0x63000005,
    /* Reads from a file. */
    GPURPC_OPCODE_READ_FROM_STREAM = 0x63000006,
    /* Reads a line from a file. */
    GPURPC_OPCODE_READ_FGETS = 0x63000007,
    /* Opens a file. */
    GPURPC_OPCODE_OPEN_FILE = 0x63000008,
    /* Closes a file. */
    GPURPC_OPCODE_CLOSE_FILE = 0x63000009,
    /* Allocates memory of the device. */
    GPURPC_OPCODE_MALLOC = 0x6300000a,
    /* Frees memory of the device. */
    GPURPC_OPCODE_FREE = 0x6300000b,
    /* Calls a function of the host. */
    GPURPC_OPCODE_HOST_CALL = 0x6300000c,
    /* Ends the program as one that failed. */
    GPURPC_OPCODE_ABORT = 0x6300000d,
    /* Whether a file is at its end. */
    GPURPC_OPCODE_FEOF = 0x6300000e,
    /* Whether a file had an error. */
    GPURPC_OPCODE_FERROR = 0x6300000f,
    /* Clears the end and error indicators of a file. */
    GPURPC_OPCODE_CLEARERR = 0x63000010,
    /* Sets the position in a file. */
    GPURPC_OPCODE_FSEEK = 0x63000011,
    /* The position in a file. */
    GPURPC_OPCODE_FTELL = 0x63000012,
    /* Flushes a file. */
    GPURPC_OPCODE_FFLUSH = 0x63000013,
    /* Pushes a byte back to a file. */
    GPURPC_OPCODE_UNGETC = 0x63000014,
    /* Formats to the standard output. */
    GPURPC_OPCODE_PRINTF_TO_STDOUT = 0x63000015,
    /* Formats to the standard error output. */
    GPURPC_OPCODE_PRINTF_TO_STDERR = 0x63000016,
    /* Formats to a file. */
    GPURPC_OPCODE_PRINTF_TO_STREAM = 0x63000017,
    /* Formats to the standard output; arguments have no padding. */
    GPURPC_OPCODE_PRINTF_TO_STDOUT_PACKED = 0x63000018,
    /* Formats to the standard error output; arguments have no padding. */
    GPURPC_OPCODE_PRINTF_TO_STDERR_PACKED = 0x63000019,
    /* Formats to a file; arguments have no padding. */
    GPURPC_OPCODE_PRINTF_TO_STREAM_PACKED = 0x6300001a,
    /* Removes a file. */
    GPURPC_OPCODE_REMOVE = 0x6300001b,
    /* Renames a file. */
    GPURPC_OPCODE_RENAME = 0x6300001c,
    /* Runs a command. */
    GPURPC_OPCODE_SYSTEM = 0x6300001d,
    /* LLVM's tests: adds one to a number. */
    GPURPC_OPCODE_TEST_INCREMENT = 0x63008000,
    /* LLVM's tests: sends and receives in all orders. */
    GPURPC_OPCODE_TEST_INTERFACE = 0x63008001,
    /* LLVM's tests: sends back what it receives. */
    GPURPC_OPCODE_TEST_STREAM = 0x63008002,
    /* LLVM's OpenMP: calls a function of the host by its address. Not served. */
    GPURPC_OPCODE_OPENMP_HOST_CALL = 0x6f000000,
    /* ROCm's HIP: calls a function of the host by its address. Not served. */
    GPURPC_OPCODE_HIP_FUNCTION = 0x72000000,
    /* ROCm's HIP: allocates or frees memory of the device. Not served. */
    GPURPC_OPCODE_HIP_DEVMEM = 0x72000001,
    /* ROCm's HIP: reports a finding of AddressSanitizer. Not served. */
    GPURPC_OPCODE_HIP_SANITIZER = 0x72000002,
    /* ROCm's HIP: formats in the messages of its hostcall. Not served. */
    GPURPC_OPCODE_HIP_PRINTF = 0x72000003
};

#endif
