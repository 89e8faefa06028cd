/* layouts.h: structs of the library, as the headers of 1.0 and 1.5 have them. */
#ifndef LAYOUTS_H
#define LAYOUTS_H

#include <stdint.h>

struct old_properties {
    char name[5];
    int32_t clock; /* after three bytes of padding; an attribute since 1.5 */
    int64_t memory;
    int32_t reserved[2];
};

struct new_properties {
    int64_t memory;
    char name[5];
    int32_t cores;
    int32_t reserved[6];
};

/* Struct by value of one register. */
struct location {
    int32_t type, id;
};

enum { TRAP_OK, TRAP_INVALID = 5, TRAP_NOT_SUPPORTED = 801 };
enum { ATTRIBUTE_CLOCK = 13 };

#endif
