/* gpurpc_blocking.h - blocking callbacks: the part of gpurpc.h, which includes it, for functions that have happened when
 * they return. */
#ifndef GPURPC_BLOCKING_H
#define GPURPC_BLOCKING_H

#include "gpurpc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An open call of a client, valid in its blocking callback until it returns, on the thread of the callback. */
typedef struct gpurpc_blocking gpurpc_blocking_t;

/* Serves a call, from its first packet to its last: the call ends when the callback returns. Each function for it
 * waits until it has happened, and other calls are served meanwhile.
 *
 * The callback has a stack of its own (`stack_size` of the device), below which is memory without access. It runs on the
 * thread that has started it, and continues only in polls of that thread: other threads leave it alone, as compiled code
 * keeps addresses of thread-local variables such as `errno`. If a function returns another status than
 * GPURPC_STATUS_SUCCESS or GPURPC_STATUS_BUSY, so do all later ones: the callback releases what it has and returns, and the
 * call is dropped. With GPURPC_STATUS_ABANDONED it is so already. Of a removed device or reset port, the callback returns
 * in the function that removes or resets, if its own thread calls that; else in that thread's next poll of any server, or
 * when the thread ends, as by exit.
 *
 *     static void add_twice(gpurpc_blocking_t *call, void *data) {
 *         if (!gpurpc_blocking_recv_and_send(call, add_one, data))
 *             gpurpc_blocking_recv_and_send(call, add_one, data);
 *     } */
typedef void (*gpurpc_blocking_callback_ty)(gpurpc_blocking_t *call, void *data);

/* Registers the blocking callback of an opcode, for calls of any sequence of packets: gpurpc_blocking_callback_ty. A call
 * that does not wait allocates nothing. Statuses as for gpurpc_register_warp. */
gpurpc_status_t gpurpc_register_blocking(gpurpc_server_t *server, uint32_t opcode, gpurpc_blocking_callback_ty callback, void *data);

/* The following functions are for a blocking callback, with its call. Each has happened when it returns success, and the
 * `data` of a callback is used until then only. GPURPC_STATUS_OUT_OF_MEMORY if the callbacks of the device that wait have
 * too many stacks (`memory_limit`), GPURPC_STATUS_ABANDONED. A callback for packets, or one of another call that this
 * callback serves by gpurpc_poll, must not use the call: GPURPC_STATUS_BUSY, which has no effect. */

/* Waits for the packets of the client and calls `use`. Null: no callback, as in the next two. */
gpurpc_status_t gpurpc_blocking_recv(gpurpc_blocking_t *call, gpurpc_port_callback_ty use, void *data);

/* Waits for ownership of the packets, calls `fill`, and sends them. The buffers keep their last contents. */
gpurpc_status_t gpurpc_blocking_send(gpurpc_blocking_t *call, gpurpc_port_callback_ty fill, void *data);

/* Waits for the packets of the client, calls `work`, and sends them back as the answer. */
gpurpc_status_t gpurpc_blocking_recv_and_send(gpurpc_blocking_t *call, gpurpc_port_callback_ty work, void *data);

/* Waits for a message of each lane. Sets 64 elements of both arrays: sizes[i] bytes at messages[i] from lane i, aligned to
 * 16 and writable, valid until the callback returns. Lanes that do not participate have null and 0; an empty message is
 * not null. GPURPC_STATUS_MESSAGE_TOO_LARGE, GPURPC_STATUS_OUT_OF_MEMORY. */
gpurpc_status_t gpurpc_blocking_recv_n(gpurpc_blocking_t *call, void **messages, uint64_t *sizes);

/* Sends a message to each participating lane: sizes[i] bytes at messages[i] to lane i. Null is an empty message. Elements
 * of other lanes are not read. */
gpurpc_status_t gpurpc_blocking_send_n(gpurpc_blocking_t *call, const void *const *messages, const uint64_t *sizes);

/* Runs `work` on a worker thread, where it may block in the system, for example on a file. Returns when `work` has
 * returned, also if the call is abandoned: then the thread that serves waits for it. A callback that blocks without this
 * function delays all calls of its device, and those of other devices that its thread serves. */
gpurpc_status_t gpurpc_blocking_run(gpurpc_blocking_t *call, gpurpc_callback_ty work, void *data);

/* Drops the call when the callback returns: the client receives no answer, except for packets that were sent. */
gpurpc_status_t gpurpc_blocking_fail(gpurpc_blocking_t *call);

/* Returns the opcode of the call. 0 if `call` is null. */
uint32_t gpurpc_blocking_opcode(const gpurpc_blocking_t *call);

/* Returns the bit mask of the participating lanes, which may be 0. 0 if `call` is null. */
uint64_t gpurpc_blocking_lane_mask(const gpurpc_blocking_t *call);

/* Returns the device of the call. A `handle` of 0, which is no device, if `call` is null. */
gpurpc_device_t gpurpc_blocking_device(const gpurpc_blocking_t *call);

#ifdef __cplusplus
}
#endif

#endif
