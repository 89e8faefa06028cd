// Replaces the header of LLVM's libc, for a warp on the host: the functions that the client's files use.
#ifndef WARP_GPU_UTILS_H
#define WARP_GPU_UTILS_H

#include "gpuintrin.h"
#include "src/__support/macros/config.h"

namespace LIBC_NAMESPACE_DECL {
namespace gpu {
inline uint32_t get_lane_size() { return __gpu_num_lanes(); }
inline uint32_t get_lane_id() { return __gpu_lane_id(); }
inline uint64_t get_lane_mask() { return __gpu_lane_mask(); }
inline uint32_t broadcast_value(uint64_t mask, uint32_t value) { return warp::broadcast(mask, value); }
inline uint64_t ballot(uint64_t mask, bool what) { return warp::ballot(mask, what); }
inline void sync_lane(uint64_t mask) { warp::sync(mask); }
inline bool is_first_lane(uint64_t mask) { return __gpu_is_first_in_lane(mask); }
inline uint32_t get_cluster_id() { return 0; }
[[noreturn]] inline void end_program() { warp::end(); }
// For programs with threads of a launch: ../llvm-startup/start.cpp.
uint64_t get_thread_id();
uint64_t get_block_id();
uint64_t get_num_threads();
} // namespace gpu
} // namespace LIBC_NAMESPACE_DECL

#endif
