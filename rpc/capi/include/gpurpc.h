/* gpurpc.h - serves programs on GPUs: the host side of the RPC of LLVM's libc.
 *
 * A program on a device calls the host through memory that both access. A server polls that memory for any
 * number of devices and calls functions of this program:
 *
 *     gpurpc_server_create, gpurpc_register_warp, gpurpc_register_blocking..., gpurpc_device_add, and then
 *     gpurpc_server_start, which serves on a thread of this library, gpurpc_serve on a thread of the program, or
 *     gpurpc_poll while the program waits for the device.
 *
 * This library calls no GPU runtime. The program provides the memory, copies the client to the device, and
 * launches the kernel.
 *
 * Statuses. Functions return GPURPC_STATUS_SUCCESS or another status of enum gpurpc_status; gpurpc_strerror
 * returns a message for it. Outputs are set only after success. A null or misaligned pointer is
 * GPURPC_STATUS_INVALID_ARGUMENT unless a meaning is documented. A function that takes options returns
 * GPURPC_STATUS_INVALID_STRUCT_SIZE for a wrong `struct_size`.
 *
 * Threads. Any thread may call functions with a server at any time, except gpurpc_server_destroy. Threads in
 * gpurpc_poll or gpurpc_serve call the callbacks: for one device one at a time, for several devices
 * concurrently. Callbacks must not block in the system, because they would block all calls of their device: blocking
 * callbacks wait in their operations, and use gpurpc_blocking_run. They must not throw, which would end the process, nor
 * call gpurpc_serve.
 *
 * The device is not trusted: no contents of the memory crash the server. Callbacks receive copies, whose values are
 * arbitrary. */
#ifndef GPURPC_H
#define GPURPC_H

#include <stddef.h>
#include <stdint.h>

#include "gpurpc_opcodes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Result of a function, and reason for a dropped call. Numbers are stable; new ones may be added. */
enum gpurpc_status {
    GPURPC_STATUS_SUCCESS = 0,
    /* An error without a number, which is a bug of this library. */
    GPURPC_STATUS_ERROR = 0x1000,
    /* No callback is registered for the opcode. */
    GPURPC_STATUS_UNHANDLED_OPCODE = 0x1001,
    /* A warp has 1, 32 or 64 lanes. */
    GPURPC_STATUS_INVALID_LANE_SIZE = 0x1002,
    /* A null or misaligned pointer, or an unknown number, such as one in a member that this version does not know. */
    GPURPC_STATUS_INVALID_ARGUMENT = 0x1003,
    /* A client has 1 to 4096 ports, of LLVM 23 1 to 16384. */
    GPURPC_STATUS_INVALID_PORT_COUNT = 0x1004,
    /* Memory that is too small or not aligned to 8 (LLVM 23: to 64). */
    GPURPC_STATUS_INVALID_MEMORY = 0x1005,
    /* Out of memory, or the memory limit of the device is reached. */
    GPURPC_STATUS_OUT_OF_MEMORY = 0x1006,
    /* The opcode already has a callback. */
    GPURPC_STATUS_DUPLICATE_OPCODE = 0x1007,
    /* Callbacks must be registered before the first device is added. */
    GPURPC_STATUS_ALREADY_STARTED = 0x1008,
    /* The device was removed or belongs to another server. */
    GPURPC_STATUS_NO_DEVICE = 0x1009,
    /* The server is in use: a thread polls or serves. Or the call is, by an operation that has not ended. */
    GPURPC_STATUS_BUSY = 0x100a,
    /* A message of a lane exceeds the limit. */
    GPURPC_STATUS_MESSAGE_TOO_LARGE = 0x100b,
    /* The handler of the call failed: a callback called gpurpc_blocking_fail, a service of libc rejected the call, or a
     * worker thread could not be started. The fault's `text` has the reason. */
    GPURPC_STATUS_HANDLER_FAILED = 0x100c,
    /* The root for files is not a directory or cannot be opened. */
    GPURPC_STATUS_INVALID_ROOT = 0x100d,
    /* struct_size of the options was not set to the sizeof of their struct. */
    GPURPC_STATUS_INVALID_STRUCT_SIZE = 0x100e,
    /* A warning about a call: the host refuses the request, such as printf with %n or too much text. The client has an
     * error as the answer, and its port is served on. The fault's `text` has the reason. */
    GPURPC_STATUS_REFUSED = 0x100f,
    /* A client of an unknown release of LLVM, or of another size than clients of the device's generation have. */
    GPURPC_STATUS_INVALID_GENERATION = 0x1010,
    /* The call was abandoned: its device was removed, its port was reset, or the thread that served it has ended. */
    GPURPC_STATUS_ABANDONED = 0x1011
};
typedef int gpurpc_status_t;

