/* Results of functions that return structs, and out-parameters beside them, while the library is missing. */
#include <string.h>

#include "check.h"

struct single { float x; };
struct three { char c[3]; };
struct eight { int a, b; };
struct twelve { int i[3]; };
struct floats { float x, y, z; };
struct pair { double x, y; };
struct large { long long v[3]; };
struct points { double x, y, z; };

struct single trap_single(void);
struct three trap_three(void);
struct eight trap_eight(void);
struct twelve trap_twelve(int *out);
struct floats trap_floats(void);
struct pair trap_pair(int a, int *out);
struct large trap_large(int *out);
struct points trap_points(void);
int trap_mixed(double x, int a, struct pair p, int *out);

static int is_zero(const void *bytes, size_t size)
{
    static const char zeros[64];
    return !memcmp(bytes, zeros, size);
}

#define CHECK_ZERO(type, call)                \
    do {                                      \
        struct type value;                    \
        memset(&value, 0xAA, sizeof value);   \
        value = call;                         \
        CHECK(is_zero(&value, sizeof value)); \
    } while (0)

int main(void)
{
    for (int call = 0; call < 2; call++) {
        int twelve = 7, pair = 7, large = 7;
        CHECK_ZERO(single, trap_single());
        CHECK_ZERO(three, trap_three());
        CHECK_ZERO(eight, trap_eight());
        CHECK_ZERO(twelve, trap_twelve(&twelve));
        CHECK_ZERO(floats, trap_floats());
        CHECK_ZERO(pair, trap_pair(1, &pair));
        CHECK_ZERO(large, trap_large(&large));
        CHECK_ZERO(points, trap_points());
        CHECK(!twelve && !pair && !large);
#ifdef MIXED
        int mixed = 7;
        struct pair argument = {1, 2};
        CHECK(trap_mixed(1, 2, argument, &mixed) == 77 && !mixed);
#endif
    }
    PASSED();
}
