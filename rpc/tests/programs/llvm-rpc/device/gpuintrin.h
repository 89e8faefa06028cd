// Functions of clang's <gpuintrin.h> that LLVM's rpc_util.h uses, for a warp on the host.
#ifndef WARP_GPUINTRIN_H
#define WARP_GPUINTRIN_H

#include "warp.h"

inline void __gpu_sync_lane(uint64_t mask) { warp::sync(mask); }
inline uint32_t __gpu_read_first_lane_u32(uint64_t mask, uint32_t value) { return warp::broadcast(mask, value); }
inline uint32_t __gpu_num_lanes() { return warp::lanes(); }
inline uint64_t __gpu_lane_mask() { return warp::mask(); }
inline uint32_t __gpu_lane_id() { return warp::lane(); }
inline bool __gpu_is_first_in_lane(uint64_t mask) { return __gpu_lane_id() == uint32_t(__builtin_ctzll(mask)); }
inline uint64_t __gpu_ballot(uint64_t mask, bool what) { return warp::ballot(mask, what); }

#endif
