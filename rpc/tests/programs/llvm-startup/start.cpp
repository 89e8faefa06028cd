// Start-up code of LLVM's start-up tests (libc/test/integration/startup/gpu) on the fake GPU of ../loader/fake-gpu.h, with the
// kernels of libc/startup/gpu/start.cpp. A thread of the fake GPU runs a warp: WARP_LANES fibers of ../llvm-rpc/device, which
// run in lockstep and cannot diverge.
#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "run.h"
#include "src/__support/GPU/utils.h"
#include "src/__support/RPC/rpc_client.h"

extern "C" {
unsigned (*fake_thread)();
unsigned (*fake_block_size)();
// _end has no parameters since LLVM 22.
int end_takes_nothing;
int test_main(int argc, char **argv, char **envp);
}

namespace LIBC_NAMESPACE_DECL {
namespace rpc {
[[gnu::visibility("protected")]] Client client;
} // namespace rpc

namespace gpu {
uint64_t get_thread_id() { return fake_thread() % fake_block_size() + get_lane_id(); }
uint64_t get_block_id() { return fake_thread() / fake_block_size(); }
uint64_t get_num_threads() { return fake_block_size(); }
} // namespace gpu
} // namespace LIBC_NAMESPACE_DECL

// Destructors of global objects run in _end, as in LLVM's libc, and not when the library is closed.
namespace {
struct Destructor {
    void (*run)(void *);
    void *object;
};
Destructor destructors[16];
unsigned destructor_count;
} // namespace

extern "C" {
[[gnu::visibility("hidden")]] void *__dso_handle;

[[gnu::visibility("hidden")]] int __cxa_atexit(void (*run)(void *), void *object, void *) {
    if (destructor_count == std::size(destructors))
        std::abort();
    destructors[destructor_count++] = {run, object};
    return 0;
}

void _begin(int, char **, char **) {}

void _start(int argc, char **argv, char **envp, int *result) {
    const char *text = std::getenv("WARP_LANES");
    unsigned lanes = text ? static_cast<unsigned>(std::atoi(text)) : 1;
    unsigned first = fake_thread() % fake_block_size();
    // The first thread of a warp runs all of its lanes.
    if (first % lanes != 0)
        return;
    unsigned active = std::min(lanes, fake_block_size() - first);
    uint64_t mask = ~uint64_t(0) >> (64 - active);
    warp::run(lanes, {mask},
              [=](uint32_t) { __atomic_fetch_or(result, test_main(argc, argv, envp), __ATOMIC_RELAXED); });
}

void _end() {
    while (destructor_count > 0) {
        Destructor &last = destructors[--destructor_count];
        last.run(last.object);
    }
}
}
