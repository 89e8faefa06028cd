/* powerpc64.S: trampolines for 64-bit POWER ELF, ABI version 2, little endian.
 *
 * "64-Bit ELF V2 ABI Specification" (openpowerfoundation.org): integer arguments in r3-r10, floating point in
 * f1-f13, each of which leaves out an integer register as well, vectors in v2-v13, the hidden result pointer in
 * r3. The first word of the parameter area on the stack, at 32(r1), belongs to r3. Results are in r3 and r4, in
 * up to f1-f8 or v2-v9. The return address is in lr, which a function saves in its caller's frame, at 16(r1).
 * r0, r11, r12 and ctr are free at every call.
 *
 * r2 points at the TOC of an image. A function begins with a global entry, which computes r2 from its address
 * in r12, and a local entry for callers with the same r2. A caller in the image of a trampoline uses the local
 * entry and keeps r2, but the real function has another one. `.localentry name, 1` says that the function does
 * not preserve r2 (3.4.1, st_other): the linker lets such a call pass through code that saves r2, and writes
 * the instruction that restores it over the `nop` after the call. A call without `nop`, of a function that is
 * declared hidden, does not link. The trampoline knows neither r2 nor r12, and finds the slot by the return
 * address of a branch to its next instruction: `bcl 20, 31, .+4`, which processors do not predict as a call.
 * No offset is limited to 16 bits.
 *
 * A warm call is the trampoline's eight instructions and the two for r2. An unbound slot points at the thunk
 * after its trampoline, which finds everything by r12, passes the slot in r0 and the part in r11. All jumps are
 * by ctr, because the linker's veneers for distant branches use r12. */

#include "frame.h"

 .abiversion 2

/* Address of a symbol, by r12, which holds the address of the label `here`. */
.macro gpustub_address register, symbol, here
 addis \register, 12, (\symbol - \here)@ha
 addi \register, \register, (\symbol - \here)@l
.endm

/* Loads a word at a symbol, by r12 as before; the load is `distance` bytes after `here`. Assemblers have no
 * operand for the lower half of an address that depends on the place of a load of a doubleword; its lowest
 * two bits, which belong to the instruction, are 0. */
.macro gpustub_load register, symbol, here, distance
 addis \register, 12, (\symbol - \here)@ha
 .reloc ., R_PPC64_REL16_LO, \symbol + \distance
 ld \register, 0(\register)
.endm

/* Jump to a global entry in r12. */
.macro gpustub_jump
 mtctr 12
 bctr
.endm

/* The sections of a function are one group: see x86_64.S. */
.macro gpustub_function library, tables, name, spec
 .section .text.gpustub.\name, "axG", %progbits, gpustub1.\library\().\name, comdat
 .p2align 4
 .globl \name
 GPUSTUB_HIDE(\name)
 .type \name, %function
\name:
 .localentry \name, 1
.Ltrampoline_\name:
 mflr 0
 bcl 20, 31, .Lhere_\name
.Lhere_\name:
 mflr 12
 mtlr 0
 gpustub_load 12, .Lslot_\name, .Lhere_\name, 12
 gpustub_jump
.Lthunk_\name:
 gpustub_address 11, .Lslot_\name, .Lthunk_\name
 mr 0, 11
 gpustub_address 12, .Lenter_\library, .Lthunk_\name
 gpustub_jump
 .size \name, . - \name
 gpustub_slot \library, \tables, \name, \spec
.endm

/* Entry of a library's unbound calls: passes the part to gpustub1_slow. */
.macro gpustub_entry library
 .section .text.gpustub_enter.\library, "ax", %progbits
.Lenter_\library:
 .cfi_startproc
 gpustub_address 11, .Lpart_\library, .Lenter_\library
 gpustub_address 12, gpustub1_slow, .Lenter_\library
 gpustub_jump
 .cfi_endproc
.endm

/* Adapter thunk; see aarch64.S: loads are not ordered here, either. */
.macro gpustub_null_argument library, name, argument
 gpustub_section .rodata.gpustub.\name, aG, \library, \name
 .long .Ladapter_\name - .
 gpustub_section .text.gpustub.\name, axG, \library, \name
