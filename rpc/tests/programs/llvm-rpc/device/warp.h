// A warp on the host: its lanes are fibers of one thread, which switch at the synchronization points of a GPU's
// lanes. LLVM's client, compiled as for GPUs, runs on it with as many lanes as a GPU has, and with any of them.
#ifndef WARP_H
#define WARP_H

#include <stdint.h>

namespace warp {
// Number of this lane, number of lanes, and mask of the lanes that this one has not diverged from.
uint32_t lane();
uint32_t lanes();
uint64_t mask();

// Synchronize the lanes of the mask.
void sync(uint64_t mask);
uint64_t ballot(uint64_t mask, bool what);
uint32_t broadcast(uint64_t mask, uint32_t value);

// Runs lanes in lockstep: all have executed the code before a fence when the first one continues. LLVM's client
// relies on that, and sends the packets that all lanes have filled.
void fence(int order);

// Lets other lanes and other threads of the host run, while this one waits for the host.
void pause();

// Ends this lane.
[[noreturn]] void end();
} // namespace warp

#endif
