#include "run.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sched.h>
#include <ucontext.h>

namespace warp {
namespace {
struct Lane {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    // The lanes that this one has not diverged from.
    uint64_t mask = 0;
    // Number of meetings with them, and the values of the last two: no other lane is further ahead.
    uint64_t meetings = 0;
    uint64_t given[2] = {};
    bool running = false;
};

struct Warp {
    std::vector<Lane> lanes;
    uint32_t current = 0;
    ucontext_t scheduler;
    std::function<void(uint32_t)> program;

    Lane &self() { return lanes[current]; }
};

// The warp of this thread.
thread_local Warp *here = nullptr;

// Lets other lanes run.
void rest() {
    Warp *warp = here;
    swapcontext(&warp->self().context, &warp->scheduler);
}

// Waits for the lanes of a mask. Then each can read the values of the others.
void meet(uint64_t mask, uint64_t given) {
    Lane &lane = here->self();
    if (mask != lane.mask) {
        std::fprintf(stderr, "lanes of %llx meet those of %llx\n", (unsigned long long)lane.mask,
                     (unsigned long long)mask);
        std::abort();
    }
    lane.given[++lane.meetings & 1] = given;
    for (uint32_t other = 0; other < lanes(); other++)
        while (mask >> other & 1 && here->lanes[other].meetings < lane.meetings)
            rest();
}

uint64_t given_by(uint32_t lane) { return here->lanes[lane].given[here->self().meetings & 1]; }

void begin() {
    here->program(here->current);
    end();
}

void start(Lane &lane, uint64_t mask) {
    constexpr size_t STACK = 256 << 10;
    lane.stack.reset(new char[STACK]);
    lane.mask = mask;
    lane.running = true;
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = lane.stack.get();
    lane.context.uc_stack.ss_size = STACK;
    makecontext(&lane.context, begin, 0);
}
} // namespace

uint32_t lane() { return here->current; }
uint32_t lanes() { return static_cast<uint32_t>(here->lanes.size()); }
uint64_t mask() { return here->self().mask; }

void sync(uint64_t mask) { meet(mask, 0); }

uint64_t ballot(uint64_t mask, bool what) {
    meet(mask, what);
    uint64_t bits = 0;
    for (uint32_t lane = 0; lane < lanes(); lane++)
        if (mask >> lane & 1 && given_by(lane))
            bits |= uint64_t(1) << lane;
    return bits;
}

uint32_t broadcast(uint64_t mask, uint32_t value) {
    meet(mask, value);
    return static_cast<uint32_t>(given_by(static_cast<uint32_t>(__builtin_ctzll(mask))));
}

void fence(int) {
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
    meet(mask(), 0);
}

void pause() { rest(); }

void end() {
    here->self().running = false;
    rest();
    std::abort();
}

void run(uint32_t lanes, const std::vector<uint64_t> &masks, std::function<void(uint32_t)> program) {
    Warp warp;
    warp.lanes = std::vector<Lane>(lanes);
    warp.program = std::move(program);
    here = &warp;
    for (uint64_t mask : masks)
        for (uint32_t n = 0; n < lanes; n++)
            if (mask >> n & 1)
                start(warp.lanes[n], mask);
    for (bool running = true; running; sched_yield()) {
        running = false;
        for (warp.current = 0; warp.current < lanes; warp.current++)
            if (warp.self().running) {
                running = true;
                swapcontext(&warp.scheduler, &warp.self().context);
            }
    }
    here = nullptr;
}
} // namespace warp
