#include "api.h"

static int lanes(vector v, int expected)
{
    int count = 0;
    for (int i = 0; i < 4; i++)
        count += v[i] == expected;
    return count;
}

int trap_lanes(vector v0, vector v1, vector v2, vector v3, vector v4, vector v5, vector v6, vector v7)
{
    return lanes(v0, 1) + lanes(v1, 2) + lanes(v2, 3) + lanes(v3, 4) + lanes(v4, 5) + lanes(v5, 6) +
           lanes(v6, 7) + lanes(v7, 8);
}

vector trap_vector(vector v0, vector v1) { return v0 + v1; }

/* Loading a library runs code that uses vectors: here all of them. */
__attribute__((constructor)) static void use_vectors(void)
{
#if defined(__powerpc64__)
    __asm__ volatile("vspltisw 2,-1\n vspltisw 3,-1\n vspltisw 4,-1\n vspltisw 5,-1\n vspltisw 6,-1\n"
                     "vspltisw 7,-1\n vspltisw 8,-1\n vspltisw 9,-1\n vspltisw 10,-1\n" ::
                         : "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10");
#elif defined(__s390x__)
    __asm__ volatile("vgbm %%v24,65535\n vgbm %%v25,65535\n vgbm %%v26,65535\n vgbm %%v27,65535\n"
                     "vgbm %%v28,65535\n vgbm %%v29,65535\n vgbm %%v30,65535\n vgbm %%v31,65535\n" ::
                         : "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
#elif defined(__arm__)
    __asm__ volatile("vmov.i32 q0,#255\n vmov.i32 q1,#255\n vmov.i32 q2,#255\n vmov.i32 q3,#255\n" ::
                         : "q0", "q1", "q2", "q3");
#elif defined(__i386__)
    __asm__ volatile("pcmpeqd %%xmm0,%%xmm0\n pcmpeqd %%xmm1,%%xmm1\n pcmpeqd %%xmm2,%%xmm2\n" ::
                         : "xmm0", "xmm1", "xmm2");
#endif
}
