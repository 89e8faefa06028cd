/* abi.h: names of linkage and calling convention, for ELF. */
#ifndef GPUSTUB_ABI_H
#define GPUSTUB_ABI_H

#define HIDDEN __attribute__((visibility("hidden")))

/* An entry point, or data that an image has once: linkers keep the first definition. */
#define MERGED __attribute__((weak, visibility("hidden")))
#define MERGED_DATA MERGED
#define DECLARE_MERGED MERGED extern

/* Section of data with relocations that is read-only after start-up. */
#define RELOCATED(name) __attribute__((section(".data.rel.ro." #name)))

/* The targets of adapters may be those of another object. */
#define WEAK_TARGETS __attribute__((weak, visibility("hidden")))

/* Name of a function of gpustub.h, where it is defined. */
#define QUERY(name) gpustub_##name

/* Whether gpustub1_slow can report the results of calls. */
#define OBSERVES_RESULTS 1

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
