#include "api.h"

static int lanes(svbool_t active, svint32_t vector, int expected)
{
    return (int)svcntp_b32(active, svcmpeq_n_s32(active, vector, expected));
}

int trap_lanes(svbool_t p0, svbool_t p1, svbool_t p2, svbool_t p3, svint32_t z0, svint32_t z1,
               svint32_t z2, svint32_t z3, svint32_t z4, svint32_t z5, svint32_t z6, svint32_t z7)
{
    return lanes(p0, z0, 1) + lanes(p1, z1, 2) + lanes(p2, z2, 3) + lanes(p3, z3, 4) + lanes(p0, z4, 5) +
           lanes(p1, z5, 6) + lanes(p2, z6, 7) + lanes(p3, z7, 8);
}

svint32_t trap_vector(svint32_t z0, svint32_t z1) { return svadd_s32_x(svptrue_b32(), z0, z1); }

__attribute__((constructor)) static void use_vectors(void)
{
    __asm__ volatile("mov z0.d, #0\n mov z1.d, #0\n mov z2.d, #0\n mov z3.d, #0\n"
                     "mov z4.d, #0\n mov z5.d, #0\n mov z6.d, #0\n mov z7.d, #0\n"
                     "pfalse p0.b\n pfalse p1.b\n pfalse p2.b\n pfalse p3.b\n" ::
                         : "z0", "z1", "z2", "z3", "z4", "z5", "z6", "z7", "p0", "p1", "p2", "p3");
}
