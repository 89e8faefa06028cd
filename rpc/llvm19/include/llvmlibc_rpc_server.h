/* llvmlibc_rpc_server.h - the server for the RPC of LLVM 19's libc, by its names, types and numbers.
 *
 * Programs for libllvmlibc_rpc_server.a of LLVM 19 compile with this header and link with this library unchanged. New
 * programs use gpurpc.h, which reports errors and serves clients of all releases. Differences to LLVM's library are in
 * docs/rpc.md of this project. */
#ifndef LLVMLIBC_RPC_SERVER_H
#define LLVMLIBC_RPC_SERVER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of ports of a device. */
static const uint64_t RPC_MAXIMUM_PORT_COUNT = 4096;

/* Symbol of the device's program that points to its client: see rpc_get_client_buffer. */
static const char *const rpc_client_symbol_name = "__llvm_libc_rpc_client";

/* Results of functions. */
typedef enum {
    RPC_STATUS_SUCCESS = 0x0,
    RPC_STATUS_CONTINUE = 0x1,
    RPC_STATUS_ERROR = 0x1000,
    RPC_STATUS_UNHANDLED_OPCODE = 0x1001,
    RPC_STATUS_INVALID_LANE_SIZE = 0x1002
} rpc_status_t;

/* An open call, valid in its callback. */
typedef struct rpc_port_s {
    uint64_t handle;
    uint32_t lane_size;
} rpc_port_t;

/* The packet of one lane. */
typedef struct rpc_buffer_s {
    uint64_t data[8];
} rpc_buffer_t;

/* A device with its server. */
typedef struct rpc_device_s {
    uintptr_t handle;
} rpc_device_t;

/* Allocates `size` bytes that host and device access. */
typedef void *(*rpc_alloc_ty)(uint64_t size, void *data);
/* Releases memory of rpc_alloc_ty. */
typedef void (*rpc_free_ty)(void *ptr, void *data);
/* Serves a call of the device, which ends when the callback returns. */
typedef void (*rpc_opcode_callback_ty)(rpc_port_t port, void *data);
/* Reads or fills the packet of a lane. Called for each participating lane, in ascending order. */
typedef void (*rpc_port_callback_ty)(rpc_buffer_t *buffer, void *data);

/* Creates a server for a device with this number of ports and lanes, 1, 32 or 64. `alloc` allocates the memory of its
 * calls. RPC_STATUS_INVALID_LANE_SIZE, RPC_STATUS_ERROR. */
rpc_status_t rpc_server_init(rpc_device_t *rpc_device, uint64_t num_ports, uint32_t lane_size, rpc_alloc_ty alloc, void *data);

/* Destroys the server of a device and releases the memory by `dealloc`. RPC_STATUS_ERROR if the device is null or in
 * rpc_handle_server. */
rpc_status_t rpc_server_shutdown(rpc_device_t rpc_device, rpc_free_ty dealloc, void *data);

/* Serves calls until none can continue. RPC_STATUS_UNHANDLED_OPCODE if a call had an opcode without callback,
 * RPC_STATUS_ERROR if one was dropped for another reason: its warp has no answer, so later results are the same. */
rpc_status_t rpc_handle_server(rpc_device_t rpc_device);

/* Sets the callback of an opcode, and replaces an earlier one. */
rpc_status_t rpc_register_callback(rpc_device_t rpc_device, uint16_t opcode, rpc_opcode_callback_ty callback, void *data);

/* Returns the initial client, to be copied to the object that rpc_client_symbol_name points to. Null for a null device. */
const void *rpc_get_client_buffer(rpc_device_t device);

/* Returns the size of the client in bytes. */
#ifdef __cplusplus
uint64_t rpc_get_client_size();
#else
uint64_t rpc_get_client_size(void);
#endif

/* The following functions are for a callback, with its port. Each has happened when it returns. */

/* Waits for ownership of the packets, calls `callback`, and sends them. */
void rpc_send(rpc_port_t port, rpc_port_callback_ty callback, void *data);

/* Sends size[i] bytes at src[i] to lane i. Both arrays have an element for each lane. */
void rpc_send_n(rpc_port_t port, const void *const *src, uint64_t *size);

/* Waits for the packets of the client and calls `callback`. */
void rpc_recv(rpc_port_t port, rpc_port_callback_ty callback, void *data);

/* Waits for a message of each participating lane: sets size[i], and dst[i] to memory of `alloc` with the message. */
void rpc_recv_n(rpc_port_t port, void **dst, uint64_t *size, rpc_alloc_ty alloc, void *data);

/* Waits for the packets of the client, calls `callback`, and sends them back. */
void rpc_recv_and_send(rpc_port_t port, rpc_port_callback_ty callback, void *data);

#ifdef __cplusplus
}
#endif

#endif
