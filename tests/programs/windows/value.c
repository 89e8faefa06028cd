/* Prints the value of the library, and what gpustub.h says about the library. */
#include <stdio.h>

#include "gpustub.h"

int trap_value(void);

int main(void)
{
    const char *path = gpustub_path("trap");
    printf("value %d, available %d, functions %d %d, path %s, reason: %s\n", trap_value(),
           gpustub_is_available("trap"), gpustub_has_function("trap", "trap_value"),
           gpustub_has_function("trap", "trap_other"), path ? path : "none", gpustub_reason("trap"));
    return 0;
}
