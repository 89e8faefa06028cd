#include <riscv_vector.h>

/* Functions of the standard vector calling convention variant: v0 carries a mask, v8-v23 vectors (riscv-elf-psabi-doc,
 * riscv-cc.adoc). Returns the number of lanes that hold the vector's own number, and of lanes in the mask. */
__attribute__((riscv_vector_cc)) int trap_lanes(vbool32_t v0, vint32m1_t v8, vint32m1_t v9, vint32m2_t v10,
                                                vint32m4_t v12, vint32m8_t v16);

__attribute__((riscv_vector_cc)) vint32m1_t trap_vector(vint32m1_t v8, vint32m1_t v9);
