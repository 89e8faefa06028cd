#include <string.h>

#include "check.h"

#include "api.h"

#define FILL(n) ((vector){n, n, n, n})

static int is_filled(vector got, vector expected) { return !memcmp(&got, &expected, sizeof got); }

int main(void)
{
    FIRST_AND_WARM(CHECK(trap_lanes(FILL(1), FILL(2), FILL(3), FILL(4), FILL(5), FILL(6), FILL(7), FILL(8)) == 32));
    FIRST_AND_WARM(CHECK(is_filled(trap_vector(FILL(1), FILL(2)), FILL(3))));
    PASSED();
}
