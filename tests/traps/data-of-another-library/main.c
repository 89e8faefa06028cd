#include "check.h"

#include <string.h>

extern const int trap_function;
extern int trap_local;
extern const char trap_shorter[40], trap_longer[8];
int trap_init(void);

static const volatile int *const function = &trap_function;
static volatile int *const local = &trap_local;

int main(void)
{
    static const char zeros[40];
    CHECK(trap_init() == 42);
    CHECK(*function == 0 && *local == 0);
    CHECK(!strcmp((const char *)trap_shorter, "shorter"));
    CHECK(!memcmp(trap_shorter + 8, zeros, sizeof trap_shorter - 8));
    CHECK(!memcmp(trap_longer, "longer, ", sizeof trap_longer));
    PASSED();
}
