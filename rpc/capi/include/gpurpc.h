/* gpurpc.h - serves programs on GPUs: the host's end of the RPC of LLVM's libc.
 *
 * A program on a device asks the host through memory that both see. A server polls that memory for any
 * number of devices, and calls functions of this program:
 *
 *     gpurpc_server_create, gpurpc_register_callback..., gpurpc_device_add, and then
 *     gpurpc_serve in a thread of its own, or gpurpc_poll while the program waits for the device.
 *
 * This library calls no GPU runtime. The memory, the copy of a client to the device, and the launch are
 * the program's; so are the answers.
 *
 * Statuses. Functions give GPURPC_STATUS_SUCCESS or another status of enum gpurpc_status, of which
 * gpurpc_strerror tells the meaning. Outputs hold something after success only. A null pointer is
 * GPURPC_STATUS_INVALID_ARGUMENT, but where it is said to mean something.
 *
 * Threads. Functions with a server may be called by any thread at any time, but gpurpc_server_destroy.
 * Callbacks are called by threads that are in gpurpc_poll or gpurpc_serve; for one device by one of them
 * at a time, for several devices at the same time. They must not wait for anything, as all calls of
 * their device would: what a call waits for is queued, or done by gpurpc_run_blocking. They must not throw, nor call
 * gpurpc_serve.
 *
 * The device is not trusted: whatever it writes into the memory, the server lives, and what callbacks get
 * was copied before. The values that they get may be anything. */
#ifndef GPURPC_H
#define GPURPC_H

#include <stddef.h>
#include <stdint.h>

#include "gpurpc_opcodes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a function gives, and why a call was dropped. Numbers stay; new ones may come. */
enum gpurpc_status {
    GPURPC_STATUS_SUCCESS = 0,
    /* An error that this interface has no number for; a mistake of this library. */
    GPURPC_STATUS_ERROR = 0x1000,
    /* No callback is registered for the opcode. */
    GPURPC_STATUS_UNHANDLED_OPCODE = 0x1001,
    /* A warp has 1, 32 or 64 lanes. */
    GPURPC_STATUS_INVALID_LANE_SIZE = 0x1002,
    /* A null pointer, or a number that means nothing, such as one in a member that this version does not know. */
    GPURPC_STATUS_INVALID_ARGUMENT = 0x1003,
    /* A client has 1 to 4096 ports. */
    GPURPC_STATUS_INVALID_PORT_COUNT = 0x1004,
    /* Memory that is too small, or lies at no multiple of 8. */
    GPURPC_STATUS_INVALID_MEMORY = 0x1005,
    /* There is no more memory, or a device's calls hold as much as they may. */
    GPURPC_STATUS_OUT_OF_MEMORY = 0x1006,
    /* The opcode has a callback. */
    GPURPC_STATUS_DUPLICATE_OPCODE = 0x1007,
    /* Callbacks are registered before the first device is added. */
    GPURPC_STATUS_ALREADY_STARTED = 0x1008,
    /* The device was removed, or is one of another server. */
    GPURPC_STATUS_NO_DEVICE = 0x1009,
    /* The server is in use: a thread polls or serves. */
    GPURPC_STATUS_BUSY = 0x100a,
    /* A message of a lane has more bytes than are allowed. */
    GPURPC_STATUS_MESSAGE_TOO_LARGE = 0x100b,
    /* A callback called gpurpc_port_fail. */
    GPURPC_STATUS_HANDLER_FAILED = 0x100c,
    /* The root for files is no directory, or cannot be opened. */
    GPURPC_STATUS_INVALID_ROOT = 0x100d,
    /* The first member of options is not sizeof of their struct: it was not set. */
    GPURPC_STATUS_INVALID_STRUCT_SIZE = 0x100e
};
typedef int gpurpc_status_t;

/* A server: devices, callbacks, and how to wait. */
typedef struct gpurpc_server gpurpc_server_t;

/* A call of a client, for the callbacks of it: until it has ended. */
typedef struct gpurpc_port gpurpc_port_t;

/* A device of a server. Numbers are never used again. */
typedef struct gpurpc_device { uint64_t handle; } gpurpc_device_t;

/* The packet of one lane. */
#ifndef GPURPC_BUFFER_T
#define GPURPC_BUFFER_T
typedef struct gpurpc_buffer { uint64_t data[8]; } gpurpc_buffer_t;
#endif

