/* riscv64.S: trampolines for RISC-V ELF, 64 bits, double-float ABI (LP64D).
 *
 * psABI (github.com/riscv-non-isa/riscv-elf-psabi-doc, riscv-cc.adoc): integer arguments in a0-a7, floating
 * point in fa0-fa7 and then in integer registers, variadic arguments in integer registers only, the hidden
 * result pointer in a0, the return address in ra, the static chain in t2. t3-t6 are free at every call; the
 * slot is passed in t4 and the part in t5, because `tail` uses t1 and entries of a PLT use t1 and t3.
 * Functions of the standard vector calling convention variant take vectors in v0 and v8-v23 and preserve the
 * others; C code does not, so the first call saves all. vl and vtype are unspecified at an entry.
 *
 * Jumps by t0 or ra would be predicted as returns (Unprivileged ISA, table "Return-address stack prediction
 * hints"), so the warm call jumps by t3. Linker relaxation is off: it would move the thunk, which is at a
 * fixed offset from the trampoline. No landing pads (Zicfilp): linkers before binutils 2.45 warn about their
 * property note.
 *
 * A warm call is `auipc; ld; jr t3`. An unbound slot points at the thunk after its trampoline. */

#include "frame.h"

 .option norelax
 .option norvc

/* The sections of a function are one group: see x86_64.S. */
.macro gpustub_function library, tables, name, spec
 .section .text.gpustub.\name, "axG", %progbits, gpustub1.\library\().\name, comdat
 .p2align 4
 .globl \name
 GPUSTUB_HIDE(\name)
 .type \name, %function
\name:
.Ltrampoline_\name:
 auipc t3, %pcrel_hi(.Lslot_\name)
 ld t3, %pcrel_lo(.Ltrampoline_\name)(t3)
 jr t3
.Lthunk_\name:
 lla t4, .Lslot_\name
 tail .Lenter_\library
 .size \name, . - \name
 gpustub_slot \library, \tables, \name, \spec
.endm

/* Entry of a library's unbound calls: passes the part to gpustub1_slow. */
.macro gpustub_entry library
 .section .text.gpustub_enter.\library, "ax", %progbits
.Lenter_\library:
 .cfi_startproc
 lla t5, .Lpart_\library
 tail gpustub1_slow
 .cfi_endproc
.endm

/* Adapter thunk; see aarch64.S: loads are not ordered here, either. */
.macro gpustub_null_argument library, name, argument
 gpustub_section .rodata.gpustub.\name, aG, \library, \name
 .long .Ladapter_\name - .
 gpustub_section .text.gpustub.\name, axG, \library, \name
.Ladapter_\name:
 auipc t3, %pcrel_hi(gpustub1_targets_\name)
 ld t3, %pcrel_lo(.Ladapter_\name)(t3)
 bnez t3, .Ladapt_\name
 lla t4, .Lslot_\name
 tail .Lenter_\library
.Ladapt_\name:
 gpustub_argument 7, \argument, 6
 gpustub_argument 6, \argument, 5
 gpustub_argument 5, \argument, 4
 gpustub_argument 4, \argument, 3
 gpustub_argument 3, \argument, 2
 gpustub_argument 2, \argument, 1
 gpustub_argument 1, \argument, 0
 gpustub_argument 0, \argument
 jr t3
.endm

.macro gpustub_argument number, null, before
 .if \number > \null
 mv a\number, a\before
 .elseif \number == \null
 li a\number, 0
 .endif
.endm

#include "elf_table.h"

/* ---- the first call ------------------------------------------------------------------------- */

/* struct frame, then fields that only this file uses; below the saved ra and s0. */
#define STACK    72
#define RESULT   80
#define OBSERVE  88
#define PART     96
#define FCSR     104
#define FLOATS   112
#define SLOT     176
#define SCALABLE 184
#define FRAME    192
/* s0 is the CFA, 16 bytes above the frame. */
#define BELOW    208
#define SCALABLE_BELOW -24
/* struct observed_call */
#define OBSERVED_SCALABLE 16

.macro gpustub_integers instruction
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7
 \instruction a\i, \i * 8(sp)
 .endr
.endm

.macro gpustub_floats instruction
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7
 \instruction fa\i, FLOATS + \i * 8(sp)
 .endr
.endm

/* Saves or restores all vector registers at sp: vs8r.v and vl8re8.v by t1 (V extension, 7.9), which binutils
 * knows from 2.38 on. */
#define VECTOR_SAVE    0xe2830027
#define VECTOR_RESTORE 0xe2830007
.macro gpustub_vectors instruction
 csrr t0, 0xc22                 # vlenb, the bytes of a vector register
 slli t0, t0, 3
 mv t1, sp
 .irp i, 0, 8, 16, 24
 .long \instruction | \i << 7
 add t1, t1, t0
 .endr
.endm

.macro gpustub_vectors_save
 csrr t0, 0xc22
 slli t0, t0, 5
 sub sp, sp, t0
 gpustub_vectors VECTOR_SAVE
.endm

.macro gpustub_frame_begin
 addi sp, sp, -16
 .cfi_def_cfa_offset 16
 sd ra, 8(sp)
 sd s0, 0(sp)
 .cfi_offset ra, -8
 .cfi_offset s0, -16
 addi s0, sp, 16
 .cfi_def_cfa s0, 0
 addi sp, sp, -FRAME
