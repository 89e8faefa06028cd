#include "api.h"

#define LANES(length, vector, number)                                                                          \
    (int)__riscv_vcpop_m_b##length(                                                                            \
        __riscv_vmseq_vx_i32##vector##_b##length(v##number, number, __riscv_vsetvlmax_e32##vector()),          \
        __riscv_vsetvlmax_e32##vector())

__attribute__((riscv_vector_cc)) int trap_lanes(vbool32_t v0, vint32m1_t v8, vint32m1_t v9, vint32m2_t v10,
                                                vint32m4_t v12, vint32m8_t v16)
{
    return (int)__riscv_vcpop_m_b32(v0, __riscv_vsetvlmax_e32m1()) + LANES(32, m1, 8) + LANES(32, m1, 9) +
           LANES(16, m2, 10) + LANES(8, m4, 12) + LANES(4, m8, 16);
}

__attribute__((riscv_vector_cc)) vint32m1_t trap_vector(vint32m1_t v8, vint32m1_t v9)
{
    return __riscv_vadd_vv_i32m1(v8, v9, __riscv_vsetvlmax_e32m1());
}

/* A constructor may use all registers, at any vector type. */
__attribute__((constructor)) static void use_vectors(void)
{
    __asm__ volatile("vsetvli t0, zero, e8, m8, ta, ma\n vmv.v.i v0, 0\n vmv.v.i v8, 0\n vmv.v.i v16, 0\n"
                     "vmv.v.i v24, 0" ::
                         : "t0", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
                           "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25",
                           "v26", "v27", "v28", "v29", "v30", "v31");
}
