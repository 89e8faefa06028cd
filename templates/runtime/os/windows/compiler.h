/* compiler.h: what the run time uses of GNU C, in C11 with intrinsic functions of Microsoft's compiler, which clang has
 * for that ABI, too ("Compiler intrinsics", learn.microsoft.com). No header of intrinsic functions: those of the compiler
 * take longer to compile than the run time. */
#ifndef GPUSTUB_COMPILER_H
#define GPUSTUB_COMPILER_H

#ifdef __GNUC__

#define ALWAYS_INLINE static inline __attribute__((always_inline))
typedef uint16_t __attribute__((aligned(1), may_alias)) unaligned_u16;

/* Sections of their own, for compilers without -ffunction-sections: code and constants. */
#define CODE_SECTION(name) __attribute__((section(".text$" #name)))
#define CONSTANT_SECTION(name) __attribute__((section(".rdata$" #name)))

#else

#include <string.h>

#define ALWAYS_INLINE static __forceinline
typedef __unaligned uint16_t unaligned_u16;

/* /Gy and /Gw make sections. */
#define CODE_SECTION(name)
#define CONSTANT_SECTION(name)

#ifndef __SIZEOF_POINTER__
#define __SIZEOF_POINTER__ 8
#endif
#define __builtin_memcpy memcpy
#define __builtin_strlen strlen

/* ---- atomic access: always with the strongest order -------------------------------------------- */

char _InterlockedExchange8(char volatile *place, char value);
long _InterlockedExchange(long volatile *place, long value);
long long _InterlockedExchange64(long long volatile *place, long long value);
long _InterlockedCompareExchange(long volatile *place, long value, long expected);
long long _InterlockedCompareExchange64(long long volatile *place, long long value,
                                        long long expected);
long _InterlockedExchangeAdd(long volatile *place, long value);
char __iso_volatile_load8(const volatile char *place);
int __iso_volatile_load32(const volatile int *place);
long long __iso_volatile_load64(const volatile long long *place);
#pragma intrinsic(_InterlockedExchange8, _InterlockedExchange, _InterlockedExchange64)
#pragma intrinsic(_InterlockedCompareExchange, _InterlockedCompareExchange64)
#pragma intrinsic(_InterlockedExchangeAdd)
#pragma intrinsic(__iso_volatile_load8, __iso_volatile_load32, __iso_volatile_load64)

/* Orders a load and what follows. x64 does so itself: the compiler must not reorder. */
#if defined(_M_ARM64)
void __dmb(unsigned domain);
#pragma intrinsic(__dmb)
#define FENCE() __dmb(0xb) /* inner shareable (_ARM64_BARRIER_ISH) */
#else
void _ReadWriteBarrier(void);
#pragma intrinsic(_ReadWriteBarrier)
#define FENCE() _ReadWriteBarrier()
#endif

ALWAYS_INLINE char load_char(const volatile void *place)
{
    char value = __iso_volatile_load8(place);
    FENCE();
    return value;
}

ALWAYS_INLINE int load_int(const volatile void *place)
{
    int value = __iso_volatile_load32(place);
    FENCE();
    return value;
}

ALWAYS_INLINE uintptr_t load_word(const volatile void *place)
{
    uintptr_t value = (uintptr_t)__iso_volatile_load64(place);
    FENCE();
    return value;
}

ALWAYS_INLINE unsigned load_unsigned(const volatile void *place)
{
    return (unsigned)load_int(place);
}

ALWAYS_INLINE void *load_pointer(const volatile void *place)
{
    return (void *)load_word(place);
}

ALWAYS_INLINE uintptr_t exchange_word(volatile void *place, uintptr_t value)
{
    return (uintptr_t)_InterlockedExchange64(place, (long long)value);
}

ALWAYS_INLINE void *exchange_pointer(volatile void *place, uintptr_t value)
{
    return (void *)exchange_word(place, value);
}

ALWAYS_INLINE int exchange_int(volatile void *place, uintptr_t value)
{
    return (int)_InterlockedExchange(place, (long)value);
}

ALWAYS_INLINE void store(volatile void *place, size_t size, uintptr_t value)
{
    if (size == 1)
        _InterlockedExchange8(place, (char)value);
    else if (size == 4)
        exchange_int(place, value);
    else
        exchange_word(place, value);
}

/* Returns whether the place had the expected value, which becomes what it had. */
ALWAYS_INLINE int compare_exchange(volatile void *place, void *expected, size_t size,
                                   uintptr_t value)
{
    if (size == 4) {
        long wanted;
        memcpy(&wanted, expected, sizeof wanted);
        long before = _InterlockedCompareExchange(place, (long)value, wanted);
        memcpy(expected, &before, sizeof before);
        return before == wanted;
    }
    long long wanted;
    memcpy(&wanted, expected, sizeof wanted);
    long long before = _InterlockedCompareExchange64(place, (long long)value, wanted);
    memcpy(expected, &before, sizeof before);
    return before == wanted;
}

/* Returns the value after the addition. */
ALWAYS_INLINE unsigned add(volatile void *place, unsigned value)
{
    return (unsigned)_InterlockedExchangeAdd(place, (long)value) + value;
}

/* The functions of GNU C, for characters, `int`, `unsigned` and words, and pointers as `void *`. */
#define __atomic_load_n(place, order)                                                              \
    _Generic(*(place), char: load_char, int: load_int, unsigned: load_unsigned,                    \
             uintptr_t: load_word, default: load_pointer)(place)
#define __atomic_exchange_n(place, value, order)                                                   \
    _Generic(*(place), int: exchange_int, default: exchange_pointer)((place), (uintptr_t)(value))
#define __atomic_store_n(place, value, order) store((place), sizeof *(place), (uintptr_t)(value))
#define __atomic_compare_exchange_n(place, expected, value, is_weak, order, failure_order)         \
    compare_exchange((place), (expected), sizeof *(place), (uintptr_t)(value))
#define __atomic_add_fetch(place, value, order) add((place), (value))
#define __atomic_sub_fetch(place, value, order) add((place), 0U - (value))
#define __atomic_fetch_add(place, value, order) (add((place), (value)) - (value))
#define __atomic_thread_fence(order) FENCE()

#endif
#endif