/* A server: devices, callbacks and idle policy. */
typedef struct gpurpc_server gpurpc_server_t;

/* A device of a server. Handles are never reused. */
typedef struct gpurpc_device { uint64_t handle; } gpurpc_device_t;

/* The packet of one lane. */
#ifndef GPURPC_BUFFER_T
#define GPURPC_BUFFER_T
typedef struct gpurpc_buffer { uint64_t data[8]; } gpurpc_buffer_t;
#endif

/* Sizes in bytes of a client on the device, of LLVM 19 to 22 and of LLVM 23: see gpurpc_client_init. */
#define GPURPC_CLIENT_SIZE 552
#define GPURPC_CLIENT_SIZE_LLVM_23 2096
/* Maximum numbers of ports of both. */
#define GPURPC_MAXIMUM_PORT_COUNT 4096
#define GPURPC_MAXIMUM_PORT_COUNT_LLVM_23 16384

#ifdef __cplusplus
#define GPURPC_ASSERT(what) static_assert(what, #what)
#else
#define GPURPC_ASSERT(what) _Static_assert(what, #what)
#endif
GPURPC_ASSERT(sizeof(gpurpc_device_t) == 8);
GPURPC_ASSERT(sizeof(gpurpc_buffer_t) == 64);
#undef GPURPC_ASSERT

/* Allocates `size` bytes that the device can access, aligned to 8, or to 64 for clients of LLVM 23. Returns null on failure.
 *
 *     static void *host_memory(uint64_t size, void *data) { return malloc(size); } */
typedef void *(*gpurpc_alloc_ty)(uint64_t size, void *data);
/* Releases memory after its last use.
 *
 *     static void host_free(void *memory, void *data) { free(memory); } */
typedef void (*gpurpc_free_ty)(void *memory, void *data);
/* Waits until a doorbell has rung, the function to wake was called, or `timeout_ns` nanoseconds have elapsed. Returns 0 in the
 * last case, else 1. The condition is the counter of the doorbell, not its interrupt: a counter other than 0 ends the
 * wait at once. One thread of a server waits at a time, while no call is open.
 *
 *     static int wait_for_event(uint64_t timeout_ns, void *data) {
 *         struct pollfd event = {.fd = *(int *)data, .events = POLLIN};
 *         uint64_t count;
 *         return poll(&event, 1, (int)((timeout_ns + 999999) / 1000000)) > 0 && read(event.fd, &count, 8) == 8;
 *     } */
typedef int (*gpurpc_wait_ty)(uint64_t timeout_ns, void *data);
/* Reads or fills the packet of a lane. Called for each participating lane, in ascending order. `buffer` is a copy
 * that is valid during the callback and is written to the packet afterwards.
 *
 *     static void add_one(gpurpc_buffer_t *buffer, uint32_t lane, void *data) { buffer->data[0] += 1; } */
