/* abi.h: names of linkage and calling convention, for ELF. */
#ifndef GPUSTUB_ABI_H
#define GPUSTUB_ABI_H

#define HIDDEN __attribute__((visibility("hidden")))

/* An entry point, or data that an image has once: linkers keep the first definition. */
#define MERGED __attribute__((weak, visibility("hidden")))
#define MERGED_DATA MERGED
#define DECLARE_MERGED MERGED extern

#define ALWAYS_INLINE static inline __attribute__((always_inline))
typedef uint16_t __attribute__((aligned(1), may_alias)) unaligned_u16;

/* Functions that gpustub1_slow calls without saving vector registers. On AArch64 some callers expect half of
 * them to be preserved (AAPCS64 6.1.3). clang ignores GCC's name, and has spelt extensions as GCC does since 16. */
#if !defined(__aarch64__)
#define GENERAL_REGISTERS
#elif !defined(__clang__)
#define GENERAL_REGISTERS __attribute__((target("general-regs-only")))
#elif __clang_major__ >= 16
#define GENERAL_REGISTERS __attribute__((target("nofp")))
#else
#define GENERAL_REGISTERS __attribute__((target("no-fp-armv8")))
#endif

/* Sections of their own, for compilers without -ffunction-sections: code, constants, and constants with relocations. */
#define CODE_SECTION(name) __attribute__((section(".text." #name)))
#define CONSTANT_SECTION(name) __attribute__((section(".rodata." #name)))
#define RELOCATED(name) __attribute__((section(".data.rel.ro." #name)))

/* The targets of adapters may be those of another object. */
#define WEAK_TARGETS __attribute__((weak, visibility("hidden")))

/* Name of a function of gpustub.h, where it is defined. */
#define QUERY(name) gpustub_##name

/* What gpustub1_slow writes into a struct observed_call. The first two are laid out as a frame record (AAPCS64 6.4.6),
 * for tools that follow frame pointers; on 32-bit Arm the three are the caller's r11, sp and lr. */
#define OBSERVED_FRAME                                                                             \
    uintptr_t caller_frame;   /* the caller's frame pointer: its register points at this record */ \
    uintptr_t return_address; /* into the caller */                                                \
    uintptr_t has_scalable;   /* AArch64, RISC-V: whether scalable vectors are saved */

/* Bounds of the parts, and of the tables of shared stubs, by the linker. */
#define FIRST_PART __start_gpustub1_parts
#define END_OF_PARTS __stop_gpustub1_parts
#define FIRST_API __start_gpustub1_apis
#define END_OF_APIS __stop_gpustub1_apis

/* Number of argument registers, and offset of the thunk, which enters gpustub1_slow, in a trampoline. */
#if defined(__x86_64__)
#define REGISTER_ARGS 6
#define THUNK_OFFSET 10
#elif defined(__aarch64__)
#define REGISTER_ARGS 8
#define THUNK_OFFSET 16
#define RESULT_REGISTER 1 /* x8 has the hidden result pointer */
#elif defined(__riscv)
#define REGISTER_ARGS 8
#define THUNK_OFFSET 12
#elif defined(__powerpc64__)
#define REGISTER_ARGS 8
#define THUNK_OFFSET 32
#elif defined(__s390x__)
#define REGISTER_ARGS 5
#define THUNK_OFFSET 8
#elif defined(__i386__)
#define REGISTER_ARGS 0
#define THUNK_OFFSET 16
#elif defined(__arm__)
#define REGISTER_ARGS 4
#define THUNK_OFFSET 12
#elif defined(__loongarch__)
#define REGISTER_ARGS 8
#define THUNK_OFFSET 12
#endif

#endif
