/* loongarch64.S: trampolines for LoongArch ELF, 64 bits, double-float ABI (LP64D).
 *
 * "Procedure Call Standard for the LoongArch Architecture" (github.com/loongson/la-abi-specs, lapcs.adoc): integer
 * arguments in a0-a7, floating point in fa0-fa7 and then in integer registers, variadic arguments in integer
 * registers only, the hidden result pointer in a0, the return address in ra. Vectors are passed in integer registers
 * or in memory, so that no wider register holds an argument. t0-t8 are free at every call; the slot is passed in
 * t5 and the part in t6.
 *
 * Addresses are built from the pages of the pc and the symbol, within 2 GiB. `b` would reach 128 MiB.
 *
 * A warm call is `pcalau12i; ld.d; jr t0`. An unbound slot points at the thunk after its trampoline. */

#include "frame.h"

.macro gpustub_address register, symbol
 pcalau12i \register, %pc_hi20(\symbol)
 addi.d \register, \register, %pc_lo12(\symbol)
.endm

.macro gpustub_load register, symbol
 pcalau12i \register, %pc_hi20(\symbol)
 ld.d \register, \register, %pc_lo12(\symbol)
.endm

.macro gpustub_jump symbol
 gpustub_address $t1, \symbol
 jr $t1
.endm

/* The sections of a function are one group: see x86_64.S. */
.macro gpustub_function library, tables, name, spec
 .section .text.gpustub.\name, "axG", %progbits, gpustub1.\library\().\name, comdat
 .p2align 4
 .globl \name
 GPUSTUB_HIDE(\name)
 .type \name, %function
\name:
.Ltrampoline_\name:
 gpustub_load $t0, .Lslot_\name
 jr $t0
.Lthunk_\name:
 gpustub_address $t5, .Lslot_\name
 gpustub_jump .Lenter_\library
 .size \name, . - \name
 gpustub_slot \library, \tables, \name, \spec
.endm

/* Entry of a library's unbound calls: passes the part to gpustub1_slow. */
.macro gpustub_entry library
 .section .text.gpustub_enter.\library, "ax", %progbits
.Lenter_\library:
 .cfi_startproc
 gpustub_address $t6, .Lpart_\library
 gpustub_jump gpustub1_slow
 .cfi_endproc
.endm

/* Adapter thunk; see aarch64.S: loads are not ordered here, either. */
.macro gpustub_null_argument library, name, argument
 gpustub_section .rodata.gpustub.\name, aG, \library, \name
 .long .Ladapter_\name - .
 gpustub_section .text.gpustub.\name, axG, \library, \name
.Ladapter_\name:
 gpustub_load $t0, gpustub1_targets_\name
 beqz $t0, .Lthunk_\name
 gpustub_argument 7, \argument, 6
 gpustub_argument 6, \argument, 5
 gpustub_argument 5, \argument, 4
 gpustub_argument 4, \argument, 3
 gpustub_argument 3, \argument, 2
 gpustub_argument 2, \argument, 1
 gpustub_argument 1, \argument, 0
 gpustub_argument 0, \argument
 jr $t0
.endm

.macro gpustub_argument number, null, before
 .if \number > \null
 move $a\number, $a\before
 .elseif \number == \null
 move $a\number, $zero
 .endif
.endm

#include "elf_table.h"

/* ---- the first call ------------------------------------------------------------------------- */

/* struct frame, then fields that only this file uses; below the saved ra and fp. fp is the CFA. */
#define STACK    72
#define RESULT   80
#define OBSERVE  88
#define PART     96
#define FCSR     104
#define FLOATS   112
#define FRAME    176

.macro gpustub_integers instruction
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7
 \instruction $a\i, $sp, \i * 8
 .endr
.endm

.macro gpustub_floats instruction
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7
 \instruction $fa\i, $sp, FLOATS + \i * 8
 .endr
.endm

/* DWARF numbers: ra is 1, sp 3, fp 22. */
.macro gpustub_frame_begin
 addi.d $sp, $sp, -16
 .cfi_def_cfa_offset 16
 st.d $ra, $sp, 8
 st.d $fp, $sp, 0
 .cfi_offset 1, -8
 .cfi_offset 22, -16
 addi.d $fp, $sp, 16
 .cfi_def_cfa 22, 0
 addi.d $sp, $sp, -FRAME
.endm

.macro gpustub_frame_end
 addi.d $sp, $fp, -16
 .cfi_def_cfa 3, 16
 ld.d $ra, $sp, 8
 ld.d $fp, $sp, 0
 .cfi_restore 1
 .cfi_restore 22
 addi.d $sp, $sp, 16
 .cfi_def_cfa_offset 0