typedef void (*gpurpc_port_callback_ty)(gpurpc_buffer_t *buffer, uint32_t lane, void *data);
/* Answers the calls of all lanes of a warp at once. `input` has a copy of the packet of each of `lanes` lanes; those of lanes
 * that are not set in `mask` have arbitrary contents. `output` has the packets of the answer, which hold what the client has
 * sent: the callback writes those words of participating lanes that it changes, and reads nothing there, as the device may
 * write to them at any time.
 *
 *     static void sum(const gpurpc_buffer_t *in, gpurpc_buffer_t *out, uint64_t mask, uint32_t lanes, void *data) {
 *         for (uint32_t lane = 0; lane < lanes; lane++)
 *             if (mask >> lane & 1) out[lane].data[0] = in[lane].data[0] + in[lane].data[1];
 *     } */
typedef void (*gpurpc_warp_callback_ty)(const gpurpc_buffer_t *input, gpurpc_buffer_t *output, uint64_t mask, uint32_t lanes, void *data);
/* General callback.
 *
 *     static void close_file(void *data) { fclose(data); } */
typedef void (*gpurpc_callback_ty)(void *data);

/* A dropped call; or, if `status` is GPURPC_STATUS_REFUSED, one that was answered with an error. Members may be added
 * at the end. */
typedef struct gpurpc_fault {
    gpurpc_device_t device;
    uint32_t port;
    uint32_t opcode;
    /* Reason. */
    gpurpc_status_t status;
    uint32_t reserved;
    /* English message with the numbers, valid during the callback. */
    const char *text;
} gpurpc_fault_t;
/* Reports a dropped or refused call. A device can cause any number of refused ones.
 *
 *     static void report(const gpurpc_fault_t *fault, void *data) { fprintf(stderr, "%s\n", fault->text); } */
typedef void (*gpurpc_fault_callback_ty)(const gpurpc_fault_t *fault, void *data);

/* Policy of a thread in gpurpc_serve while all devices are idle. 0 is the default of each member but struct_size. */
typedef struct gpurpc_server_options {
    /* sizeof(gpurpc_server_options_t). Later versions may add members, for which 0 keeps the behaviour. */
    uint64_t struct_size;
    /* Number of polls while spinning. 0: 2000. */
    uint32_t spin_count;
    /* Number of polls while yielding to other threads, after that. 0: 200. */
    uint32_t yield_count;
    /* Longest sleep between two polls after that, in nanoseconds. 0: 250000. Sleeps begin short; each is an eighth of
     * the time since the first. */
    uint64_t max_sleep_ns;
    /* Called instead of sleeping while no call is open. Requires `wake`, and vice versa. Null: threads sleep. */
    gpurpc_wait_ty wait;
    /* Ends the current wait, or else the next one. Any thread calls it, any number of times. */
    gpurpc_callback_ty wake;
    /* Passed to both. */
    void *data;
    /* Longest wait in nanoseconds while each device that can call has a doorbell, otherwise as for sleeps: interrupts
     * get lost on some devices (rocm-systems#8192). 0: 10000000. */
    uint64_t max_wait_ns;
} gpurpc_server_options_t;

/* Opcodes of 32 bits: LLVM 20 and later. */
#define GPURPC_OPCODES_WIDE 0
/* Opcodes of 16 bits: LLVM 19. Callbacks receive those of libc as the wide opcodes with the same number, and those
 * from 0x8000 on unchanged. */
#define GPURPC_OPCODES_NARROW 1

/* Flag of a device whose code the program trusts: callbacks that work on packets get the packets themselves instead of
 * copies, which is faster. A device that writes to them meanwhile changes what a callback has checked. */
#define GPURPC_IN_PLACE 1u
/* Flag of a device whose kernels the program announces with gpurpc_device_begin and gpurpc_device_end. While none runs, the
 * device is not polled, and an idle server costs no processor time. */
#define GPURPC_ANNOUNCED_KERNELS 2u

