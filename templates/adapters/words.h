/* words.h: adapters of calls whose arguments are integers and pointers only. Each of them is a word: a register, or 8
 * bytes of the stack, whose upper half is undefined if the argument is an int (x86-64 psABI 3.2.3, AAPCS64 6.8.2). */
#ifndef GPUSTUB_ADAPTERS_WORDS_H
#define GPUSTUB_ADAPTERS_WORDS_H

#include "adapters.h"

typedef uintptr_t word;

/* W(0), W(1), ..., for so many words. */
#define WORDS_7(W) W(0), W(1), W(2), W(3), W(4), W(5), W(6)
#define WORDS_8(W) WORDS_7(W), W(7)
#define WORDS_9(W) WORDS_8(W), W(8)
#define WORDS_10(W) WORDS_9(W), W(9)
#define WORDS_11(W) WORDS_10(W), W(10)
#define WORDS_12(W) WORDS_11(W), W(11)
#define WORDS_13(W) WORDS_12(W), W(12)
#define WORDS_14(W) WORDS_13(W), W(13)
#define WORDS_15(W) WORDS_14(W), W(14)
#define WORDS_16(W) WORDS_15(W), W(15)
#define WORDS_17(W) WORDS_16(W), W(16)
#define WORDS_18(W) WORDS_17(W), W(17)
#define WORDS_19(W) WORDS_18(W), W(18)
#define WORDS_20(W) WORDS_19(W), W(19)
#define WORDS_21(W) WORDS_20(W), W(20)
#define WORDS_22(W) WORDS_21(W), W(21)
#define WORDS_23(W) WORDS_22(W), W(22)
#define WORDS_24(W) WORDS_23(W), W(23)
enum { MAX_WORDS = 24 };

#define PARAMETER(at) word a##at
#define ARGUMENT(at) a##at
#define ITEM(at) words[at]
#define TYPE(at) word

/* Calls the library's function with so many words. */
typedef int call_function(targets to, const word *words);
#define CALL_WITH(count)                                                                           \
    static inline int call_with_##count(targets to, const word *words)                             \
    {                                                                                              \
        return FUNCTION(0, (WORDS_##count(TYPE)))(WORDS_##count(ITEM));                            \
    }
CALL_WITH(7) CALL_WITH(8) CALL_WITH(9) CALL_WITH(10) CALL_WITH(11) CALL_WITH(12)
CALL_WITH(13) CALL_WITH(14) CALL_WITH(15) CALL_WITH(16) CALL_WITH(17) CALL_WITH(18)
CALL_WITH(19) CALL_WITH(20) CALL_WITH(21) CALL_WITH(22) CALL_WITH(23) CALL_WITH(24)

/* Defines an adapter that makes the call of the library with another number of words. `how` is its text. */
#define WORDS_ADAPTER(function, code, count, called, how, ...)                                     \
    ADAPTER(function, code, (WORDS_##count(PARAMETER)),                                            \
            (to, call_with_##called, how, (word[]){WORDS_##count(ARGUMENT)}), __VA_ARGS__)

/* ---- numbers of enumerations ------------------------------------------------------------------------ */

/* Number of an enumerator in older and in newer headers. The first of several pairs counts. */
struct number {
    int16_t old, new;
};

enum { NO_NUMBER = -1 };

static inline int newer_number(const struct number *numbers, size_t count, int old)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i].old == old)
            return numbers[i].new;
    return NO_NUMBER;
}

static inline int older_number(const struct number *numbers, size_t count, int new)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i].new == new)
            return numbers[i].old;
    return NO_NUMBER;
}

#define NEWER_NUMBER(numbers, old) newer_number(numbers, sizeof numbers / sizeof *numbers, old)
#define OLDER_NUMBER(numbers, new) older_number(numbers, sizeof numbers / sizeof *numbers, new)

/* Adapter of a call with numbers of enumerations: `kinds` has a letter for each argument, `.` for those that are
 * passed as they are. */
#define NUMBERS(function, code, count, kinds)                                                      \
    WORDS_ADAPTER(function, code, count, count, kinds, code##_limit)

/* ---- other arguments ---------------------------------------------------------------------------------- */

/* Calls with the caller's words in another order: `order` has a letter for each, `a` is the first. */
static inline int reordered(targets to, call_function *call, const char *order, const word *words)
{
    word theirs[MAX_WORDS];
    for (size_t i = 0; order[i] >= 'a'; i++)
        theirs[i] = words[order[i] - 'a'];
    return call(to, theirs);
}

/* Product with a triangular matrix: before 6 B is the result, since then C. hipblas.h of 6.4: "Users can pass in the same
 * matrix B to parameter C to achieve in-place functionality of trmm." */
static inline int trmm_by_6(targets to, call_function *call, const char *order, const word *words)
{
    return reordered(to, call, order, words);
}

#define TRMM_BY_6(function) WORDS_ADAPTER(function, trmm_by_6, 12, 14, "abcdefghijklkl", NULL)
#define TRMM_BATCHED_BY_6(function)                                                                \
    WORDS_ADAPTER(function, trmm_by_6, 13, 15, "abcdefghijklklm", NULL)
#define TRMM_STRIDED_BATCHED_BY_6(function)                                                        \
    WORDS_ADAPTER(function, trmm_by_6, 15, 18, "abcdefghijklmnlmno", NULL)

#endif
