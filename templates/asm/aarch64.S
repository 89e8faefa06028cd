/* aarch64.S: trampolines for AArch64 ELF, little endian.
 *
 * AAPCS64 6.8: integer arguments in x0-x7, vectors in q0-q7 (SVE: z0-z7, p0-p3), the indirect
 * result pointer in x8, the return address in x30. x9-x15 are free at every call; the slot is passed
 * in x15 and the part in x14, because linkers may insert a veneer, which uses x16 and x17, between thunk
 * and slow path.
 * Functions that take scalable vectors preserve z8-z23 and p4-p15 (6.1.3, 6.1.4), functions marked
 * aarch64_vector_pcs q8-q23; C code does not, so the first call has to.
 *
 * A warm call is `bti c; adrp; ldr; br x17`. An unbound slot points at the thunk after its
 * trampoline; `bti c` also accepts a `br` by x16 or x17. */

#include "frame.h"

/* DW_CFA_AARCH64_negate_ra_state (AADWARF64 4.3), for assemblers without .cfi_negate_ra_state. */
.macro gpustub_negate_ra_state
 .cfi_escape 0x2d
.endm

/* The sections of a function are one group: of two packages that have it, the linker keeps one group, so
 * that trampoline, slot and spec are of one object. It drops the groups of functions that the program does
 * not call. */
.macro gpustub_function library, tables, name, spec
 .section .text.gpustub.\name, "axG", %progbits, gpustub1.\library\().\name, comdat
 .p2align 4
 .globl \name
 GPUSTUB_HIDE(\name)
 .type \name, %function
\name:
.Ltrampoline_\name:
 hint #34                       // bti c
 adrp x16, .Lslot_\name
 ldr x17, [x16, :lo12:.Lslot_\name]
 br x17
.Lthunk_\name:
 hint #34
 adrp x15, .Lslot_\name
 add x15, x15, :lo12:.Lslot_\name
 b .Lenter_\library
 .size \name, . - \name
 gpustub_slot \library, \tables, \name, \spec
.endm

/* Entry of a library's unbound calls: passes the part to gpustub1_slow. */
.macro gpustub_entry library
 .section .text.gpustub_enter.\library, "ax", %progbits
.Lenter_\library:
 .cfi_startproc
 adrp x14, .Lpart_\library
 add x14, x14, :lo12:.Lpart_\library
 b gpustub1_slow
 .cfi_endproc
.endm

/* Adapter thunk: target of the slot of a function with one more argument, which is null; the arguments
 * after it move up. The thunk's own target is written before the slot, but may be read before it: then
 * gpustub1_enter, which orders the two, jumps to this thunk again. */
.macro gpustub_null_argument library, name, argument
 gpustub_section .rodata.gpustub.\name, aG, \library, \name
 .long .Ladapter_\name - .
 gpustub_section .text.gpustub.\name, axG, \library, \name
.Ladapter_\name:
 hint #34
 adrp x16, gpustub1_targets_\name
 ldr x17, [x16, :lo12:gpustub1_targets_\name]
 cbz x17, .Lthunk_\name
 gpustub_argument 7, \argument, 6
 gpustub_argument 6, \argument, 5
 gpustub_argument 5, \argument, 4
 gpustub_argument 4, \argument, 3
 gpustub_argument 3, \argument, 2
 gpustub_argument 2, \argument, 1
 gpustub_argument 1, \argument, 0
 gpustub_argument 0, \argument
 br x17
.endm

.macro gpustub_argument number, null, before
 .if \number > \null
 mov x\number, x\before
 .elseif \number == \null
 mov x\number, xzr
 .endif
.endm

#include "elf_table.h"

/* ---- the first call ------------------------------------------------------------------------- */

/* struct frame, then fields that only this file uses; below x29. */
#define INDIRECT 64
#define RESULT   80
#define OBSERVE  88
#define PART     96
#define FPCR     104
#define VECTORS  112
#define SLOT     496
#define SVE      504
#define FRAME    512
/* struct observed_call */
#define OBSERVED_SVE 16