/* A device. Members of 0 have a default, except the first three. */
typedef struct gpurpc_device_options {
    /* sizeof(gpurpc_device_options_t). Later versions may add members, for which 0 keeps the behaviour. */
    uint64_t struct_size;
    /* Number of calls that can be open at once, 1 to 4096, or to 16384 with clients of LLVM 23: as many as warps run
     * at the same time. Warps that wait for a port may keep the warp that holds it from running. */
    uint32_t ports;
    /* Number of threads of a warp in the kernels: 1, 32 or 64. Compilers choose it for AMD's GPUs (-mwavefrontsize64), whatever
     * the device reports. */
    uint32_t lanes;
    /* Memory, by its address on the host: zeroed, or as an earlier server has left it. Null: `alloc` allocates it, and
     * it is zeroed; without `alloc` it is memory of this library, which the program makes accessible to the device. It
     * stays until gpurpc_server_destroy has returned, as a device may write after it was removed. A program that adds
     * and removes many devices passes `memory` or `alloc`, and `free`. */
    void *memory;
    /* Size in bytes of `memory`: gpurpc_buffer_size or more. */
    uint64_t memory_size;
    /* Called once, in gpurpc_device_add, if `memory` is null. */
    gpurpc_alloc_ty alloc;
    /* Called once with `memory`, or the result of `alloc`, after its last use: by the thread that removes the device, or
     * the one that is serving it then; never if gpurpc_device_add was given `memory` and failed. Null: nothing is
     * called, and the memory must stay valid until gpurpc_server_destroy has returned. */
    gpurpc_free_ty free;
    /* Passed to both. */
    void *data;
    /* GPURPC_OPCODES_WIDE or GPURPC_OPCODES_NARROW. 0 if `generation` is given. */
    uint32_t opcodes;
    /* Major release of LLVM whose protocol the client speaks, 19 to 23. 0: that of LLVM 20 to 22, as gpurpc_client.h by
     * default; with GPURPC_OPCODES_NARROW that of LLVM 19. */
    uint32_t generation;
    /* Maximum size of a received message of one lane. 0: 16 MiB. */
    uint64_t message_limit;
    /* Maximum number of bytes that all calls hold, for messages and stacks of blocking callbacks that wait. 0: 256 MiB,
     * enough for 2048 stacks. */
    uint64_t memory_limit;
    /* Doorbell, for `generation` 23: a counter of open calls, and the interrupt for its first call. Of an HSA signal
     * these are the address of `value`, `event_mailbox_ptr` and `event_id`. The addresses are the same on the host and
     * on the device. A client adds 1 to the counter when it opens a call, before the first packet is in the memory; if
     * the counter was 0, it stores the event in the mailbox and raises an interrupt. The server subtracts 1 when a call
     * has ended or was dropped; it never accesses the mailbox. Wait for the counter only while it is 0, poll while a
     * call is open. Both addresses or none; they stay valid as long as the memory. */
    uint64_t *doorbell_value;
    uint64_t *doorbell_mailbox;
    uint32_t doorbell_event;
    /* Sum of GPURPC_IN_PLACE and GPURPC_ANNOUNCED_KERNELS, or 0. */
    uint32_t flags;
    /* Size in bytes of the stack of each blocking callback that waits. 0: 128 KiB. More for callbacks with large arrays or
     * that call a GPU driver. Memory is used as the callback touches it. */
    uint64_t stack_size;
} gpurpc_device_options_t;

/* Creates a server, to be destroyed by gpurpc_server_destroy. Options may be null. */
gpurpc_status_t gpurpc_server_create(const gpurpc_server_options_t *options, gpurpc_server_t **server);

/* Removes all devices and destroys the server, after it has stopped the threads of gpurpc_server_start. Null is ignored. No
 * other thread may use the server during the call or later; if another thread polls or serves, or in a callback, the result
 * is GPURPC_STATUS_BUSY, and the server stays. So it does, without devices, while blocking callbacks wait on threads of the
 * program that live: call it again when each of these threads has polled or ended. */
gpurpc_status_t gpurpc_server_destroy(gpurpc_server_t *server);

/* Registers the callback of an opcode on all devices, for calls of one packet of each lane, which `answer` answers for all
 * lanes at once. `answer` reads only the first `words` words of a packet, 1 to 8; the others have arbitrary values in
 * `input`. Such a call allocates nothing. Calls of several packets or messages: gpurpc_register_blocking.
 * GPURPC_STATUS_ALREADY_STARTED after the first device was added, GPURPC_STATUS_DUPLICATE_OPCODE if the opcode has a
 * callback, GPURPC_STATUS_INVALID_ARGUMENT for other `words`. `data` is passed to the callback and must stay valid until
 * the server is destroyed. */
