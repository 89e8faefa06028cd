/* gpurpc_client.h - calls the host from a GPU: the device side of the RPC of LLVM's libc.
 *
 * For C11, C++17, CUDA and HIP: clang for nvptx and amdgcn, nvcc, hipcc. Compiled for a host, it is a client
 * with one lane, for tests and for programs that run on both. This header is self-contained.
 *
 *     gpurpc_call_t call = gpurpc_client_open(client, OPCODE);
 *     gpurpc_buffer_t *packet = gpurpc_call_fill(&call);
 *     packet->data[0] = 41;
 *     gpurpc_call_send(&call);
 *     answer = gpurpc_call_recv(&call)->data[0];
 *     gpurpc_call_close(&call);
 *
 * All lanes of a warp that are active when a call is opened participate until its end, each with its own packet: they
 * call these functions together, and send and receive in the order that the host expects. The first packets of a
 * call go to the host. On devices before sm_70, lanes of a warp open one call at a time.
 * gpurpc_client_open_lane opens a call of one lane, for code that other lanes of the warp do not reach.
 * Plain C and C++ for devices requires clang 19 or newer, -fconvergent-functions, and for nvptx +ptx63 or later.
 * gpurpc.hpp has typed calls for C++.
 *
 * Define GPURPC_CLIENT_LLVM as 23 before including this header if LLVM 23's libc uses the same client, or for more than
 * 4096 ports; `generation` of the device's options on the host is the same number.
 *
 * Names with gpurpc_detail_ are not part of the interface. */
#ifndef GPURPC_CLIENT_H
#define GPURPC_CLIENT_H

#include <stdint.h>

#include "gpurpc_opcodes.h"

/* Major release of LLVM whose client this is. Those of 20, 21 and 22 are equal. */
#ifndef GPURPC_CLIENT_LLVM
#define GPURPC_CLIENT_LLVM 20
#endif
#if GPURPC_CLIENT_LLVM < 20 || GPURPC_CLIENT_LLVM > 23
#error "gpurpc_client.h: GPURPC_CLIENT_LLVM is 20, 21, 22 or 23"
#endif

/* The packet of one lane. */
#ifndef GPURPC_BUFFER_T
#define GPURPC_BUFFER_T
typedef struct gpurpc_buffer { uint64_t data[8]; } gpurpc_buffer_t;
#endif

/* Participating lanes and opcode of a call. */
typedef struct gpurpc_header {
    uint64_t mask;
    uint32_t opcode;
    uint32_t padding;
} gpurpc_header_t;

#if GPURPC_CLIENT_LLVM >= 23
/* Counter of open calls, and the interrupt for its first call. Both pointers are null if the host has no doorbell. */
typedef struct gpurpc_doorbell {
    uint64_t *value;
    uint64_t *mailbox;
    uint32_t event_id;
} gpurpc_doorbell_t;
#endif

/* A client, initialised on the host by gpurpc_client_init. */
typedef struct gpurpc_client {
    uint32_t port_count;
#if GPURPC_CLIENT_LLVM >= 23
    const gpurpc_doorbell_t *doorbell;
#endif
    const uint32_t *inbox;
    uint32_t *outbox;
    gpurpc_header_t *header;
    gpurpc_buffer_t *packet;
    /* Lock bit of each port. */
#if GPURPC_CLIENT_LLVM >= 23
    uint32_t lock[512];
#else
    uint32_t lock[128];
#endif
} gpurpc_client_t;

#ifdef __cplusplus
#define GPURPC_ASSERT(what) static_assert(what, #what)
#else
#define GPURPC_ASSERT(what) _Static_assert(what, #what)
#endif
GPURPC_ASSERT(sizeof(gpurpc_buffer_t) == 64);
GPURPC_ASSERT(sizeof(gpurpc_header_t) == 16);
GPURPC_ASSERT(sizeof(void *) != 8 || sizeof(gpurpc_client_t) == (GPURPC_CLIENT_LLVM >= 23 ? 2096 : 552));
#undef GPURPC_ASSERT

/* An open call. The members are private. */
typedef struct gpurpc_call {
    gpurpc_client_t *client;
    gpurpc_buffer_t *packet;
    uint64_t mask;
    uint32_t port;
    uint32_t outbox;
    int received;
    int owned;
} gpurpc_call_t;

