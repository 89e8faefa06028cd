#include "check.h"

#include "api.h"

int main(void)
{
    FIRST_AND_WARM(CHECK(trap_many(1, 2, 3, 4, 1.0, 5, 2.0f, 6, 7, 8, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0,
                                   9, 10, 11, 12, 11.0, 13) == 819 + 506));

    struct two_words words = {1, 2};
    struct mixed mixed = {3, 4};
    struct floats floats = {1, 2, 3, 4};
    struct large large = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
    struct small small = {{1, 2, 3}};
    FIRST_AND_WARM(CHECK(trap_structs(words, mixed, floats, large, small, words, mixed) ==
                         5 + 9 + 16 + 150 + 6 + 63 + 8 + 27 + 10 + 22 + 36 + 52));

    FIRST_AND_WARM(struct large made = trap_make_large(10, large);
                   for (int i = 0; i < 9; i++) CHECK(made.value[i] == i + 1 + 10 * i););
    FIRST_AND_WARM(struct mixed made = trap_make_mixed(1.5, 7); CHECK(made.x == 3 && made.n == 21););
    FIRST_AND_WARM(struct floats made = trap_make_floats(10, floats);
                   CHECK(made.x == 14 && made.y == 13 && made.z == 12 && made.w == 11););
    FIRST_AND_WARM(CHECK(trap_long_double(1.25L, 4, 0.5L) == 4.5L));
    /* More bits than a double has. */
#if __LDBL_MANT_DIG__ > 60
    FIRST_AND_WARM(CHECK(trap_long_double(1.0L + 0x1p-60L, 1, 1.0L) == 0x1p-60L));
#endif
#ifdef __SIZEOF_INT128__
    FIRST_AND_WARM(CHECK(trap_int128((__int128)3 << 80, 5, 7) == ((__int128)15 << 80) + 7));
#endif
    FIRST_AND_WARM(CHECK(trap_complex(1 + 2 * I, 3 + 4 * I) == -5 + 10 * I));
    FIRST_AND_WARM(CHECK(trap_long_complex(1 + 2 * I) == -2 + 1 * I));
    FIRST_AND_WARM(CHECK(trap_float(7) == 3.5f));
    FIRST_AND_WARM(CHECK(trap_bool(-1, 1)); CHECK(!trap_bool(1, 1)));
    PASSED();
}
