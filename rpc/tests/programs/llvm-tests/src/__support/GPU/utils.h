// Replaces the header of LLVM's libc, for threads of fake-gpu.h: warps of one lane. THREADS: those of a block.
#ifndef LLVM_TESTS_GPU_UTILS_H
#define LLVM_TESTS_GPU_UTILS_H

#include <pthread.h>
#include <stdint.h>

#include "src/__support/macros/config.h"

extern "C" unsigned (*fake_thread)(void);

namespace LIBC_NAMESPACE_DECL {
namespace gpu {
inline uint32_t get_lane_size() { return 1; }
inline uint32_t get_lane_id() { return 0; }
inline uint64_t get_num_threads() { return THREADS; }
inline uint64_t get_thread_id() { return fake_thread() % THREADS; }
inline uint64_t get_block_id() { return fake_thread() / THREADS; }
[[noreturn]] inline void end_program() { pthread_exit(nullptr); }
} // namespace gpu
} // namespace LIBC_NAMESPACE_DECL

#endif
