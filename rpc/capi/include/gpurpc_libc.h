/* gpurpc_libc.h - services for programs that are linked with LLVM's libc: the part of gpurpc.h, which includes it, for
 * functions of the program that implement them. */
#ifndef GPURPC_LIBC_H
#define GPURPC_LIBC_H

#include "gpurpc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads up to `size` bytes of standard input. Returns their number, 0 at the end, -1 on error.
 *
 *     static int64_t read_bytes(gpurpc_device_t device, void *bytes, uint64_t size, void *data) {
 *         return read(0, bytes, size);
 *     } */
typedef int64_t (*gpurpc_read_ty)(gpurpc_device_t device, void *bytes, uint64_t size, void *data);
/* Writes `size` bytes to standard output (`stream` 1) or standard error (2). Returns the number of bytes written, -1
 * on error.
 *
 *     static int64_t write_bytes(gpurpc_device_t device, int stream, const void *bytes, uint64_t size, void *data) {
 *         return (int64_t)fwrite(bytes, 1, size, stream == 1 ? stdout : stderr);
 *     } */
typedef int64_t (*gpurpc_write_ty)(gpurpc_device_t device, int stream, const void *bytes, uint64_t size, void *data);
/* Reports that a warp has ended the program with a status.
 *
 *     static void ended(gpurpc_device_t device, int status, void *data) { *(int *)data = status; } */
typedef void (*gpurpc_exit_ty)(gpurpc_device_t device, int status, void *data);
/* Reports an event of a device.
 *
 *     static void aborted(gpurpc_device_t device, void *data) { *(bool *)data = true; } */
typedef void (*gpurpc_device_callback_ty)(gpurpc_device_t device, void *data);
/* Allocates `size` bytes of memory of the device. Returns its address on the device, or 0.
 *
 *     static uint64_t device_malloc(gpurpc_device_t device, uint64_t size, void *data) {
 *         return (uintptr_t)managed_malloc(size);
 *     } */
typedef uint64_t (*gpurpc_malloc_ty)(gpurpc_device_t device, uint64_t size, void *data);
/* Frees memory of the device: an address that gpurpc_malloc_ty has returned, once.
 *
 *     static void device_free(gpurpc_device_t device, uint64_t address, void *data) {
 *         managed_free((void *)(uintptr_t)address);
 *     } */
typedef void (*gpurpc_malloc_free_ty)(gpurpc_device_t device, uint64_t address, void *data);
/* Runs a command and returns its status.
 *
 *     static int run_date(gpurpc_device_t device, const char *command, void *data) {
 *         return strcmp(command, "date") ? -1 : system("date");
 *     } */
typedef int (*gpurpc_system_ty)(gpurpc_device_t device, const char *command, void *data);
/* Calls a function of the host and returns the result. `function` is the device's number for it, which is
 * untrusted; `arguments` is a copy, aligned to 16.
 *
 *     static uint64_t call_host(gpurpc_device_t device, uint64_t function, void *arguments, uint64_t size, void *data) {
 *         return function == 1 && size == 8 ? *(uint64_t *)arguments + 1 : 0;
 *     } */
typedef uint64_t (*gpurpc_host_call_ty)(gpurpc_device_t device, uint64_t function, void *arguments, uint64_t size, void *data);

/* Services for programs that are linked with LLVM's libc. Members of 0 have the documented default. `exit` and
 * `abort` must not block, like callbacks; the others may, because worker threads of this library call them: one thread
 * per device for `malloc` and `free`, one per stream for `read` and `write`, any number for `system` and `host_call`. */
typedef struct gpurpc_libc_options {
    /* sizeof(gpurpc_libc_options_t). Later versions may add members, for which 0 keeps the behaviour. */
    uint64_t struct_size;
    /* Null: standard input of this process. */
    gpurpc_read_ty read;
    /* Null: standard output and standard error of this process. */
    gpurpc_write_ty write;
    /* Directory below which files can be opened, renamed and removed. Paths of the device's program are relative to
     * it and cannot leave it through `..` or links; FIFOs, sockets and devices are not opened. It is opened by
     * gpurpc_register_libc and when a device is added. Null: no files. */
    const char *root;
    /* Null: the call is only answered. This library never ends the process. */
    gpurpc_exit_ty exit;
    /* As `exit`. */
    gpurpc_device_callback_ty abort;
    /* Requires `free`, and vice versa. Null: malloc returns null. */
    gpurpc_malloc_ty malloc;
    gpurpc_malloc_free_ty free;
    /* The command is untrusted. Null: system returns -1. */
    gpurpc_system_ty system;
    /* Null: the call is dropped. */
    gpurpc_host_call_ty host_call;
    /* Called once for each device after its last use of `data`: the device was removed, and functions that its calls
     * waited for have returned. Null: not reported. */
    gpurpc_device_callback_ty release;
    /* Passed to all of them. */
    void *data;
    /* Maximum number of open files per device. 0: 64. */
    uint64_t file_limit;
    /* Maximum number of bytes of one read of a lane. 0: 16 MiB. */
    uint64_t read_limit;
    /* Maximum number of bytes that the lanes of a warp print with one printf. 0: 1 MiB. */
    uint64_t print_limit;
    /* Maximum number of allocations per device that are not freed; further ones return null. 0: 1048576. */
    uint64_t allocation_limit;
} gpurpc_libc_options_t;

/* Registers the services of LLVM's libc, separate for each device: streams and files, printf, memory, exit, commands,
 * functions of the host. An opcode for which the program registers a callback, before or after, has that callback
 * instead: opcodes that work on the same objects, such as malloc and free, or fopen and fclose, are replaced together.
 * Statuses as for gpurpc_register_warp; GPURPC_STATUS_DUPLICATE_OPCODE if they are registered already,
 * GPURPC_STATUS_INVALID_ROOT if `root` cannot be opened, here or in gpurpc_device_add,
 * GPURPC_STATUS_INVALID_ARGUMENT for `malloc` without `free` or vice versa. `options` and `root` are copied. */
gpurpc_status_t gpurpc_register_libc(gpurpc_server_t *server, const gpurpc_libc_options_t *options);

#ifdef __cplusplus
}
#endif

#endif
