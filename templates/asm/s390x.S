/* s390x.S: trampolines for z/Architecture ELF, 64 bits, big endian.
 *
 * "ELF Application Binary Interface, s390x Supplement" (github.com/IBM/s390x-abi): integer arguments in r2-r6, of
 * which a function preserves r6, floating point in f0, f2, f4 and f6, vectors in v24-v31 if code is compiled
 * for z13 or later, the hidden result pointer in r2. Results are in r2, f0 or v24; others are in memory. The
 * caller provides 160 bytes at r15, in which a function saves registers, r11 at 88 and r14 at 112; arguments on
 * the stack follow. The CFA is r15 + 160 at an entry. r0 and r1 are free at every call, but r0 is no base of an
 * address.
 *
 * Loads and stores stay in order ("Principles of Operation", 5: storage-operand consistency). Relative
 * branches reach 4 GiB, so that linkers insert no veneers.
 *
 * A warm call is `lgrl; br`, of z10. An unbound slot points at the thunk after its trampoline, which passes the
 * slot in r0 and the part in r1. */

#include "frame.h"

/* The sections of a function are one group: see x86_64.S. */
.macro gpustub_function library, tables, name, spec
 .section .text.gpustub.\name, "axG", %progbits, gpustub1.\library\().\name, comdat
 .p2align 4
 .globl \name
 GPUSTUB_HIDE(\name)
 .type \name, %function
\name:
.Ltrampoline_\name:
 lgrl %r1, .Lslot_\name
 br %r1
.Lthunk_\name:
 larl %r1, .Lslot_\name
 jg .Lenter_\library
 .size \name, . - \name
 gpustub_slot \library, \tables, \name, \spec
.endm

/* Entry of a library's unbound calls: passes the part to gpustub1_slow. */
.macro gpustub_entry library
 .section .text.gpustub_enter.\library, "ax", %progbits
.Lenter_\library:
 .cfi_startproc
 lgr %r0, %r1
 larl %r1, .Lpart_\library
 jg gpustub1_slow
 .cfi_endproc
.endm

/* Adapter thunk: target of the slot of a function with one more argument, which is null. The sixth argument is
 * on the stack, where the caller left no room: the thunk calls its target, from a frame of its own. */
.macro gpustub_null_argument library, name, argument
 gpustub_section .rodata.gpustub.\name, aG, \library, \name
 .long .Ladapter_\name - .
 gpustub_section .text.gpustub.\name, axG, \library, \name
.Ladapter_\name:
 .cfi_startproc
 lgrl %r1, gpustub1_targets_\name
 stmg %r6, %r15, 48(%r15)
 .cfi_offset %r6, -112
 .cfi_offset %r14, -48
 .cfi_offset %r15, -40
 aghi %r15, -168
 .cfi_def_cfa_offset 160 + 168
 .if \argument < 5
 stg %r6, 160(%r15)
 .else
 mvghi 160(%r15), 0
 .endif
 gpustub_argument 6, \argument, 5
 gpustub_argument 5, \argument, 4
 gpustub_argument 4, \argument, 3
 gpustub_argument 3, \argument, 2
 gpustub_argument 2, \argument
 basr %r14, %r1
 lmg %r6, %r15, 48 + 168(%r15)
 .cfi_restore %r6
 .cfi_restore %r14
 .cfi_restore %r15
 .cfi_def_cfa_offset 160
 br %r14
 .cfi_endproc
.endm

/* r2 is argument 0. */
.macro gpustub_argument register, null, before
 .if \register > \null + 2
 lgr %r\register, %r\before
 .elseif \register == \null + 2
 lghi %r\register, 0
 .endif
.endm

#include "elf_table.h"

/* ---- the first call ------------------------------------------------------------------------- */

/* Frame at r15: 160 bytes for callees, struct frame, then fields that only this file uses. r11 is the caller's
 * r15. */
#define FRAME_AT 160
#define STACK    (FRAME_AT + 48)
#define RESULT   (FRAME_AT + 56)
#define OBSERVE  (FRAME_AT + 64)
#define PART     (FRAME_AT + 72)
#define FPC      240
#define FLOATS   248
#define SLOT     280
#define HAS_VECTORS 288
#define VECTORS  304
#define FRAME    432
#define R11      88
#define R14      112
/* struct observed_call */
#define OBSERVED_VECTORS 16

.macro gpustub_floats instruction
 \instruction %f0, FLOATS(%r15)
 \instruction %f2, FLOATS + 8(%r15)
 \instruction %f4, FLOATS + 16(%r15)
 \instruction %f6, FLOATS + 24(%r15)
.endm

/* VSTM and VLM of v24-v31 at VECTORS(%r15), which binutils knows from 2.26 on, for z13. */
#define VECTORS_SAVE    .short 0xe78f, 0xf000 + VECTORS, 0x0c3e
#define VECTORS_RESTORE .short 0xe78f, 0xf000 + VECTORS, 0x0c36

.macro gpustub_frame_begin
 stmg %r11, %r15, R11(%r15)
 .cfi_offset %r11, -72
 .cfi_offset %r14, -48
 .cfi_offset %r15, -40
 lgr %r11, %r15
 .cfi_def_cfa_register %r11
 aghi %r15, -FRAME
 stg %r11, 0(%r15)