/* Bytes of a client on the device: see gpurpc_client_init. */
#define GPURPC_CLIENT_SIZE 552
/* The most ports of a client. */
#define GPURPC_MAXIMUM_PORT_COUNT 4096

#ifdef __cplusplus
#define GPURPC_ASSERT(what) static_assert(what, #what)
#else
#define GPURPC_ASSERT(what) _Static_assert(what, #what)
#endif
GPURPC_ASSERT(sizeof(gpurpc_device_t) == 8);
GPURPC_ASSERT(sizeof(gpurpc_buffer_t) == 64);
#undef GPURPC_ASSERT

/* Makes memory of `size` bytes that the device sees too, at a multiple of 8; null if it cannot. */
typedef void *(*gpurpc_alloc_ty)(uint64_t size, void *data);
/* Takes memory back that nothing uses any more. */
typedef void (*gpurpc_free_ty)(void *memory, void *data);
/* Serves a call that begins: queues what is to be done, and returns. Without anything queued the call
 * ends, and the client gets its packets back as they are. */
typedef void (*gpurpc_opcode_callback_ty)(gpurpc_port_t *port, void *data);
/* Reads or fills the packet of a lane, for each lane that takes part, in rising order. `buffer` is a copy
 * for as long as the callback runs; what is in it then goes into the packet. */
typedef void (*gpurpc_port_callback_ty)(gpurpc_buffer_t *buffer, uint32_t lane, void *data);
/* Takes what gpurpc_recv_n received: of lane i the sizes[i] bytes at messages[i], at a multiple of 16. Both
 * arrays have 64 elements and last as long as the callback; messages last as long as the call, and may be
 * written. Of lanes that take no part they have null and 0; an empty message is not null. */
typedef void (*gpurpc_recv_n_callback_ty)(void *const *messages, const uint64_t *sizes, void *data);
/* Gives the message of a lane to gpurpc_send_n, and puts its bytes into `size`. They stay as they are until
 * the next callback of the call. Null is an empty message, whatever the size. */
typedef const void *(*gpurpc_send_n_callback_ty)(uint32_t lane, uint64_t *size, void *data);
/* Does what it is given for. */
typedef void (*gpurpc_callback_ty)(void *data);

/* A call that was dropped. Members may be added at the end. */
typedef struct gpurpc_fault {
    gpurpc_device_t device;
    uint32_t port;
    uint32_t opcode;
    /* Why. */
    gpurpc_status_t status;
    uint32_t reserved;
    /* A sentence with the numbers, in English, for as long as the callback runs. */
    const char *text;
} gpurpc_fault_t;
typedef void (*gpurpc_fault_callback_ty)(const gpurpc_fault_t *fault, void *data);

/* Gives up to `size` bytes of standard input: how many there were, 0 at the end, -1 if it cannot. */
typedef int64_t (*gpurpc_read_ty)(gpurpc_device_t device, void *bytes, uint64_t size, void *data);
/* Takes `size` bytes of standard output, `stream` 1, or standard error output, 2: how many it took, -1 if it
 * cannot. */
typedef int64_t (*gpurpc_write_ty)(gpurpc_device_t device, int stream, const void *bytes, uint64_t size, void *data);
/* A warp of the device's program ended the program, with a status. */
typedef void (*gpurpc_exit_ty)(gpurpc_device_t device, int status, void *data);
/* Tells of a device. */
typedef void (*gpurpc_device_callback_ty)(gpurpc_device_t device, void *data);
/* Gives the address on the device of `size` bytes of its memory, or 0. */
typedef uint64_t (*gpurpc_malloc_ty)(gpurpc_device_t device, uint64_t size, void *data);
/* Takes memory of the device back: an address that gpurpc_malloc_ty gave, once. */
typedef void (*gpurpc_malloc_free_ty)(gpurpc_device_t device, uint64_t address, void *data);
/* Runs a command, and gives its status. */
typedef int (*gpurpc_system_ty)(gpurpc_device_t device, const char *command, void *data);
/* Calls a function of the host: by what the device has for it, which may be any number, with a copy of its
 * arguments, at a multiple of 16. Gives the result. */
typedef uint64_t (*gpurpc_host_call_ty)(gpurpc_device_t device, uint64_t function, void *arguments, uint64_t size, void *data);

