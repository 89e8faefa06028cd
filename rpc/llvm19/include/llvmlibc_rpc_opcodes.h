/* llvmlibc_rpc_opcodes.h - opcodes of LLVM 19's libc for GPUs, by its names and numbers. */
#ifndef LLVMLIBC_RPC_OPCODES_H
#define LLVMLIBC_RPC_OPCODES_H

typedef enum {
    RPC_NOOP = 0,
    RPC_EXIT = 1,
    RPC_WRITE_TO_STDOUT = 2,
    RPC_WRITE_TO_STDERR = 3,
    RPC_WRITE_TO_STREAM = 4,
    RPC_WRITE_TO_STDOUT_NEWLINE = 5,
    RPC_READ_FROM_STREAM = 6,
    RPC_READ_FGETS = 7,
    RPC_OPEN_FILE = 8,
    RPC_CLOSE_FILE = 9,
    RPC_MALLOC = 10,
    RPC_FREE = 11,
    RPC_HOST_CALL = 12,
    RPC_ABORT = 13,
    RPC_FEOF = 14,
    RPC_FERROR = 15,
    RPC_CLEARERR = 16,
    RPC_FSEEK = 17,
    RPC_FTELL = 18,
    RPC_FFLUSH = 19,
    RPC_UNGETC = 20,
    RPC_PRINTF_TO_STDOUT = 21,
    RPC_PRINTF_TO_STDERR = 22,
    RPC_PRINTF_TO_STREAM = 23,
    RPC_PRINTF_TO_STDOUT_PACKED = 24,
    RPC_PRINTF_TO_STDERR_PACKED = 25,
    RPC_PRINTF_TO_STREAM_PACKED = 26,
    RPC_REMOVE = 27,
    RPC_LAST = 0xFFFF
} rpc_opcode_t;

#endif
