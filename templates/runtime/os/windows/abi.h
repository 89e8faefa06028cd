/* abi.h: names of linkage and calling convention, for COFF and the ABIs of Windows. */
#ifndef GPUSTUB_ABI_H
#define GPUSTUB_ABI_H

#include "compiler.h"

#define HIDDEN

/* No calling convention of Windows preserves more vector registers than its own. */
#define GENERAL_REGISTERS

/* Linkers of COFF merge no functions of C, only data: entry points are static, and all packages call them through
 * the first package's table (entries.c). */
#define MERGED       static
#define MERGED_DATA  __declspec(selectany)
/* GCC forgets the attribute of a definition after a declaration without it; clang takes a declaration with it for a
 * definition. */
#if defined(__GNUC__) && !defined(__clang__)
#define DECLARE_MERGED extern MERGED_DATA
#else
#define DECLARE_MERGED extern
#endif

/* Constants with relocations are COMDATs, which have sections of their own. */
#define RELOCATED(name)
#define WEAK_TARGETS
#define QUERY(name)  public_##name

/* The frame of an observed call is on the stack (asm/<arch>_coff.S). */
#define OBSERVED_FRAME

/* Bounds of the parts (coff_table.S). There are no shared stubs. */
#define FIRST_PART   gpustub1_p_a
#define END_OF_PARTS gpustub1_p_c
#define FIRST_API    gpustub1_no_api
#define END_OF_APIS  gpustub1_no_api

/* Number of argument registers, offset of the thunk, which enters gpustub1_slow, in a trampoline, and Machine of images
 * (PE Format, "Machine Types"). */
#if defined(__aarch64__) || defined(_M_ARM64)
#define REGISTER_ARGS   8
#define THUNK_OFFSET    12
#define RESULT_REGISTER 1 /* x8 has the hidden result pointer */
#define MACHINE         0xaa64
#else
#define REGISTER_ARGS 4
#define THUNK_OFFSET  8
#define MACHINE       0x8664
#endif

#endif
