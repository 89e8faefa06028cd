// Runs warps: see warp.h.
#ifndef WARP_RUN_H
#define WARP_RUN_H

#include <functional>
#include <vector>

#include "warp.h"

namespace warp {
// Runs a program on the lanes of some masks, which diverge from the beginning. The program is called with the
// lane's number.
void run(uint32_t lanes, const std::vector<uint64_t> &masks, std::function<void(uint32_t)> program);
} // namespace warp

#endif