gpurpc_status_t gpurpc_register_warp(gpurpc_server_t *server, uint32_t opcode, uint32_t words, gpurpc_warp_callback_ty answer, void *data);

/* Assigns `count` consecutive opcodes, 1 or more, that no other part of the program has, and sets `first` to the first:
 * for libraries that share a server, and pass the opcode to their device code, for example as an argument of the kernel.
 * Opcodes with a letter in the upper byte are constants, and two libraries can choose the same one. These have 0xff there,
 * so GPURPC_OPCODES_NARROW has none. GPURPC_STATUS_INVALID_ARGUMENT for a `count` of 0, or if none are left. */
gpurpc_status_t gpurpc_reserve_opcodes(gpurpc_server_t *server, uint32_t count, uint32_t *first);

/* Registers the callback that is called once for each dropped call, and for each refused one. The port of a dropped
 * call is not served again, because the state of its client is unknown, until gpurpc_device_reset_ports. Statuses as for
 * gpurpc_register_warp; the last callback counts. */
gpurpc_status_t gpurpc_register_fault_callback(gpurpc_server_t *server, gpurpc_fault_callback_ty callback, void *data);

/* Computes the size in bytes of the memory of a device with these options. GPURPC_STATUS_INVALID_PORT_COUNT,
 * GPURPC_STATUS_INVALID_LANE_SIZE, GPURPC_STATUS_INVALID_GENERATION. */
gpurpc_status_t gpurpc_buffer_size(const gpurpc_device_options_t *options, uint64_t *size);

/* Adds a device, which is served from now on. GPURPC_STATUS_INVALID_LANE_SIZE, GPURPC_STATUS_INVALID_PORT_COUNT,
 * GPURPC_STATUS_INVALID_MEMORY, GPURPC_STATUS_INVALID_ROOT (gpurpc_register_libc), GPURPC_STATUS_INVALID_GENERATION,
 * GPURPC_STATUS_INVALID_ARGUMENT for unknown `opcodes`, those of another `generation`, or a doorbell that is incomplete or
 * that the generation does not have, or GPURPC_STATUS_OUT_OF_MEMORY if `alloc` returns null. `options` is copied. */
gpurpc_status_t gpurpc_device_add(gpurpc_server_t *server, const gpurpc_device_options_t *options, gpurpc_device_t *device);

/* Removes a device. Its calls are dropped without a fault. A thread that is serving it finishes its poll first: `free`
 * of its options reports that the memory is no longer used. GPURPC_STATUS_NO_DEVICE if it was removed before. */
gpurpc_status_t gpurpc_device_remove(gpurpc_server_t *server, gpurpc_device_t device);

/* Serves a port of a device again whose call was dropped, once the kernel of that call has ended. An open call on the
 * port, whose warp has ended in its middle, is abandoned (GPURPC_STATUS_ABANDONED), no fault is reported. An idle port is left alone. No code of the device may be in a call on the port, and the client must be
 * unlocked: initialise it and copy it to the device again before the next kernel. GPURPC_STATUS_NO_DEVICE if the device
 * was removed, GPURPC_STATUS_INVALID_ARGUMENT if it has no such port, GPURPC_STATUS_BUSY in a callback. */
gpurpc_status_t gpurpc_device_reset_port(gpurpc_server_t *server, gpurpc_device_t device, uint32_t port);

/* Resets all ports of a device, once all of its kernels have ended: as gpurpc_device_reset_port for each port. Sets
 * `count`, which may be null, to the number of ports with a dropped or open call. Calls that have not begun are served
 * as usual: poll first for those that the kernel has made. */
gpurpc_status_t gpurpc_device_reset_ports(gpurpc_server_t *server, gpurpc_device_t device, uint32_t *count);