/* Saves or restores q0-q23. */
.macro gpustub_vectors instruction
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23
 \instruction q\i, [sp, #VECTORS + \i * 16]
 .endr
.endm

/* Instructions of SVE, which binutils knows from 2.28 on (Arm ARM, C8.2: LDR and STR of vectors and
 * predicates, ADDVL, ADDPL), at sp and with small offsets, in vectors or predicates. */
.macro gpustub_sve base, register, offset
 .inst \base | ((\offset) >> 3) << 16 | ((\offset) & 7) << 10 | 31 << 5 | \register
.endm
#define SVE_STR_Z 0xe5804000
#define SVE_LDR_Z 0x85804000
#define SVE_STR_P 0xe5800000
#define SVE_LDR_P 0x85800000
.macro gpustub_sve_add base, count
 .inst \base | 31 << 16 | ((\count) & 63) << 5 | 31
.endm
#define SVE_ADDVL 0x04205000
#define SVE_ADDPL 0x04605000

/* Saves z0-z23 and p0-p15 below sp. */
.macro gpustub_sve_save
 gpustub_sve_add SVE_ADDVL, -24
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23
 gpustub_sve SVE_STR_Z, \i, \i
 .endr
 gpustub_sve_add SVE_ADDPL, -16
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
 gpustub_sve SVE_STR_P, \i, \i
 .endr
.endm

.macro gpustub_sve_restore
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
 gpustub_sve SVE_LDR_P, \i, \i
 .endr
 gpustub_sve_add SVE_ADDPL, 16
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23
 gpustub_sve SVE_LDR_Z, \i, \i
 .endr
 gpustub_sve_add SVE_ADDVL, 24
.endm

 .section .text.gpustub1_slow, "axG", %progbits, gpustub1.slow, comdat
 .p2align 4
 .globl gpustub1_slow
 .hidden gpustub1_slow
 .type gpustub1_slow, %function
gpustub1_slow:
 .cfi_startproc
 hint #25                       // paciasp
 gpustub_negate_ra_state
 stp x29, x30, [sp, #-16]!
 .cfi_def_cfa_offset 16
 .cfi_offset x29, -16
 .cfi_offset x30, -8
 mov x29, sp
 .cfi_def_cfa x29, 16
 sub sp, sp, #FRAME
 stp x0, x1, [sp, #0]
 stp x2, x3, [sp, #16]
 stp x4, x5, [sp, #32]
 stp x6, x7, [sp, #48]
 add x9, x29, #16
 stp x8, x9, [sp, #INDIRECT]
 stp xzr, xzr, [sp, #RESULT]
 // A library's constructor may set the rounding mode, which must not affect the call.
 mrs x10, fpcr
 stp x14, x10, [sp, #PART]
 add x9, x15, #SLOT_CODE
 ldar w2, [x9]
 and w2, w2, #SLOT_REASON
 cbz w2, 0f
 // No function to jump to: no other register is to be preserved.
 ldr x0, [x14]                  // the library
 ldrsw x9, [x15, #SLOT_INFO]
 ldrh w9, [x15, x9]
 mov w10, #SPEC_SIZE
 ldr x11, [x0, #LIBRARY_SPECS]
 madd x1, x9, x10, x11
 mov x3, sp
 bl gpustub1_answer             // compiled for general registers only
 b 4f
0:
 gpustub_vectors str
 str x15, [sp, #SLOT]
 bl gpustub1_has_sve            // compiled for general registers only
 str x0, [sp, #SVE]
 ldr x10, [sp, #SLOT]
 mov x1, sp
 cbz x0, 1f
 gpustub_sve_save
1: mov x0, x10
 bl gpustub1_enter
 mov x16, x0
 ldr x9, [x29, #SVE - FRAME]
 cbz x9, 2f
 gpustub_sve_restore
 b 3f
2:
 gpustub_vectors ldr
3: ldr x10, [sp, #FPCR]
 msr fpcr, x10
 cbz x16, 4f
 ldr x10, [sp, #OBSERVE]
 cbnz x10, 5f
 ldp x0, x1, [sp, #0]
 ldp x2, x3, [sp, #16]
 ldp x4, x5, [sp, #32]
 ldp x6, x7, [sp, #48]
 ldr x8, [sp, #INDIRECT]
 .cfi_remember_state
 mov sp, x29
 .cfi_def_cfa sp, 16
 ldp x29, x30, [sp], #16
 .cfi_def_cfa sp, 0
 .cfi_restore x29
 .cfi_restore x30
 hint #29                       // autiasp
 gpustub_negate_ra_state
 br x16
 .cfi_restore_state
4: ldr x0, [sp, #RESULT]
 mov x1, xzr
 .irp i, 0, 1, 2, 3            // a struct of up to four floats (AAPCS64 6.9)
 fmov d\i, xzr
 .endr
 .cfi_remember_state
 mov sp, x29
 .cfi_def_cfa sp, 16
 ldp x29, x30, [sp], #16
 .cfi_def_cfa sp, 0
 .cfi_restore x29
 .cfi_restore x30
 hint #29                       // autiasp
 gpustub_negate_ra_state
 ret
 .cfi_restore_state
 // An observed call; see x86_64.S. x29 and x30 move into the record, x10.
5: ldr x9, [sp, #SVE]
 str x9, [x10, #OBSERVED_SVE]
 ldp x0, x1, [sp, #0]
 ldp x2, x3, [sp, #16]
 ldp x4, x5, [sp, #32]
 ldp x6, x7, [sp, #48]
 ldr x8, [sp, #INDIRECT]
 mov sp, x29
 .cfi_def_cfa sp, 16
 ldp x29, x30, [sp], #16
 .cfi_def_cfa sp, 0
 .cfi_restore x29
 .cfi_restore x30
 hint #29                       // autiasp
 gpustub_negate_ra_state
 stp x29, x30, [x10]
 mov x29, x10
 .cfi_escape 0x10, 29, 2, 0x8d, 0               // x29 at [x29]
 b 6f
 .cfi_endproc

 .cfi_startproc
 .cfi_signal_frame
 .cfi_escape 0x10, 29, 2, 0x8d, 0
 .cfi_escape 0x16, 30, 5, 0x8d, 8, 6, 0x31, 0x1c // return address: [x29 + 8] - 1
6: blr x16
 b 7f
 .cfi_endproc

 .cfi_startproc
 .cfi_escape 0x10, 29, 2, 0x8d, 0
 .cfi_escape 0x10, 30, 2, 0x8d, 8
7: mov x9, x29
 ldr x10, [x29, #OBSERVED_SVE]
 ldp x29, x30, [x29]
 .cfi_same_value x29
 .cfi_same_value x30
 hint #25                       // paciasp
 gpustub_negate_ra_state
 stp x29, x30, [sp, #-16]!
 .cfi_def_cfa_offset 16
 .cfi_offset x29, -16
 .cfi_offset x30, -8
 mov x29, sp
 .cfi_def_cfa x29, 16
 sub sp, sp, #FRAME
 stp x0, x1, [sp, #0]
 str x10, [sp, #SVE]
 gpustub_vectors str
 mov x1, x0
 mov x0, x9
 cbz x10, 8f
 gpustub_sve_save
8: bl gpustub1_returned
 ldr x10, [x29, #SVE - FRAME]
 cbz x10, 9f
 gpustub_sve_restore
 b 10f
9: gpustub_vectors ldr
10: ldp x0, x1, [sp, #0]
 mov sp, x29
 .cfi_def_cfa sp, 16
 ldp x29, x30, [sp], #16
 .cfi_def_cfa sp, 0
 .cfi_restore x29
 .cfi_restore x30
 hint #29                       // autiasp
 gpustub_negate_ra_state
 ret
 .cfi_endproc
 .size gpustub1_slow, . - gpustub1_slow

/* ---- the exit --------------------------------------------------------------------------------- */

 .section .text.gpustub1_exit, "axG", %progbits, gpustub1.exit, comdat
.Lexit:
 hint #34
 adrp x9, gpustub1_exiting
 mov w10, #1
 strb w10, [x9, :lo12:gpustub1_exiting]
 adrp x9, gpustub1_on_exit
 ldr x16, [x9, :lo12:gpustub1_on_exit]
 cbz x16, 1f
 br x16
1: ret
 gpustub_kept_by_exit

/* Linking an object without this note switches BTI and PAC off for the whole program (AArch64
 * ELF ABI, "Program Property": GNU_PROPERTY_AARCH64_FEATURE_1_AND = BTI | PAC | GCS; every return
 * above is to the address that its call stored, as guarded control stacks require). */
 .section .note.gnu.property, "a"
 .p2align 3
 .word 4, 16, 5
 .asciz "GNU"
 .word 0xc0000000, 4, 7, 0

 .section .note.GNU-stack, "", %progbits
