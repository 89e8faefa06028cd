// Included before each file of LLVM's client, which is compiled for a warp on the host.
#ifndef WARP_CLIENT_H
#define WARP_CLIENT_H

#include "warp.h"

// The client's fences are synchronization points of lanes.
#define __atomic_thread_fence(order) warp::fence(order)
#if LLVM_MAJOR == 19
#include "src/__support/CPP/atomic.h"
#include "src/__support/threads/sleep.h"
#include "src/string/memory_utils/inline_memcpy.h"
// For is_process_gpu: the other macros are about the machine, which is the host.
#define LIBC_TARGET_ARCH_IS_GPU
#include "src/__support/RPC/rpc_util.h"
#undef LIBC_TARGET_ARCH_IS_GPU
#define OPCODE(name) RPC_##name
#define TEST_OPCODE(name, number) ((1 << 15) + number)
#else
#define RPC_TARGET_IS_GPU
#include "gpuintrin.h"
#define OPCODE(name) LIBC_##name
#define TEST_OPCODE(name, number) LIBC_TEST_##name
#endif
#include "src/__support/RPC/rpc_client.h"
#undef __atomic_thread_fence

#endif
