/* Adapters of the trap library: what each shape of the shipped ones needs. */
#include "adapters_words.h"
#include "layouts.h"

/* Gains stack arguments on both machines. */
static inline int gain(targets to, int a, long b, int c)
{
    return FUNCTION(0, (int, long, int, int, int, int, int, int, long, int))(a, b, c, 4, 5, 6, 7, -8, 9, 10);
}
ADAPTER(trap_gain, gain, (int a, long b, int c), (to, a, b, c), NULL)

/* Loses stack arguments; those of 32 bits have no defined upper half. */
static inline int lose(targets to, int a, int b, int c, int d, int e, int f, int g, int h, long i)
{
    const long all[] = {a, b, c, d, e, f, g, h, i};
    return FUNCTION(0, (const long *, int))(all, sizeof all / sizeof *all);
}
ADAPTER(trap_lose, lose, (int a, int b, int c, int d, int e, int f, int g, int h, long i),
        (to, a, b, c, d, e, f, g, h, i), NULL)

/* Integers and pointers of any size as words, in registers and on the stack. */
static inline int words(targets to, call_function *call, const char *order, const word *words)
{
    return reordered(to, call, order, words);
}
WORDS_ADAPTER(trap_words, words, 11, 13, "abcdefghijkik", NULL)

static inline int by_value(targets to, const void *pointer, int device)
{
    struct location location = {device < 0 ? 2 : 1, device};
    return FUNCTION(0, (const void *, struct location, unsigned))(pointer, location, 0);
}
ADAPTER(trap_by_value, by_value, (const void *pointer, int device), (to, pointer, device), NULL)

static inline int of_value(targets to, const void *pointer, struct location location, int flags)
{
    if (location.type != 1 && location.type != 2)
        return TRAP_NOT_SUPPORTED;
    return FUNCTION(0, (const void *, int, int))(pointer, location.type == 2 ? -1 : location.id, flags);
}
ADAPTER(trap_of_value, of_value, (const void *pointer, struct location location, int flags),
        (to, pointer, location, flags), "places on a device or the host")

static inline int properties(targets to, void *properties, int device)
{
    struct new_properties theirs = {0};
    int clock = 0;
    int code = FUNCTION(0, (void *, int))(properties ? &theirs : NULL, device);
    if (!code && properties)
        code = FUNCTION(1, (int *, int, int))(&clock, ATTRIBUTE_CLOCK, device);
    if (code || !properties)
        return code;
    const void *from = &theirs;
    void *const out = properties;
    {
        void *to = out;
        COPY(offsetof(struct old_properties, name), offsetof(struct new_properties, name), 5);
        COPY(offsetof(struct old_properties, memory), offsetof(struct new_properties, memory), 8);
    }
    put_int(out, offsetof(struct old_properties, clock), clock);
    return 0;
}
ADAPTER(trap_properties, properties, (void *out, int device), (to, out, device), NULL, {"trap_inner"})

static inline int choose(targets to, int *device, const void *properties)
{
    struct new_properties theirs = {0};
    if (properties) {
        const void *from = properties;
        void *to = &theirs;
        COPY(offsetof(struct new_properties, name), offsetof(struct old_properties, name), 5);
        COPY(offsetof(struct new_properties, memory), offsetof(struct old_properties, memory), 8);
    }
    return FUNCTION(0, (int *, const void *))(device, properties ? &theirs : NULL);
}
ADAPTER(trap_choose, choose, (int *device, const void *properties), (to, device, properties), NULL)

static inline int call_back(targets to, int (*function)(void *), void *data)
{
    char temporary[1100]; /* the frame of the largest shipped adapter */
    memset(temporary, 1, sizeof temporary);
    return FUNCTION(0, (void *, int (*)(void *), void *, char *))(NULL, function, data, temporary) +
           temporary[1099] - 1;
}
ADAPTER(trap_call_back, call_back, (int (*function)(void *), void *data), (to, function, data), NULL)

static inline int frames(targets to, void **list, int count)
{
    return FUNCTION(0, (int, void **, int))(0, list, count);
}
ADAPTER(trap_frames, frames, (void **list, int count), (to, list, count), NULL)

static inline int partial(targets to, int value)
{
    int inner = 0;
    int code = FUNCTION(1, (int *, int, int))(&inner, value, 0);
    return code ? code : FUNCTION(0, (int, int))(FUNCTION(2, (int))(value), FUNCTION(3, (int))(inner));
}
ADAPTER(trap_partial, partial, (int value), (to, value), NULL, {"trap_inner", "trap_extra", "trap_last"})

static inline int
a_code_with_a_name_that_is_longer_than_those_of_the_shipped_tables_and_goes_on_for_a_while(targets to)
{
    return FUNCTION(0, (int))(3);
}
ADAPTER(trap_function_with_a_name_that_is_longer_than_those_of_the_shipped_libraries_and_goes_on_for_a_while,
        a_code_with_a_name_that_is_longer_than_those_of_the_shipped_tables_and_goes_on_for_a_while, (void),
        (to), NULL)

static inline int chain_by_19(targets to, int value)
{
    return FUNCTION(0, (int, int))(value, 19);
}
ADAPTER(trap_chain, chain_by_19, (int value), (to, value), NULL, {"trap_extra"})

static inline int chain_by_15(targets to, int value)
{
    return FUNCTION(0, (int, int))(value, 15);
}
ADAPTER(trap_chain, chain_by_15, (int value), (to, value), "values above 0")

static inline int never(targets to)
{
    return FUNCTION(0, (int))(0);
}
ADAPTER(trap_never, never, (void), (to), "calls that nothing makes", {"trap_inner"})
