// Included before each file of LLVM's client, which is compiled for a warp on the host.
#ifndef WARP_CLIENT_H
#define WARP_CLIENT_H

#include "warp.h"

// Until LLVM 22 the client's fences are synchronization points of lanes. Later ones synchronize before their fences.
#if LLVM_MAJOR < 23
#define __atomic_thread_fence(order) warp::fence(order)
#define CLOSE(port) port.close()
#else
// Destructors close ports.
#define CLOSE(port) static_cast<void>(port)
#endif
#if LLVM_MAJOR == 19
#include "src/__support/CPP/atomic.h"
#include "src/__support/threads/sleep.h"
#include "src/string/memory_utils/inline_memcpy.h"
// For is_process_gpu: the other macros are about the machine, which is the host.
#define LIBC_TARGET_ARCH_IS_GPU
#include "src/__support/RPC/rpc_util.h"
#undef LIBC_TARGET_ARCH_IS_GPU
#define OPCODE(name) RPC_##name
#define TEST_OPCODE(number) ((1 << 15) + number)
#else
#define RPC_TARGET_IS_GPU
#include "gpuintrin.h"
#define OPCODE(name) LIBC_##name
// LLVM 22's LIBC_TEST_INCREMENT, LIBC_TEST_INTERFACE and LIBC_TEST_STREAM, which 21 declares elsewhere.
#define TEST_OPCODE(number) (uint32_t('c') << 24 | ((1 << 15) + number))
#endif
#include "src/__support/RPC/rpc_client.h"
#undef __atomic_thread_fence

#endif
