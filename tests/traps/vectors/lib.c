#include "api.h"

static int lanes(vector v, int expected)
{
    int buffer[sizeof(vector) / sizeof(int)], count = 0;
    __builtin_memcpy(buffer, &v, sizeof v);
    for (unsigned i = 0; i < sizeof buffer / sizeof *buffer; i++) {
        count += buffer[i] == expected;
    }
    return count;
}

int trap_lanes(vector v0, vector v1, vector v2, vector v3, vector v4, vector v5, vector v6, vector v7)
{
    return lanes(v0, 1) + lanes(v1, 2) + lanes(v2, 3) + lanes(v3, 4) + lanes(v4, 5) + lanes(v5, 6) +
           lanes(v6, 7) + lanes(v7, 8);
}

vector trap_vector(vector v0, vector v1) { return v0 + v1; }

/* Loading a library runs code that uses vectors: here all of them, up to their full width. */
__attribute__((constructor)) static void use_vectors(void)
{
#ifdef __AVX512F__
    __asm__ volatile("vpternlogd $255, %%zmm0, %%zmm0, %%zmm0\n"
                     "vmovdqa64 %%zmm0, %%zmm1\n vmovdqa64 %%zmm0, %%zmm2\n vmovdqa64 %%zmm0, %%zmm3\n"
                     "vmovdqa64 %%zmm0, %%zmm4\n vmovdqa64 %%zmm0, %%zmm5\n vmovdqa64 %%zmm0, %%zmm6\n"
                     "vmovdqa64 %%zmm0, %%zmm7\n vmovdqa64 %%zmm0, %%zmm16\n" ::
                         : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm16");
#endif
    __asm__ volatile("vzeroall" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
}