/* Operations that differ between targets. Lane masks have 64 bits on all of them. */

#if defined(__CUDACC__) || defined(__CUDA__) || defined(__HIPCC__) || defined(__HIP__)
#define GPURPC_DETAIL_FN static __device__ inline
#else
#define GPURPC_DETAIL_FN static inline
/* Older releases ignore -fconvergent-functions, and would move the functions of warps to other branches. */
#if (defined(__NVPTX__) || defined(__AMDGCN__)) && defined(__clang__) && __clang_major__ < 19
#error "gpurpc_client.h: clang 19 or newer is required for device code in C and C++"
#endif
#endif

#define GPURPC_DETAIL_INLINE_FN GPURPC_DETAIL_FN __attribute__((always_inline))

#if defined(__NVCC__) && defined(__CUDACC__)
#if __CUDACC_VER_MAJOR__ < 10
#error "gpurpc_client.h: CUDA 10 or newer is required, whose nvcc has __nanosleep"
#endif
/* nvcc. A volatile access is a relaxed access with system scope (PTX ISA, volatile operations). */
#define GPURPC_DETAIL_LANES 32
GPURPC_DETAIL_FN uint32_t gpurpc_lane_id(void) {
    uint32_t lane;
    __asm__("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}
GPURPC_DETAIL_INLINE_FN uint64_t gpurpc_lane_mask(void) { return __activemask(); }
/* Lanes of a mask that have the same value as this lane. */
GPURPC_DETAIL_INLINE_FN uint64_t gpurpc_detail_match(uint64_t mask, uint32_t value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    return __match_any_sync((uint32_t)mask, value);
#else
    (void)value;
    return mask;
#endif
}
GPURPC_DETAIL_FN uint64_t gpurpc_detail_ballot(uint64_t mask, int what) { return __ballot_sync((uint32_t)mask, what); }
GPURPC_DETAIL_FN void gpurpc_detail_sync(uint64_t mask) { __syncwarp((uint32_t)mask); }
GPURPC_DETAIL_FN uint32_t gpurpc_detail_load(const uint32_t *from) { return *(const volatile uint32_t *)from; }
GPURPC_DETAIL_FN void gpurpc_detail_store(uint32_t *to, uint32_t value) { *(volatile uint32_t *)to = value; }
GPURPC_DETAIL_FN void gpurpc_detail_fence(void) { __threadfence_system(); }
GPURPC_DETAIL_FN void gpurpc_detail_fence_device(void) { __threadfence(); }
GPURPC_DETAIL_FN uint32_t gpurpc_detail_set(uint32_t *word, uint32_t bits) { return atomicOr(word, bits); }
GPURPC_DETAIL_FN void gpurpc_detail_clear(uint32_t *word, uint32_t bits) { atomicAnd(word, ~bits); }
GPURPC_DETAIL_FN uint64_t gpurpc_detail_count(uint64_t *counter) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 600
    return atomicAdd_system((unsigned long long *)counter, 1ULL);
#else
    return atomicAdd((unsigned long long *)counter, 1ULL);
#endif
}
GPURPC_DETAIL_FN void gpurpc_detail_store_event(uint64_t *mailbox, uint64_t event) {
    *(volatile uint64_t *)mailbox = event;
}
GPURPC_DETAIL_FN void gpurpc_detail_pause(void) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    __nanosleep(64);
#endif
}

#else
/* gcc's atomic builtins, which clang also has, have system scope on devices. Relaxed accesses and fences are used, as in
 * LLVM's libc: clang 19 supports neither acquire loads nor fences of C11 for nvptx. */
#if defined(__NVPTX__)
/* Ballots have PTX 6.0, activemask 6.2, nanosleep 6.3 on sm_70. Older releases of clang, for CUDA only, lack the last two
 * builtins, which clang 19 has with their version of PTX. */
#if !__has_builtin(__nvvm_vote_ballot_sync) || \
    (__clang_major__ >= 19 && !__has_builtin(__nvvm_activemask)) || \
    (__clang_major__ >= 19 && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700 && !__has_builtin(__nvvm_nanosleep))