/* What a program that is linked with LLVM's libc may have of the host. What is 0 is as it says. `exit` and
 * `abort` must not wait for anything, as callbacks do not; the others may: threads of this library call them.
 * `malloc` and `free` are called by one for each device, `read` and `write` by one for each stream, `system`
 * and `host_call` by any number at the same time. */
typedef struct gpurpc_libc_options {
    /* sizeof(gpurpc_libc_options_t): a later version may have more members, for which 0 is as before. */
    uint64_t struct_size;
    /* Null: standard input of this process. */
    gpurpc_read_ty read;
    /* Null: standard output and standard error output of this process. */
    gpurpc_write_ty write;
    /* A directory: files below it can be opened, renamed and removed. Paths of the device's program are relative
     * to it, and lead nowhere else, by `..` or links. It is looked at by gpurpc_register_libc and when a device is
     * added. Null: there are no files. */
    const char *root;
    /* Null: the call is answered, and no more. This library never ends the process. */
    gpurpc_exit_ty exit;
    /* As `exit`. */
    gpurpc_device_callback_ty abort;
    /* With `free`, or neither. Null: malloc gives null. */
    gpurpc_malloc_ty malloc;
    gpurpc_malloc_free_ty free;
    /* The command is whatever the device's program says. Null: system gives -1. */
    gpurpc_system_ty system;
    /* Null: the call is dropped. */
    gpurpc_host_call_ty host_call;
    /* Called once for each device when nothing of it uses `data` any more: it was removed, and what its calls
     * waited for has returned. Null: nothing tells. */
    gpurpc_device_callback_ty release;
    /* For all of them. */
    void *data;
    /* The most files that are open at once, on each device. 0: 64. */
    uint64_t file_limit;
    /* The most bytes that a lane reads at once. 0: 16 MiB. */
    uint64_t read_limit;
    /* The most bytes that the lanes of a warp print by one printf. 0: 1 MiB. */
    uint64_t print_limit;
    /* The most allocations that `malloc` has made and `free` has not got yet, on each device; more give null. 0:
     * 1048576. */
    uint64_t allocation_limit;
} gpurpc_libc_options_t;

/* How a thread in gpurpc_serve waits that finds nothing to do. All zero, but struct_size, is the default. */
typedef struct gpurpc_server_options {
    /* sizeof(gpurpc_server_options_t): a later version may have more members, for which 0 is as before. */
    uint64_t struct_size;
    /* How often it looks around in a row. 0: 2000. */
    uint32_t spin_count;
    /* How often it looks around then while it lets other threads run. 0: 200. */
    uint32_t yield_count;
    /* The longest sleep between two looks then, in nanoseconds. 0: 250000. Sleeps begin short, and each is an
     * eighth of the time since the first. */
    uint64_t max_sleep_ns;
} gpurpc_server_options_t;

/* Opcodes of 32 bits: LLVM 20 and later. */
#define GPURPC_OPCODES_WIDE 0
/* Opcodes of 16 bits, as LLVM 19 has them. Callbacks get those of libc as the wide ones with the same
 * number, and those from 0x8000 on as they are. */
#define GPURPC_OPCODES_NARROW 1

/* A device. What is 0 has its default, but the first three. */
typedef struct gpurpc_device_options {
    /* sizeof(gpurpc_device_options_t): a later version may have more members, for which 0 is as before. */
    uint64_t struct_size;
    /* How many calls can be under way at once: as many as warps run at the same time, 1 to 4096. Warps
     * that wait for a port may keep the one that holds it from running. */
    uint32_t ports;
    /* Threads of a warp: 1, 32 or 64. */
    uint32_t lanes;
    /* The memory, as the host sees it: zero, or as an earlier server has left it. Null: `alloc` makes it,
     * and it is zeroed; without `alloc` it is memory of this process, which the program makes known to the
     * device. */
    void *memory;
    /* Bytes of `memory`: gpurpc_buffer_size or more. */
    uint64_t memory_size;
    /* Called once, in gpurpc_device_add, if `memory` is null. */
    gpurpc_alloc_ty alloc;
    /* Called once with `memory` or what `alloc` has made when nothing uses it any more: by the thread that
     * removes the device, or the one that serves it then; never if gpurpc_device_add was given `memory` and
     * failed. Null: nothing is called, and the memory stays until gpurpc_server_destroy has returned. */
    gpurpc_free_ty free;
    /* For both. */
    void *data;
    /* GPURPC_OPCODES_WIDE or GPURPC_OPCODES_NARROW. */
    uint32_t opcodes;
    uint32_t reserved;
    /* The most bytes of a message of one lane that is received. 0: 16 MiB. */
    uint64_t message_limit;
    /* The most bytes that all calls hold, of messages and of gpurpc_port_alloc. 0: 256 MiB. */
    uint64_t memory_limit;
} gpurpc_device_options_t;