/* Announces a kernel of a device that has GPURPC_ANNOUNCED_KERNELS, before it is launched. Kernels are counted: several may
 * run. Without effect on other devices. GPURPC_STATUS_NO_DEVICE if the device was removed. */
gpurpc_status_t gpurpc_device_begin(gpurpc_server_t *server, gpurpc_device_t device);

/* Announces that a kernel of a device has ended. Calls that it has made are still served. GPURPC_STATUS_NO_DEVICE if the
 * device was removed, GPURPC_STATUS_INVALID_ARGUMENT if all announced kernels have ended. */
gpurpc_status_t gpurpc_device_end(gpurpc_server_t *server, gpurpc_device_t device);

/* Returns the address on the host and the size in bytes of the memory of a device. Either output may be null.
 * GPURPC_STATUS_NO_DEVICE if it was removed. Memory of this library is valid until gpurpc_server_destroy. */
gpurpc_status_t gpurpc_device_buffer(gpurpc_server_t *server, gpurpc_device_t device, void **buffer, uint64_t *size);

/* Initialises the client of a device with these options in host memory of `size` bytes, the size of its clients:
 * gpurpc_client_t of gpurpc_client.h, GPURPC_CLIENT_SIZE or GPURPC_CLIENT_SIZE_LLVM_23. The program copies it to the device
 * before its first call; for LLVM's libc into the object named by the symbol __llvm_rpc_client, or the one that
 * __llvm_libc_rpc_client points to (LLVM 19). `buffer` is the memory of gpurpc_device_buffer, by its address on the device.
 * Each memory has one client, which holds the locks of its ports. GPURPC_STATUS_INVALID_GENERATION if clients of the
 * generation have another size, GPURPC_STATUS_INVALID_MEMORY if `buffer` is 0 or not a multiple of 8 (LLVM 23: of 64), and
 * statuses of gpurpc_buffer_size. */
gpurpc_status_t gpurpc_client_init(const gpurpc_device_options_t *options, void *client, size_t size, uint64_t buffer);

/* Polls once all devices that no other thread is serving, and sets `any` to 1 if a call was served, else to 0. `any` may
 * be null. */
gpurpc_status_t gpurpc_poll(gpurpc_server_t *server, int *any);

/* Serves on this thread until gpurpc_drain or gpurpc_stop. Several threads may serve; in a callback, whose own call would
 * never end, the result is GPURPC_STATUS_BUSY. */
gpurpc_status_t gpurpc_serve(gpurpc_server_t *server);

/* Serves on a thread of this library until gpurpc_drain or gpurpc_stop; each call starts one more. GPURPC_STATUS_OUT_OF_MEMORY
 * if the thread cannot be started. */
gpurpc_status_t gpurpc_server_start(gpurpc_server_t *server);

/* Waits until the threads of gpurpc_server_start have returned, after gpurpc_drain or gpurpc_stop. GPURPC_STATUS_BUSY in a
 * callback, whose thread may be one of them. */
gpurpc_status_t gpurpc_server_join(gpurpc_server_t *server);

/* Makes threads that serve and sleep poll at once, for example for a thread of the host that calls like a device. */
gpurpc_status_t gpurpc_wake(gpurpc_server_t *server);

/* Makes gpurpc_serve return, now and later, once all calls are answered. A call whose client has died, or whose blocking
 * callback waits on a thread that no longer polls, stays open until its device is removed or its port is reset. */
gpurpc_status_t gpurpc_drain(gpurpc_server_t *server);

/* Makes gpurpc_serve return at once, now and later, for example when the device's program has ended. Open calls stay
 * open. */
gpurpc_status_t gpurpc_stop(gpurpc_server_t *server);

/* Returns an English message for a status. Never null; static, not to be freed. */
const char *gpurpc_strerror(gpurpc_status_t status);

#ifdef __cplusplus
}
#endif

#include "gpurpc_blocking.h"
#include "gpurpc_libc.h"

#endif