.endm

.macro gpustub_frame_end
 lmg %r11, %r15, R11(%r11)
 .cfi_def_cfa %r15, 160
 .cfi_restore %r11
 .cfi_restore %r14
 .cfi_restore %r15
.endm

 .section .text.gpustub1_slow, "axG", %progbits, gpustub1.slow, comdat
 .p2align 4
 .globl gpustub1_slow
 .hidden gpustub1_slow
 .type gpustub1_slow, %function
gpustub1_slow:
 .cfi_startproc
 gpustub_frame_begin
 stmg %r2, %r6, FRAME_AT(%r15)
 la %r2, 160(%r11)
 stg %r2, STACK(%r15)
 lghi %r2, 0
 stg %r2, RESULT(%r15)
 stg %r2, OBSERVE(%r15)
 stg %r1, PART(%r15)
 lgr %r3, %r0                   /* the slot */
 l %r4, SLOT_CODE(%r3)
 nilf %r4, SLOT_REASON
 jz 0f
 /* No function to jump to: no other register is to be preserved. */
 llgfr %r4, %r4
 lg %r2, 0(%r1)                 /* the library */
 lgf %r5, SLOT_INFO(%r3)
 llgh %r3, 0(%r5, %r3)
 mghi %r3, SPEC_SIZE
 ag %r3, LIBRARY_SPECS(%r2)
 la %r5, FRAME_AT(%r15)
 brasl %r14, gpustub1_answer
 j 4f
0:
 gpustub_floats std
 stfpc FPC(%r15)                /* a library's constructor may set the rounding mode */
 stg %r3, SLOT(%r15)
 brasl %r14, gpustub1_has_vectors
 lgfr %r2, %r2
 stg %r2, HAS_VECTORS(%r15)
 ltgr %r2, %r2
 jz 1f
 VECTORS_SAVE
1: lg %r2, SLOT(%r15)
 la %r3, FRAME_AT(%r15)
 brasl %r14, gpustub1_enter
 lgr %r1, %r2
 lg %r0, HAS_VECTORS(%r15)
 ltgr %r0, %r0
 jz 2f
 VECTORS_RESTORE
2: lfpc FPC(%r15)
 gpustub_floats ld
 ltgr %r1, %r1
 jz 4f
 lg %r2, OBSERVE(%r15)
 ltgr %r2, %r2
 jnz 5f
 lmg %r2, %r6, FRAME_AT(%r15)
 .cfi_remember_state
 gpustub_frame_end
 br %r1
 .cfi_restore_state
4: lg %r2, RESULT(%r15)
 lzdr %f0
 .cfi_remember_state
 gpustub_frame_end
 br %r14
 .cfi_restore_state
 /* An observed call; see x86_64.S. r11 and r14 move into the record, r2. */
5: stg %r0, OBSERVED_VECTORS(%r2)
 lg %r3, R11(%r11)
 stg %r3, 0(%r2)
 lg %r3, R14(%r11)
 stg %r3, 8(%r2)
 lgr %r0, %r2
 lmg %r2, %r6, FRAME_AT(%r15)
 gpustub_frame_end
 lgr %r11, %r0
 .cfi_escape 0x10, 11, 2, 0x7b, 0               /* r11 at [r11] */
 j 6f
 .cfi_endproc

 .cfi_startproc
 .cfi_signal_frame
 .cfi_escape 0x10, 11, 2, 0x7b, 0
 .cfi_escape 0x16, 14, 5, 0x7b, 8, 6, 0x31, 0x1c /* return address: [r11 + 8] - 1 */
6: basr %r14, %r1
 j 7f
 .cfi_endproc

 .cfi_startproc
 .cfi_escape 0x10, 11, 2, 0x7b, 0
 .cfi_escape 0x10, 14, 2, 0x7b, 8
7: lgr %r1, %r11
 lg %r14, 8(%r1)
 lg %r11, 0(%r1)
 .cfi_same_value %r14
 .cfi_same_value %r11
 gpustub_frame_begin
 stg %r2, FRAME_AT(%r15)
 gpustub_floats std
 lg %r0, OBSERVED_VECTORS(%r1)
 stg %r0, HAS_VECTORS(%r15)
 ltgr %r0, %r0
 jz 8f
 VECTORS_SAVE
8: lgr %r3, %r2
 lgr %r2, %r1
 brasl %r14, gpustub1_returned
 lg %r0, HAS_VECTORS(%r15)
 ltgr %r0, %r0
 jz 9f
 VECTORS_RESTORE
9: gpustub_floats ld
 lg %r2, FRAME_AT(%r15)
 gpustub_frame_end
 br %r14
 .cfi_endproc
 .size gpustub1_slow, . - gpustub1_slow

/* ---- the exit --------------------------------------------------------------------------------- */

 .section .text.gpustub1_exit, "axG", %progbits, gpustub1.exit, comdat
 .p2align 2
.Lexit:
 larl %r1, gpustub1_exiting
 mvi 0(%r1), 1
 lgrl %r1, gpustub1_on_exit
 ltgr %r1, %r1
 bzr %r14
 br %r1
 .p2align 2
 gpustub_kept_by_exit

 .section .note.GNU-stack, "", %progbits
