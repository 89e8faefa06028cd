/* parts.c: the parts of this image, from all packages that bring stubs into it. */
#include "internal.h"

/* Returns whether an earlier part has the same slots. A linker that sorts sections by name moves the slots
 * of objects with equal tables together (elf_table.h). Both bounds count: an empty range may begin where
 * the next object's does. */
static int is_repeated(const struct part *part)
{
    for (const struct part *other = FIRST_PART; other < part; other++)
        if (other->library == part->library && other->first == part->first &&
            other->last == part->last)
            return 1;
    return 0;
}

/* Returns the next part of a library (NULL: of any library); `after` NULL: the first one. NULL: none left. */
struct part *next_part(const struct library_state *state, const struct part *after)
{
    struct part *part = after ? (struct part *)after + 1 : FIRST_PART;
    for (; part < END_OF_PARTS; part++)
        if (part->library && (!state || part->library->state == state) && !is_repeated(part))
            return part;
    return NULL;
}

/* Returns the declaration of a library with which it is searched: the first one with stubs. */
const struct library *first_library(const struct library_state *state)
{
    const struct library *first = NULL;
    FOR_EACH_PART (part, state) {
        if (part->library->stubbed)
            return part->library;
        if (!first)
            first = part->library;
    }
    return first;
}

/* Returns the number of functions of a library that this image uses. */
int slot_count(const struct library_state *state)
{
    long count = 0;
    FOR_EACH_PART (part, state)
        count += part->last - part->first;
    return (int)count;
}