#error "gpurpc_client.h: clang generates PTX before 6.3: compile with -Xclang -target-feature -Xclang +ptx63 or later"
#endif
#define GPURPC_DETAIL_LANES 32
GPURPC_DETAIL_FN uint32_t gpurpc_lane_id(void) { return (uint32_t)__nvvm_read_ptx_sreg_laneid(); }
GPURPC_DETAIL_INLINE_FN uint64_t gpurpc_lane_mask(void) {
    uint32_t mask;
    __asm__ volatile("activemask.b32 %0;" : "=r"(mask));
    return mask;
}
/* Lanes of a mask that have the same value as this lane. */
GPURPC_DETAIL_INLINE_FN uint64_t gpurpc_detail_match(uint64_t mask, uint32_t value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    return (uint32_t)__nvvm_match_any_sync_i32((uint32_t)mask, value);
#else
    (void)value;
    return mask;
#endif
}
GPURPC_DETAIL_FN uint64_t gpurpc_detail_ballot(uint64_t mask, int what) {
    return (uint32_t)__nvvm_vote_ballot_sync((uint32_t)mask, what != 0);
}
GPURPC_DETAIL_FN void gpurpc_detail_sync(uint64_t mask) { __nvvm_bar_warp_sync((uint32_t)mask); }
GPURPC_DETAIL_FN void gpurpc_detail_pause(void) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    __asm__ volatile("nanosleep.u32 64;" ::: "memory");
#endif
}
#elif defined(__AMDGCN__)
#if !__has_builtin(__builtin_amdgcn_wavefrontsize)
#error "gpurpc_client.h: clang 19 or newer is required, as this one lacks __builtin_amdgcn_wavefrontsize"
#endif
#define GPURPC_DETAIL_LANES (uint32_t)__builtin_amdgcn_wavefrontsize()
GPURPC_DETAIL_FN uint32_t gpurpc_lane_id(void) {
    uint32_t below = __builtin_amdgcn_mbcnt_lo(~0u, 0u);
    return GPURPC_DETAIL_LANES == 64 ? __builtin_amdgcn_mbcnt_hi(~0u, below) : below;
}
GPURPC_DETAIL_INLINE_FN uint64_t gpurpc_lane_mask(void) { return __builtin_amdgcn_read_exec(); }
GPURPC_DETAIL_FN uint64_t gpurpc_detail_ballot(uint64_t mask, int what) {
    /* Covers all active lanes, which run in lockstep. 33 is the predicate "not equal". */
    return mask & __builtin_amdgcn_uicmp((uint32_t)(what != 0), 0u, 33);
}
GPURPC_DETAIL_FN void gpurpc_detail_sync(uint64_t mask) {
    (void)mask;
    __builtin_amdgcn_wave_barrier();
}
GPURPC_DETAIL_FN void gpurpc_detail_pause(void) { __builtin_amdgcn_s_sleep(2); }
#elif defined(__SPIRV__)
#if !__has_builtin(__builtin_spirv_subgroup_ballot)
#error "gpurpc_client.h: SPIR-V requires clang 22 or newer"
#endif
#define GPURPC_DETAIL_LANES (uint32_t)__builtin_spirv_subgroup_size()
GPURPC_DETAIL_FN uint32_t gpurpc_lane_id(void) { return (uint32_t)__builtin_spirv_subgroup_local_invocation_id(); }
GPURPC_DETAIL_FN uint64_t gpurpc_detail_ballot(uint64_t mask, int what) {
    /* Four words for 128 lanes. No device has more than 64. */
    uint32_t __attribute__((ext_vector_type(4))) lanes = __builtin_spirv_subgroup_ballot(what != 0);
    return mask & ((uint64_t)lanes[1] << 32 | lanes[0]);
}
GPURPC_DETAIL_INLINE_FN uint64_t gpurpc_lane_mask(void) { return gpurpc_detail_ballot(~UINT64_C(0), 1); }
/* clang has no barrier for a single subgroup: lanes are assumed to run in lockstep, as in LLVM's libc. */
GPURPC_DETAIL_FN void gpurpc_detail_sync(uint64_t mask) { (void)mask; }
GPURPC_DETAIL_FN void gpurpc_detail_pause(void) {}
#else
/* Tests define another number: threads of a host in place of a device with wider warps. */
#ifndef GPURPC_DETAIL_LANES
#define GPURPC_DETAIL_LANES 1
#endif
GPURPC_DETAIL_FN uint32_t gpurpc_lane_id(void) { return 0; }
GPURPC_DETAIL_INLINE_FN uint64_t gpurpc_lane_mask(void) { return 1; }
GPURPC_DETAIL_FN uint64_t gpurpc_detail_ballot(uint64_t mask, int what) { return what ? mask : 0; }
GPURPC_DETAIL_FN void gpurpc_detail_sync(uint64_t mask) { (void)mask; }
GPURPC_DETAIL_FN void gpurpc_detail_pause(void) {
/* Called between two polls, for example to yield to the serving thread. */
#ifdef GPURPC_PAUSE
    GPURPC_PAUSE();
#endif
}
#endif
#if defined(__NVPTX__)
GPURPC_DETAIL_FN void gpurpc_detail_fence(void) { __nvvm_membar_sys(); }
GPURPC_DETAIL_FN void gpurpc_detail_fence_device(void) { __nvvm_membar_gl(); }
#else
GPURPC_DETAIL_FN void gpurpc_detail_fence(void) { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
GPURPC_DETAIL_FN void gpurpc_detail_fence_device(void) { gpurpc_detail_fence(); }
/* Lanes of different branches do not meet in a function on devices that run in lockstep. Hosts have one lane. */
GPURPC_DETAIL_FN uint64_t gpurpc_detail_match(uint64_t mask, uint32_t value) {
    (void)value;
    return mask;
}
#endif
GPURPC_DETAIL_FN uint32_t gpurpc_detail_load(const uint32_t *from) { return __atomic_load_n(from, __ATOMIC_RELAXED); }
GPURPC_DETAIL_FN void gpurpc_detail_store(uint32_t *to, uint32_t value) { __atomic_store_n(to, value, __ATOMIC_RELAXED); }
GPURPC_DETAIL_FN uint32_t gpurpc_detail_set(uint32_t *word, uint32_t bits) {
    return __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
}
GPURPC_DETAIL_FN void gpurpc_detail_clear(uint32_t *word, uint32_t bits) {
    __atomic_fetch_and(word, ~bits, __ATOMIC_RELAXED);
}
GPURPC_DETAIL_FN uint64_t gpurpc_detail_count(uint64_t *counter) {
    return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}
GPURPC_DETAIL_FN void gpurpc_detail_store_event(uint64_t *mailbox, uint64_t event) {
    __atomic_store_n(mailbox, event, __ATOMIC_RELAXED);
}
#endif

/* Calls. */

/* Whether this lane is the first one of a mask. */
GPURPC_DETAIL_FN int gpurpc_detail_is_first(uint64_t mask) {
    return (mask & ((UINT64_C(1) << gpurpc_lane_id()) - 1)) == 0;
}

/* Waits until the client owns the packets. A GPU reads the mailboxes over its bus, and a fence waits for that: no more of
 * either than necessary. */
GPURPC_DETAIL_FN void gpurpc_detail_wait(gpurpc_call_t *call) {
    if (call->owned)
        return;
    while (gpurpc_detail_load(&call->client->inbox[call->port]) != call->outbox)
        gpurpc_detail_pause();
    gpurpc_detail_fence();
    gpurpc_detail_sync(call->mask);
    call->owned = 1;
}

/* Unlocks a port. The barrier and the fence behind it order the accesses of all lanes. */
GPURPC_DETAIL_FN void gpurpc_detail_unlock(gpurpc_client_t *client, uint32_t port, uint64_t mask) {
    gpurpc_detail_sync(mask);
    gpurpc_detail_fence_device();
    if (gpurpc_detail_is_first(mask))
        gpurpc_detail_clear(&client->lock[port / 32], UINT32_C(1) << (port % 32));
    gpurpc_detail_sync(mask);
}

#if GPURPC_CLIENT_LLVM >= 23
/* Counts an opened call and wakes the host for the first one, before the packets are filled. */
GPURPC_DETAIL_FN void gpurpc_detail_ring(const gpurpc_call_t *call) {
    const gpurpc_doorbell_t *doorbell = call->client->doorbell;
    if (!gpurpc_detail_is_first(call->mask) || doorbell->value == 0 || gpurpc_detail_count(doorbell->value) != 0)
        return;
    gpurpc_detail_store_event(doorbell->mailbox, doorbell->event_id);
    gpurpc_detail_fence();
#if defined(__AMDGCN__)
    /* Message 1 is an interrupt. */
    __builtin_amdgcn_s_sendmsg(1, (uint32_t)__builtin_amdgcn_readfirstlane((int)doorbell->event_id));
#endif
}
#endif

/* Begins a call of the lanes in `mask`. */
GPURPC_DETAIL_FN gpurpc_call_t gpurpc_detail_open(gpurpc_client_t *client, uint32_t opcode, uint64_t mask) {
    gpurpc_call_t call;
    uint32_t port = 0;
    call.client = client;
    call.mask = mask;
    call.received = 0;
    call.owned = 1;
    for (;;) {
        /* One lane locks the port for all of them. */
        int taken = 1;
        if (gpurpc_detail_is_first(call.mask)) {
            uint32_t bit = UINT32_C(1) << (port % 32);
            taken = (gpurpc_detail_set(&client->lock[port / 32], bit) & bit) != 0;
        }
        if (gpurpc_detail_ballot(call.mask, !taken) != 0) {
            uint32_t inbox;
            gpurpc_detail_fence_device();
            call.outbox = gpurpc_detail_load(&client->outbox[port]);
            inbox = gpurpc_detail_load(&client->inbox[port]);
            gpurpc_detail_fence();
            /* An earlier call may have ended without waiting for its answer, which may arrive now: lanes must agree. */
            if (gpurpc_detail_ballot(call.mask, inbox == call.outbox) == call.mask)
                break;
            gpurpc_detail_unlock(client, port, call.mask);
        }
        port = port + 1 < client->port_count ? port + 1 : 0;
        if (port == 0)
            gpurpc_detail_pause();
    }
    call.port = port;
    call.packet = &client->packet[(uint64_t)port * GPURPC_DETAIL_LANES + gpurpc_lane_id()];
    if (gpurpc_detail_is_first(call.mask)) {
        client->header[port].mask = call.mask;
        client->header[port].opcode = opcode;
    }
    gpurpc_detail_sync(call.mask);
#if GPURPC_CLIENT_LLVM >= 23
    gpurpc_detail_ring(&call);
    gpurpc_detail_sync(call.mask);
#endif
    return call;
}

/* Waits for a free port and begins a call of the active lanes with this opcode, which holds the port and uses `client` until
 * gpurpc_call_close or gpurpc_call_post. */
GPURPC_DETAIL_INLINE_FN gpurpc_call_t gpurpc_client_open(gpurpc_client_t *client, uint32_t opcode) {
    /* NVIDIA's GPUs run lanes together again when they reach a function from different branches (seen on an H200). Inlined,
     * the active lanes are those of one place in the program, and if that is in a function with the opcode as parameter,
     * those with the same opcode. */
    return gpurpc_detail_open(client, opcode, gpurpc_detail_match(gpurpc_lane_mask(), opcode));
}

/* Whether this lane is the first one of `lanes`: gpurpc_lane_is_first(gpurpc_lane_mask()) elects one of the active lanes. */
GPURPC_DETAIL_FN int gpurpc_lane_is_first(uint64_t lanes) {
    return (lanes & (~lanes + 1)) == UINT64_C(1) << gpurpc_lane_id();
}

/* As gpurpc_client_open, for a call of this lane alone, which waits for no other lane of its warp: in branches that some
 * lanes take, such as those that report an error. Lanes that run in lockstep would need a port each. They call one after the
 * other in a loop that all of them leave together:
 *
 *     for (uint64_t lanes = gpurpc_lane_mask(); lanes != 0; lanes &= lanes - 1)
 *         if (gpurpc_lane_is_first(lanes)) {
 *             gpurpc_call_t call = gpurpc_client_open_lane(client, OPCODE);
 *             gpurpc_call_fill(&call)->data[0] = error;
 *             gpurpc_call_post(&call);
 *         } */
GPURPC_DETAIL_FN gpurpc_call_t gpurpc_client_open_lane(gpurpc_client_t *client, uint32_t opcode) {
    return gpurpc_detail_open(client, opcode, UINT64_C(1) << gpurpc_lane_id());
}

/* Passes the filled packets to the host, which owns them from now on. */
GPURPC_DETAIL_FN void gpurpc_call_send(gpurpc_call_t *call) {
    call->outbox = !call->outbox;
    call->received = 0;
    call->owned = 0;
    gpurpc_detail_sync(call->mask);
    gpurpc_detail_fence();
    if (gpurpc_detail_is_first(call->mask))
        gpurpc_detail_store(&call->client->outbox[call->port], call->outbox);
    gpurpc_detail_sync(call->mask);
}

/* Waits until the packets can be filled, and returns the one of this lane with its last contents.
 * gpurpc_call_send follows. */
GPURPC_DETAIL_FN gpurpc_buffer_t *gpurpc_call_fill(gpurpc_call_t *call) {
    gpurpc_detail_wait(call);
    return call->packet;
}

/* Waits for packets of the host and returns the one of this lane, valid until the next function of the call. Waits
 * indefinitely if the host has dropped the call: no function of this header returns a status. */
GPURPC_DETAIL_FN gpurpc_buffer_t *gpurpc_call_recv(gpurpc_call_t *call) {
    /* Returns the previously received packets first. */
    if (call->received)
        gpurpc_call_send(call);
    gpurpc_detail_wait(call);
    call->received = 1;
    return call->packet;
}

/* Ends the call. Packets that the host has not received yet are received later. */
GPURPC_DETAIL_FN void gpurpc_call_close(gpurpc_call_t *call) {
    gpurpc_detail_unlock(call->client, call->port, call->mask);
}

/* Passes the filled packets to the host and ends the call, without waiting for an answer. The port carries another call when
 * the host has served this one; gpurpc_client_open uses other ports until then, and waits if there is none. A kernel may end
 * before its last calls are served: the host polls until it finds no more. */
GPURPC_DETAIL_FN void gpurpc_call_post(gpurpc_call_t *call) {
    gpurpc_call_send(call);
    gpurpc_call_close(call);
}

/* Position in bits of a byte of a word in memory. */
GPURPC_DETAIL_FN unsigned gpurpc_detail_shift(unsigned byte) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return 56 - 8 * byte;
#else
    return 8 * byte;
#endif
}