.Ladapter_\name:
 gpustub_load 11, gpustub1_targets_\name, .Ladapter_\name, 4
 cmpldi 11, 0
 bne 0f
 addi 12, 12, .Lthunk_\name - .Ladapter_\name
 gpustub_jump
0: mr 12, 11
 gpustub_argument 10, \argument, 9
 gpustub_argument 9, \argument, 8
 gpustub_argument 8, \argument, 7
 gpustub_argument 7, \argument, 6
 gpustub_argument 6, \argument, 5
 gpustub_argument 5, \argument, 4
 gpustub_argument 4, \argument, 3
 gpustub_argument 3, \argument
 gpustub_jump
.endm

/* r3 is argument 0. */
.macro gpustub_argument register, null, before
 .if \register > \null + 3
 mr \register, \before
 .elseif \register == \null + 3
 li \register, 0
 .endif
.endm

#include "elf_table.h"

/* ---- the first call ------------------------------------------------------------------------- */

/* Frame at r1: the header of 32 bytes, struct frame, then fields that only this file uses. r31 is the caller's
 * r1. */
#define FRAME_AT 32
#define STACK    (FRAME_AT + 72)
#define RESULT   (FRAME_AT + 80)
#define OBSERVE  (FRAME_AT + 88)
#define PART     (FRAME_AT + 96)
#define FPSCR    144
#define VSCR     160
#define FLOATS   176
#define VECTORS  288
#define FRAME    496
#define SAVED_R31 -8
#define LR       16

.macro gpustub_integers instruction
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7
 \instruction 3 + \i, FRAME_AT + \i * 8(1)
 .endr
.endm

/* f1-f13. */
.macro gpustub_floats instruction
 .irp i, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
 \instruction \i, FLOATS + \i * 8 - 8(1)
 .endr
.endm

/* v2-v13, by r11 and r12. */
.macro gpustub_vectors instruction
 addi 11, 1, VECTORS
 li 12, 0
 .irp i, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
 \instruction \i, 11, 12
 addi 12, 12, 16
 .endr
.endm

/* Both status registers: a library's constructor may set the rounding or denormal mode. */
.macro gpustub_modes_save
 mffs 0
 stfd 0, FPSCR(1)
 mfvscr 0
 addi 11, 1, VSCR
 stvx 0, 0, 11
.endm

.macro gpustub_modes_restore
 lfd 0, FPSCR(1)
 mtfsf 255, 0
 addi 11, 1, VSCR
 lvx 0, 0, 11
 mtvscr 0
.endm

/* Begins a frame; the return address is in r12. */
.macro gpustub_frame_begin
 std 12, LR(1)
 .cfi_offset 65, LR
 std 31, SAVED_R31(1)
 .cfi_offset 31, SAVED_R31
 mr 31, 1
 stdu 1, -FRAME(1)
 .cfi_def_cfa 31, 0
.endm

.macro gpustub_frame_end
 mr 1, 31
 .cfi_def_cfa 1, 0
 ld 12, LR(1)
 ld 31, SAVED_R31(1)
 mtlr 12
 .cfi_restore 65
 .cfi_restore 31
.endm

 .section .text.gpustub1_slow, "axG", %progbits, gpustub1.slow, comdat
 .p2align 4
 .globl gpustub1_slow
 .hidden gpustub1_slow
 .type gpustub1_slow, %function
gpustub1_slow:
 .cfi_startproc
 addis 2, 12, (.TOC. - gpustub1_slow)@ha
 addi 2, 2, (.TOC. - gpustub1_slow)@l
 .localentry gpustub1_slow, . - gpustub1_slow
 mflr 12
 gpustub_frame_begin
 gpustub_integers std
 addi 12, 31, 32 + 64           /* the words of r3-r10 precede it */
 std 12, STACK(1)
 li 12, 0
 std 12, RESULT(1)
 std 12, OBSERVE(1)
 std 11, PART(1)
 mr 12, 0                       /* the slot */
 lwz 5, SLOT_CODE(12)
 lwsync
 andi. 5, 5, SLOT_REASON
 beq 0f
 /* No function to jump to: no other register is to be preserved. */
 ld 3, 0(11)                    /* the library */
 lwa 4, SLOT_INFO(12)
 lhzx 4, 12, 4
 mulli 4, 4, SPEC_SIZE
 ld 11, LIBRARY_SPECS(3)
 add 4, 11, 4
 addi 6, 1, FRAME_AT
 bl gpustub1_answer
 nop
 b 2f