.endm

.macro gpustub_call symbol
 gpustub_address $t1, \symbol
 jirl $ra, $t1, 0
.endm

 .section .text.gpustub1_slow, "axG", %progbits, gpustub1.slow, comdat
 .p2align 4
 .globl gpustub1_slow
 .hidden gpustub1_slow
 .type gpustub1_slow, %function
gpustub1_slow:
 .cfi_startproc
 gpustub_frame_begin
 gpustub_integers st.d
 st.d $fp, $sp, STACK
 st.d $zero, $sp, RESULT
 st.d $zero, $sp, OBSERVE
 st.d $t6, $sp, PART
 ld.w $a2, $t5, SLOT_CODE
 dbar 0
 andi $a2, $a2, SLOT_REASON
 beqz $a2, 1f
 /* No function to jump to: no other register is to be preserved. */
 ld.d $a0, $t6, 0               /* the library */
 ld.w $t0, $t5, SLOT_INFO
 add.d $t0, $t5, $t0
 ld.bu $t1, $t0, 1              /* not aligned */
 ld.bu $t0, $t0, 0
 slli.d $t1, $t1, 8
 or $t0, $t0, $t1
 addi.d $t1, $zero, SPEC_SIZE
 mul.d $t0, $t0, $t1
 ld.d $a1, $a0, LIBRARY_SPECS
 add.d $a1, $a1, $t0
 move $a3, $sp
 gpustub_call gpustub1_answer
 b 5f
1: /* A library's constructor may set the rounding mode, which must not affect the call. */
 movfcsr2gr $t0, $fcsr0
 st.d $t0, $sp, FCSR
 gpustub_floats fst.d
 move $a0, $t5
 move $a1, $sp
 gpustub_call gpustub1_enter
 move $t0, $a0
 gpustub_floats fld.d
 ld.d $t1, $sp, FCSR
 movgr2fcsr $fcsr0, $t1
 beqz $t0, 5f
 ld.d $t4, $sp, OBSERVE
 bnez $t4, 6f
 gpustub_integers ld.d
 .cfi_remember_state
 gpustub_frame_end
 jr $t0
 .cfi_restore_state
5: ld.d $a0, $sp, RESULT
 move $a1, $zero
 movgr2fr.d $fa0, $zero
 movgr2fr.d $fa1, $zero
 .cfi_remember_state
 gpustub_frame_end
 ret
 .cfi_restore_state
 /* An observed call; see x86_64.S. ra and fp move into the record, t4; fp is above them, as above a frame record. */
6: gpustub_integers ld.d
 gpustub_frame_end
 st.d $fp, $t4, 0
 st.d $ra, $t4, 8
 addi.d $fp, $t4, 16
 .cfi_escape 0x10, 22, 2, 0x86, 0x70             /* fp at [fp - 16] */
 b 7f
 .cfi_endproc

 .cfi_startproc
 .cfi_signal_frame
 .cfi_escape 0x10, 22, 2, 0x86, 0x70
 .cfi_escape 0x16, 1, 5, 0x86, 0x78, 6, 0x31, 0x1c /* return address: [fp - 8] - 1 */
7: jirl $ra, $t0, 0
 b 8f
 .cfi_endproc

 .cfi_startproc
 .cfi_escape 0x10, 22, 2, 0x86, 0x70
 .cfi_escape 0x10, 1, 2, 0x86, 0x78
8: addi.d $t4, $fp, -16
 ld.d $ra, $t4, 8
 ld.d $fp, $t4, 0
 .cfi_same_value 1
 .cfi_same_value 22
 gpustub_frame_begin
 st.d $a0, $sp, 0
 st.d $a1, $sp, 8
 gpustub_floats fst.d
 move $a1, $a0
 move $a0, $t4
 gpustub_call gpustub1_returned
 gpustub_floats fld.d
 ld.d $a0, $sp, 0
 ld.d $a1, $sp, 8
 gpustub_frame_end
 ret
 .cfi_endproc
 .size gpustub1_slow, . - gpustub1_slow

/* ---- the exit --------------------------------------------------------------------------------- */

 .section .text.gpustub1_exit, "axG", %progbits, gpustub1.exit, comdat
.Lexit:
 gpustub_address $t0, gpustub1_exiting
 addi.d $t1, $zero, 1
 st.b $t1, $t0, 0
 gpustub_load $t0, gpustub1_on_exit
 beqz $t0, 1f
 jr $t0
1: ret
 gpustub_kept_by_exit

 .section .note.GNU-stack, "", %progbits