/* Makes a server. Options may be null. The program owns it until gpurpc_server_destroy. */
gpurpc_status_t gpurpc_server_create(const gpurpc_server_options_t *options, gpurpc_server_t **server);

/* Removes all devices, and the server with them. Null is nothing to do. Nothing uses the server while this
 * runs or later; a thread that is found to poll or serve, as that of a callback, is GPURPC_STATUS_BUSY, and
 * the server stays. */
gpurpc_status_t gpurpc_server_destroy(gpurpc_server_t *server);

/* Serves an opcode, on all devices. Callbacks are registered before the first device is added:
 * GPURPC_STATUS_ALREADY_STARTED. An opcode has one: GPURPC_STATUS_DUPLICATE_OPCODE. `data` is given to the callback
 * and stays until the server is destroyed. */
gpurpc_status_t gpurpc_register_callback(gpurpc_server_t *server, uint32_t opcode, gpurpc_opcode_callback_ty callback, void *data);

/* Serves an opcode whose calls are one packet of each lane, and the same packets as the answer, as
 * gpurpc_recv_and_send alone does: `work` changes them. Nothing is allocated for such a call. */
gpurpc_status_t gpurpc_register_request(gpurpc_server_t *server, uint32_t opcode, gpurpc_port_callback_ty work, void *data);

/* Serves all opcodes of LLVM's libc, for each device by itself: streams and files, printf, memory, the end of
 * the program, commands, functions of the host. Registered as callbacks are; GPURPC_STATUS_DUPLICATE_OPCODE if one of
 * the opcodes has a callback, GPURPC_STATUS_INVALID_ROOT if `root` cannot be opened, here or in
 * gpurpc_device_add. */
gpurpc_status_t gpurpc_register_libc(gpurpc_server_t *server, const gpurpc_libc_options_t *options);

/* Tells of each call that is dropped, once: its port is not served again, as nobody knows what its client
 * waits for. Registered as callbacks are; the last one counts. */
gpurpc_status_t gpurpc_register_fault_callback(gpurpc_server_t *server, gpurpc_fault_callback_ty callback, void *data);

/* Bytes of the memory of a device. */
gpurpc_status_t gpurpc_buffer_size(uint32_t ports, uint32_t lanes, uint64_t *size);

/* Serves a device from now on. GPURPC_STATUS_INVALID_LANE_SIZE, GPURPC_STATUS_INVALID_PORT_COUNT,
 * GPURPC_STATUS_INVALID_MEMORY, or GPURPC_STATUS_OUT_OF_MEMORY if `alloc` gives null. */
gpurpc_status_t gpurpc_device_add(gpurpc_server_t *server, const gpurpc_device_options_t *options, gpurpc_device_t *device);

/* Serves a device no longer. Its calls are dropped, of which no fault tells. A thread that serves it at
 * that moment comes to an end with that first: `free` of its options tells when the memory is the program's.
 * GPURPC_STATUS_NO_DEVICE if it was removed before. */
gpurpc_status_t gpurpc_device_remove(gpurpc_server_t *server, gpurpc_device_t device);

/* The memory of a device, as the host sees it, and its bytes; either output may be null. */
gpurpc_status_t gpurpc_device_buffer(gpurpc_server_t *server, gpurpc_device_t device, void **buffer, uint64_t *size);

/* Fills in a client, the GPURPC_CLIENT_SIZE bytes or more at `client`, which is memory of the host:
 * gpurpc_client_t of gpurpc_client.h. The program copies it to the device before its first call; for LLVM's
 * libc into the object that the symbol __llvm_rpc_client names, or the one that __llvm_libc_rpc_client points
 * to (LLVM 19). `buffer` is the memory of gpurpc_device_buffer as the device sees it. A client is filled in
 * once for each memory: it holds the locks of its ports. GPURPC_STATUS_INVALID_MEMORY if `size` is less, or
 * `buffer` is 0 or no multiple of 8. */
