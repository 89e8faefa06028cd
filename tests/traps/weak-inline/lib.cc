#include "api.h"

/* A weak C function is an ordinary part of an API (half of NCCL's are weak). */
extern "C" __attribute__((weak)) int trap_weak(int n) { return n + 1; }

extern "C" int trap_greet(const char *name)
{
    inline_counter();
    return (int)Names().greet(name).size();
}
