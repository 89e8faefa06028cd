#include "check.h"

#include <string.h>

struct table {
    const char *text;
    const int *constant;
    char rest[24];
};
extern const int trap_constant;
extern const struct table trap_table;
extern int trap_state;
int trap_init(int state, int (*callback)(int *));
int trap_call_back(int state);
int trap_read(void);

/* Addresses in constant data: dynamic relocations of the program. Volatile, since compilers need not read a constant
 * again that was zero before. */
static const volatile int *const constant = &trap_constant;
static const volatile struct table *const table = &trap_table;
static volatile int *const state = &trap_state;

static int read_state(int *value)
{
    *value = *state;
    return 0;
}

int main(void)
{
    /* Zero until the first call. */
    CHECK(*constant == 0 && table->text == NULL);
    CHECK(trap_read() == 42);
    CHECK(*constant == 42 && trap_constant == 42);
    CHECK(!strcmp(table->text, "text") && *table->constant == 42);
    CHECK(table->rest[1] == 's' && table->rest[23] == 0);
    CHECK(*state == 0);
    CHECK(trap_init(1, NULL) == 0);
    CHECK(*state == 1);
    CHECK(trap_init(2, read_state) == 0);
    CHECK(*state == 2);
    /* A later call of the library reaches the callback, too. */
    CHECK(trap_call_back(3) == 0);
    PASSED();
}
