// Start-up code of a program for GPUs, for fake-gpu.h: the kernels of LLVM 22's libc around the `main` of one of its
// tests. The test's arrays of constructors and destructors are in sections with other names, so that the host's loader
// does not run them.
#include "src/__support/RPC/rpc_client.h"

namespace LIBC_NAMESPACE_DECL {
namespace rpc {
[[gnu::visibility("default")]] Client client;
}
} // namespace LIBC_NAMESPACE_DECL

typedef void action(void);
#define ARRAY(name)                                                                                                    \
    extern "C" [[gnu::weak, gnu::visibility("hidden")]] action *__start_##name[];                                      \
    extern "C" [[gnu::weak, gnu::visibility("hidden")]] action *__stop_##name[];
ARRAY(gpu_init_101)
ARRAY(gpu_init)
ARRAY(gpu_fini)
ARRAY(gpu_fini_101)

static void run(action **first, action **last)
{
    while (first != last)
        (*first++)();
}

static void run_backwards(action **first, action **last)
{
    while (last != first)
        (*--last)();
}

static struct {
    void (*run)(void *);
    void *object;
} at_exit[16];
static int at_exit_count;

extern "C" {
unsigned (*fake_thread)(void);
int main(int argc, char **argv, char **envp);

// Destructors of objects.
int __cxa_atexit(void (*run)(void *), void *object, void *)
{
    if (at_exit_count == sizeof at_exit / sizeof *at_exit)
        return -1;
    at_exit[at_exit_count++] = {run, object};
    return 0;
}
void *__dso_handle;

// The loader launches these kernels first and last: `_end` has no parameters, as its descriptor says.
extern const unsigned end_descriptor[16] asm("_end.kd");
const unsigned end_descriptor[16] = {0, 0, 256};
int end_takes_nothing;

#define KERNEL(name, symbol)                                                                                           \
    void name() asm(symbol);                                                                                           \
    void name()
KERNEL(init, "amdgcn.device.init")
{
    run(__start_gpu_init_101, __stop_gpu_init_101);
    run(__start_gpu_init, __stop_gpu_init);
}
KERNEL(fini, "amdgcn.device.fini")
{
    run_backwards(__start_gpu_fini, __stop_gpu_fini);
    run_backwards(__start_gpu_fini_101, __stop_gpu_fini_101);
}

void _begin(int, char **, char **) {}

void _start(int argc, char **argv, char **envp, int *result)
{
    __atomic_fetch_or(result, main(argc, argv, envp), __ATOMIC_RELAXED);
}

void _end()
{
    while (at_exit_count > 0) {
        at_exit_count--;
        at_exit[at_exit_count].run(at_exit[at_exit_count].object);
    }
}
}