/* Sends a message of `size` bytes of each lane, whose sizes may differ, and copies it. Counterpart of
 * gpurpc_blocking_recv_n. */
GPURPC_DETAIL_FN void gpurpc_call_send_n(gpurpc_call_t *call, const void *message, uint64_t size) {
    const unsigned char *from = (const unsigned char *)message;
    uint64_t at = 0;
    unsigned word = 1;
    gpurpc_call_fill(call)->data[0] = size;
    do {
        gpurpc_buffer_t *packet = gpurpc_call_fill(call);
        /* By words: each store is a transaction of the bus. */
        for (; word < 8 && at < size; word++) {
            uint64_t bytes = 0;
            for (unsigned byte = 0; byte < 8 && at < size; byte++, at++)
                bytes |= (uint64_t)from[at] << gpurpc_detail_shift(byte);
            packet->data[word] = bytes;
        }
        gpurpc_call_send(call);
        word = 0;
    } while (gpurpc_detail_ballot(call->mask, at < size) != 0);
}

/* Receives a message for each lane, stores up to `room` bytes of it, and returns its size in bytes, which may be larger.
 * Counterpart of gpurpc_blocking_send_n. */
GPURPC_DETAIL_FN uint64_t gpurpc_call_recv_n(gpurpc_call_t *call, void *message, uint64_t room) {
    unsigned char *to = (unsigned char *)message;
    uint64_t size = gpurpc_call_recv(call)->data[0], at = 0;
    unsigned word = 1;
    for (;;) {
        for (; word < 8 && at < size; word++) {
            uint64_t bytes = call->packet->data[word];
            for (unsigned byte = 0; byte < 8 && at < size; byte++, at++)
                if (at < room)
                    to[at] = (unsigned char)(bytes >> gpurpc_detail_shift(byte));
        }
        if (gpurpc_detail_ballot(call->mask, at < size) == 0)
            return size;
        gpurpc_call_recv(call);
        word = 0;
    }
}

#endif