.endm

.macro gpustub_frame_end
 addi sp, s0, -16
 .cfi_def_cfa sp, 16
 ld ra, 8(sp)
 ld s0, 0(sp)
 .cfi_restore ra
 .cfi_restore s0
 addi sp, sp, 16
 .cfi_def_cfa_offset 0
.endm

 .section .text.gpustub1_slow, "axG", %progbits, gpustub1.slow, comdat
 .p2align 4
 .globl gpustub1_slow
 .hidden gpustub1_slow
 .type gpustub1_slow, %function
gpustub1_slow:
 .cfi_startproc
 gpustub_frame_begin
 gpustub_integers sd
 sd s0, STACK(sp)
 sd zero, RESULT(sp)
 sd zero, OBSERVE(sp)
 sd t5, PART(sp)
 lw a2, SLOT_CODE(t4)
 fence r, rw
 andi a2, a2, SLOT_REASON
 beqz a2, 1f
 # No function to jump to: no other register is to be preserved.
 ld a0, 0(t5)                   # the library
 lw t0, SLOT_INFO(t4)
 add t0, t4, t0
 lbu t1, 1(t0)                  # not aligned
 lbu t0, 0(t0)
 slli t1, t1, 8
 or t0, t0, t1
 li t1, SPEC_SIZE
 mul t0, t0, t1
 ld a1, LIBRARY_SPECS(a0)
 add a1, a1, t0
 mv a3, sp
 call gpustub1_answer
 j 5f
1: # A library's constructor may set the rounding mode, which must not affect the call.
 frcsr t0
 sd t0, FCSR(sp)
 sd t4, SLOT(sp)
 gpustub_floats fsd
 call gpustub1_has_vectors
 sd a0, SCALABLE(sp)
 mv a1, sp
 mv t2, a0
 ld a0, SLOT(sp)
 beqz t2, 2f
 gpustub_vectors_save
2: call gpustub1_enter
 mv t3, a0
 ld t2, SCALABLE_BELOW(s0)
 beqz t2, 3f
 gpustub_vectors VECTOR_RESTORE
 addi sp, s0, -BELOW
3: gpustub_floats fld
 ld t0, FCSR(sp)
 fscsr t0
 beqz t3, 5f
 ld t4, OBSERVE(sp)
 bnez t4, 6f
 gpustub_integers ld
 .cfi_remember_state
 gpustub_frame_end
 jr t3
 .cfi_restore_state
5: ld a0, RESULT(sp)
 li a1, 0
 fmv.d.x fa0, zero
 fmv.d.x fa1, zero
 .cfi_remember_state
 gpustub_frame_end
 ret
 .cfi_restore_state
 # An observed call; see x86_64.S. ra and s0 move into the record, t4; s0 is above them, as it is above a frame
 # record (psABI, "Frame Pointer Convention").
6: sd t2, OBSERVED_SCALABLE(t4)
 gpustub_integers ld
 gpustub_frame_end
 sd s0, 0(t4)
 sd ra, 8(t4)
 addi s0, t4, 16
 .cfi_escape 0x10, 8, 2, 0x78, 0x70              # s0 at [s0 - 16]
 j 7f
 .cfi_endproc

 .cfi_startproc
 .cfi_signal_frame
 .cfi_escape 0x10, 8, 2, 0x78, 0x70
 .cfi_escape 0x16, 1, 5, 0x78, 0x78, 6, 0x31, 0x1c # return address: [s0 - 8] - 1
7: jalr t3
 j 8f
 .cfi_endproc

 .cfi_startproc
 .cfi_escape 0x10, 8, 2, 0x78, 0x70
 .cfi_escape 0x10, 1, 2, 0x78, 0x78
8: addi t4, s0, -16
 ld t2, OBSERVED_SCALABLE(t4)
 ld ra, 8(t4)
 ld s0, 0(t4)
 .cfi_same_value ra
 .cfi_same_value s0
 gpustub_frame_begin
 sd a0, 0(sp)
 sd a1, 8(sp)
 sd t2, SCALABLE(sp)
 gpustub_floats fsd
 mv a1, a0
 mv a0, t4
 beqz t2, 9f
 gpustub_vectors_save
9: call gpustub1_returned
 ld t2, SCALABLE_BELOW(s0)
 beqz t2, 10f
 gpustub_vectors VECTOR_RESTORE
 addi sp, s0, -BELOW
10: gpustub_floats fld
 ld a0, 0(sp)
 ld a1, 8(sp)
 gpustub_frame_end
 ret
 .cfi_endproc
 .size gpustub1_slow, . - gpustub1_slow

/* ---- the exit --------------------------------------------------------------------------------- */

 .section .text.gpustub1_exit, "axG", %progbits, gpustub1.exit, comdat
.Lexit:
 lla t0, gpustub1_exiting
 li t1, 1
 sb t1, 0(t0)
 lla t0, gpustub1_on_exit
 ld t1, 0(t0)
 beqz t1, 1f
 jr t1
1: ret
 gpustub_kept_by_exit

 .section .note.GNU-stack, "", %progbits
