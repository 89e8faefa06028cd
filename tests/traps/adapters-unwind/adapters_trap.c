/* Adapters whose targets throw. */
#include "adapters.h"

static inline int thrown(targets to, int value)
{
    char temporary[1100]; /* the frame of the largest shipped adapter */
    memset(temporary, value, sizeof temporary);
    return FUNCTION(0, (int, const char *))(value, temporary);
}
ADAPTER(trap_throw, thrown, (int value), (to, value), NULL)

/* Passes arguments on the stack. */
static inline int called(targets to, int (*callback)(int), int argument, int *unwound)
{
    return FUNCTION(0, (int, int, int, int, int, int, int (*)(int), int, int *, int))(0, 1, 2, 3, 4, 5, callback, argument,
                                                                                  unwound, 9);
}
ADAPTER(trap_call, called, (int (*callback)(int), int argument, int *unwound), (to, callback, argument, unwound), NULL)