gpurpc_status_t gpurpc_client_init(void *client, size_t size, uint64_t buffer, uint32_t ports);

/* Serves what there is to serve now, once around all devices that no other thread serves, and puts 1
 * into `any` if there was anything, else 0. `any` may be null. */
gpurpc_status_t gpurpc_poll(gpurpc_server_t *server, int *any);

/* Serves, with this thread, until gpurpc_drain or gpurpc_stop. Several threads may; a callback, whose own call would
 * never end, gets GPURPC_STATUS_BUSY. */
gpurpc_status_t gpurpc_serve(gpurpc_server_t *server);

/* Lets gpurpc_serve return, now and later, once all that clients have asked for is answered. A call whose
 * client has died in the middle of it is under way until its device is removed. */
gpurpc_status_t gpurpc_drain(gpurpc_server_t *server);

/* Lets gpurpc_serve return at once, now and later, as when the device's program has ended. Calls that are
 * under way stay as they are. */
gpurpc_status_t gpurpc_stop(gpurpc_server_t *server);

/* What follows is for callbacks of a call, with the port that it began with. A call is a row of packets
 * that are received and sent, as client and host agreed on, and begins with one of the client's. The
 * functions queue what is to be done next: it is done in this order, each when the client has come to
 * it, and other calls are served in between. Callbacks may queue more; with nothing left the call ends. */

/* Waits for the packets of the client, and calls `use`. Null: nothing is called. */
gpurpc_status_t gpurpc_recv(gpurpc_port_t *port, gpurpc_port_callback_ty use, void *data);

/* Waits until packets can be sent, calls `fill`, and sends them. The buffers hold what was in them last. */
gpurpc_status_t gpurpc_send(gpurpc_port_t *port, gpurpc_port_callback_ty fill, void *data);

/* Waits for the packets of the client, calls `work`, and sends them back as the answer. */
gpurpc_status_t gpurpc_recv_and_send(gpurpc_port_t *port, gpurpc_port_callback_ty work, void *data);

/* Waits for a message of each lane, and calls `done` with all of them. A message that is too large drops
 * the call: GPURPC_STATUS_MESSAGE_TOO_LARGE, GPURPC_STATUS_OUT_OF_MEMORY. */
gpurpc_status_t gpurpc_recv_n(gpurpc_port_t *port, gpurpc_recv_n_callback_ty done, void *data);

/* Calls `message` for each lane that takes part, when all before is done, and sends what it gives. */
gpurpc_status_t gpurpc_send_n(gpurpc_port_t *port, gpurpc_send_n_callback_ty message, void *data);

/* Has `work` done by a thread of its own, which may wait for anything, such as a file; what is queued after it
 * waits for it, and no other call does. It may queue more, and use the memory of the call. If the device is
 * removed meanwhile, the call has ended when `work` returns. Nothing waits for that: the program does, by
 * gpurpc_port_on_close, before what `work` uses goes. */
gpurpc_status_t gpurpc_run_blocking(gpurpc_port_t *port, gpurpc_callback_ty work, void *data);

/* Memory of `size` bytes, all zero, at a multiple of 16, until the call has ended. Null if its device's
 * calls hold as much as they may. */
void *gpurpc_port_alloc(gpurpc_port_t *port, uint64_t size);

/* Has `end` called once when the call has ended or was dropped, by the thread that serves or removes its
 * device, or that of gpurpc_run_blocking; the last one first, and before the memory of the call goes. The port is none
 * any more then. */
gpurpc_status_t gpurpc_port_on_close(gpurpc_port_t *port, gpurpc_callback_ty callback, void *data);

/* Drops the call when this callback has returned for all lanes: what is queued is not done, and the client
 * gets no answer; but what gpurpc_send is filling is sent. */
gpurpc_status_t gpurpc_port_fail(gpurpc_port_t *port);

/* What the client asks for. */
uint32_t gpurpc_port_opcode(const gpurpc_port_t *port);

/* A bit for each lane that takes part. It may be 0: the device is not trusted. */
uint64_t gpurpc_port_lane_mask(const gpurpc_port_t *port);

/* The device of the call. */
gpurpc_device_t gpurpc_port_device(const gpurpc_port_t *port);

/* A sentence for a status, in English. It is always there. */
const char *gpurpc_strerror(gpurpc_status_t status);

#ifdef __cplusplus
}
#endif

#endif