0:
 gpustub_floats stfd
 mr 3, 12
 gpustub_vectors stvx
 gpustub_modes_save
 addi 4, 1, FRAME_AT
 bl gpustub1_enter
 nop
 gpustub_modes_restore
 gpustub_vectors lvx
 gpustub_floats lfd
 cmpldi 3, 0
 beq 2f
 mr 0, 3
 ld 11, OBSERVE(1)
 cmpldi 11, 0
 gpustub_integers ld
 bne 3f
 .cfi_remember_state
 gpustub_frame_end
 mr 12, 0
 gpustub_jump
 .cfi_restore_state
2: ld 3, RESULT(1)
 li 4, 0
 li 12, 0
 std 12, FPSCR(1)
 .irp i, 1, 2, 3, 4, 5, 6, 7, 8 /* a struct of up to eight floats */
 lfd \i, FPSCR(1)
 .endr
 .cfi_remember_state
 gpustub_frame_end
 blr
 .cfi_restore_state
 /* An observed call; see x86_64.S. r31 and lr move into the record, r11. */
3: gpustub_frame_end
 std 31, 0(11)
 std 12, 8(11)
 mr 31, 11
 .cfi_escape 0x10, 31, 2, 0x8f, 0               /* r31 at [r31] */
 mr 12, 0
 mtctr 12
 b 4f
 .cfi_endproc

 /* libgcc finds the caller's r2 by the instruction at the return address (rs6000/linux-unwind.h), which it does
  * not see here. */
 .cfi_startproc
 .cfi_signal_frame
 .cfi_offset 2, 24
 .cfi_escape 0x10, 31, 2, 0x8f, 0
 .cfi_escape 0x16, 65, 5, 0x8f, 8, 6, 0x31, 0x1c /* return address: [r31 + 8] - 1 */
4: bctrl
 b 5f
 .cfi_endproc

 .cfi_startproc
 .cfi_offset 2, 24
 .cfi_escape 0x10, 31, 2, 0x8f, 0
 .cfi_escape 0x10, 65, 2, 0x8f, 8
5: mr 0, 31
 ld 12, 8(31)
 ld 31, 0(31)
 .cfi_same_value 31
 .cfi_register 65, 12
 gpustub_frame_begin
 bcl 20, 31, 6f
6: mflr 12
 addis 2, 12, (.TOC. - 6b)@ha
 addi 2, 2, (.TOC. - 6b)@l
 std 3, FRAME_AT(1)
 std 4, FRAME_AT + 8(1)
 gpustub_floats stfd
 gpustub_vectors stvx
 mr 4, 3
 mr 3, 0
 bl gpustub1_returned
 nop
 gpustub_vectors lvx
 gpustub_floats lfd
 ld 3, FRAME_AT(1)
 ld 4, FRAME_AT + 8(1)
 gpustub_frame_end
 blr
 .cfi_endproc
 .size gpustub1_slow, . - gpustub1_slow

/* ---- the exit --------------------------------------------------------------------------------- */

 .section .text.gpustub1_exit, "axG", %progbits, gpustub1.exit, comdat
.Lexit:
 gpustub_address 11, gpustub1_exiting, .Lexit
 li 0, 1
 stb 0, 0(11)
 gpustub_address 11, gpustub1_on_exit, .Lexit
 ld 11, 0(11)
 cmpldi 11, 0
 beqlr
 mr 12, 11
 gpustub_jump
 gpustub_kept_by_exit

 .section .note.GNU-stack, "", %progbits
