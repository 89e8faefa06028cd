/* Data that programs read: constants, and a state that changes before the library calls a function of the program. */
#include <stddef.h>

const int trap_constant = 42;

static const char text[] = "text";
struct table {
    const char *text;
    const int *constant;
    char rest[24];
};
const struct table trap_table = {text, &trap_constant, {'r', 's'}};

int trap_state;

static int (*handler)(int *state);

int trap_init(int state, int (*callback)(int *))
{
    int seen = -1;
    trap_state = state;
    handler = callback;
    return callback ? callback(&seen) + (seen != state) : 0;
}

int trap_call_back(int state)
{
    int seen = -1;
    trap_state = state;
    return handler(&seen) + (seen != state);
}

int trap_read(void)
{
    return trap_constant;
}
