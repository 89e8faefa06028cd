// A warp on the host: its lanes are fibers of one thread, which take turns where lanes of a GPU meet. LLVM's
// client, compiled as it is for GPUs, runs on it with as many lanes as a GPU has, and with any of them.
#ifndef WARP_H
#define WARP_H

#include <stdint.h>

namespace warp {
// This lane's number, how many there are, and those that this one has not diverged from.
uint32_t lane();
uint32_t lanes();
uint64_t mask();

// These wait for the lanes of the mask.
void sync(uint64_t mask);
uint64_t ballot(uint64_t mask, bool what);
uint32_t broadcast(uint64_t mask, uint32_t value);

// Lanes run in lockstep: all have done what comes before a fence when the first one goes on. LLVM's client
// counts on it, and sends what all lanes have filled in.
void fence(int order);

// Ends this lane.
[[noreturn]] void end();
} // namespace warp

#endif
