/* adapters.h: interface of the adapters in C, adapters_<library>.c.
 *
 * An adapter is bound instead of a function of the library that has another ABI variant than in the
 * program's headers. It calls functions of the library, its targets, which were resolved all or none when it was
 * bound. It may be called as the function may: it keeps nothing between calls, and holds no lock. A real function
 * may throw, so that adapters are compiled with unwind tables.
 *
 * Rules that each adapter keeps, so that a program sees what the function of its headers would do:
 * - a null pointer instead of a struct is passed on: the library checks its arguments in its own order;
 * - nothing is written unless the library's function succeeds;
 * - what the library cannot express is refused, without a call: NOT_SUPPORTED. */
#ifndef GPUSTUB_ADAPTERS_H
#define GPUSTUB_ADAPTERS_H

#include "internal.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The functions of the library: the one that the ABI entry names, then those of the ADAPTER line. */
typedef void *const *targets;

/* Calls a target: FUNCTION(0, (int))(argument). */
#define FUNCTION(index, parameters) ((int(*) parameters)(uintptr_t)to[index])

/* Copies a field, or several in a row: at these offsets, of this size. */
#define COPY(to_offset, from_offset, size)                                                         \
    memcpy((char *)to + (to_offset), (const char *)from + (from_offset), (size))

ALWAYS_INLINE void put_int(void *to, size_t offset, int value)
{
    memcpy((char *)to + offset, &value, sizeof value);
}

ALWAYS_INLINE int get_int(const void *from, size_t offset)
{
    int value;
    memcpy(&value, (const char *)from + offset, sizeof value);
    return value;
}

/* Defines the adapter `code` of a function if it is in use. PARAMETERS and ARGUMENTS are in parentheses, the
 * latter after `to`. LIMIT says, as a noun phrase, which calls only are adapted; NULL: all. The names of
 * further targets follow. gpustub_adapters.inc defines GPUSTUB_USES_<function>_<code> as 1.
 *
 * Sections of its own let linkers drop it with its function, also where users compile the sources without
 * -ffunction-sections.
 *
 * The program read the slot before the adapter reads its targets, which were written before the slot; only on
 * x86-64 do loads stay in order without the fence. */
#define ADAPTER(function, code, parameters, arguments, ...)                                        \
    IF_ONE(GPUSTUB_USES_##function##_##code,                                                       \
           DEFINE_ADAPTER(function, code, parameters, arguments, __VA_ARGS__))

/* The arguments after `value` if that is a macro for 1: COMMA_IF_1 adds an argument, so that the second one
 * is KEEP. */
#define IF_ONE(value, ...) IF_ONE_(value, __VA_ARGS__)
#define IF_ONE_(value, ...) IF_ONE__(COMMA_IF_##value, __VA_ARGS__)
#define IF_ONE__(comma, ...) SECOND(comma KEEP, DROP, )(__VA_ARGS__)
#define COMMA_IF_1 ,
#define SECOND(...) SECOND_(__VA_ARGS__)
#define SECOND_(first, second, ...) second
#define KEEP(...) __VA_ARGS__
#define DROP(...)

#define DEFINE_ADAPTER(function, code, parameters, arguments, ...)                                 \
    extern void *gpustub1_targets_##function[] WEAK_TARGETS;                                       \
    CODE_SECTION(adapted_##function##_##code)                                                      \
    static int adapted_##function##_##code parameters                                              \
    {                                                                                              \
        targets to = gpustub1_targets_##function;                                                  \
        __atomic_thread_fence(__ATOMIC_ACQUIRE);                                                   \
        return code arguments;                                                                     \
    }                                                                                              \
    DECLARE_MERGED const struct adapter gpustub1_adapter_##function##_##code;                      \
    RELOCATED(gpustub1_adapter_##function##_##code) MERGED_DATA                                    \
    const struct adapter gpustub1_adapter_##function##_##code = {                                  \
        .entry = (void (*)(void))adapted_##function##_##code, .limit = __VA_ARGS__};

#endif
