#include "check.h"

#include "api.h"

/* A register that functions of the variant preserve. */
#define SET_V24(number) __asm__ volatile("vsetvli t0, zero, e32, m1, ta, ma\n vmv.v.i v24, " #number ::: "t0", "v24")
#define GET_V24(vector) __asm__ volatile("vmv1r.v %0, v24" : "=vr"(vector))

static int is_filled(vint32m1_t vector, int number, size_t lanes)
{
    return __riscv_vcpop_m_b32(__riscv_vmseq_vx_i32m1_b32(vector, number, lanes), lanes) == lanes;
}

int main(void)
{
    size_t one = __riscv_vsetvlmax_e32m1(), two = __riscv_vsetvlmax_e32m2();
    size_t four = __riscv_vsetvlmax_e32m4(), eight = __riscv_vsetvlmax_e32m8();
    int all = (int)(one * 17); /* a mask, m1 twice, m2, m4 and m8 */
    FIRST_AND_WARM(CHECK(trap_lanes(__riscv_vmset_m_b32(one), __riscv_vmv_v_x_i32m1(8, one),
                                    __riscv_vmv_v_x_i32m1(9, one), __riscv_vmv_v_x_i32m2(10, two),
                                    __riscv_vmv_v_x_i32m4(12, four), __riscv_vmv_v_x_i32m8(16, eight)) == all));
    FIRST_AND_WARM(vint32m1_t kept; SET_V24(5);
                   vint32m1_t got = trap_vector(__riscv_vmv_v_x_i32m1(1, one), __riscv_vmv_v_x_i32m1(2, one));
                   GET_V24(kept); CHECK(is_filled(got, 3, one)); CHECK(is_filled(kept, 5, one)));
    PASSED();
}
