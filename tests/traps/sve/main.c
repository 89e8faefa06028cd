#include "check.h"

#include "api.h"

int main(void)
{
    int all = (int)svcntw();
    /* The first three predicates are whole, the last has one lane. */
    FIRST_AND_WARM(CHECK(trap_lanes(svptrue_b32(), svptrue_b32(), svptrue_b32(), svwhilelt_b32(0, 1),
                                    svdup_s32(1), svdup_s32(2), svdup_s32(3), svdup_s32(4), svdup_s32(5),
                                    svdup_s32(6), svdup_s32(7), svdup_s32(8)) == 6 * all + 2));
    FIRST_AND_WARM(svint32_t got = trap_vector(svdup_s32(1), svdup_s32(2));
                   CHECK((int)svcntp_b32(svptrue_b32(), svcmpeq_n_s32(svptrue_b32(), got, 3)) == all));
    PASSED();
}
