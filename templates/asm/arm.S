/* arm.S: trampolines for 32-bit Arm ELF, ARMv7, little endian, hard-float.
 *
 * AAPCS32 (github.com/ARM-software/abi-aa), with the VFP variant: integer arguments in r0-r3, then on the stack;
 * floating point and vectors in d0-d7, but not those of variadic functions; the hidden result pointer in r0.
 * Results are in r0-r3 or d0-d7. The return address is in lr. Only ip (r12) is free at every call, and linkers
 * insert veneers, which use it, into branches that reach another state or more than 32 MiB: so the thunk passes
 * the slot, and the library's entry the part, on the stack.
 *
 * The code is of the Arm state, in which `ldr pc` enters functions of either state. Linkers let callers of the
 * Thumb state branch here by `blx`, or by a veneer.
 *
 * Unwind tables are those of the EHABI (EHABI32, 10.3 "Frame unwinding instructions"): they describe a function as
 * a whole, and refer to __aeabi_unwind_cpp_pr0 of libgcc_s, as those of C code do.
 *
 * A warm call is `movw; movt; ldr pc`. An unbound slot points at the thunk after its trampoline. */

#include "frame.h"

 .syntax unified
 .arch armv7-a
 .fpu vfpv3-d16
 .eabi_attribute 24, 1          @ Tag_ABI_align_needed: 8 bytes
 .eabi_attribute 25, 1          @ Tag_ABI_align_preserved
 .eabi_attribute 28, 1          @ Tag_ABI_VFP_args: in registers
 .arm

/* Distance of a symbol from the pc of the instruction at the label `here`, which follows. */
.macro gpustub_distance register, symbol, here
 movw \register, #:lower16:(\symbol - (\here + 8))
 movt \register, #:upper16:(\symbol - (\here + 8))
\here:
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
 gpustub_distance ip, .Lslot_\name, .Lhere_\name
 ldr pc, [pc, ip]
.Lthunk_\name:
 gpustub_distance ip, .Lslot_\name, .Lthere_\name
 add ip, pc, ip
 str ip, [sp, #-8]!
 b .Lenter_\library
 .size \name, . - \name
 gpustub_slot \library, \tables, \name, \spec
.endm

/* Entry of a library's unbound calls: passes the part to gpustub1_slow. */
.macro gpustub_entry library
 .section .text.gpustub_enter.\library, "ax", %progbits
 .p2align 2
.Lenter_\library:
 gpustub_distance ip, .Lpart_\library, .Lhere_\library
 add ip, pc, ip
 str ip, [sp, #4]
 b gpustub1_slow
.endm

/* Adapter thunk: target of the slot of a function with one more argument, which is null; see aarch64.S. The fifth and
 * the sixth argument are on the stack, where the caller left no room: the thunk calls its target, from a frame of
 * its own. */
.macro gpustub_null_argument library, name, argument
 gpustub_section .rodata.gpustub.\name, aG, \library, \name
 .long .Ladapter_\name - .
 gpustub_section .text.gpustub.\name, axG, \library, \name
.Ladapter_\name:
 .fnstart
 gpustub_distance ip, gpustub1_targets_\name, .Ladapt_\name
 ldr ip, [pc, ip]
 cmp ip, #0
 beq .Lthunk_\name
 push {r4, lr}
 .save {r4, lr}
 sub sp, sp, #8
 .pad #8
 ldr r4, [sp, #16]
 .if \argument == 5
 str r4, [sp]
 mov r4, #0
 str r4, [sp, #4]
 .elseif \argument == 4
 str r4, [sp, #4]
 mov r4, #0
 str r4, [sp]
 .else
 str r4, [sp, #4]
 str r3, [sp]
 .endif
 gpustub_argument 3, \argument, 2
 gpustub_argument 2, \argument, 1
 gpustub_argument 1, \argument, 0
 gpustub_argument 0, \argument
 blx ip
 add sp, sp, #8
 pop {r4, pc}
 .fnend
.endm

.macro gpustub_argument number, null, before
 .if \number > \null
 mov r\number, r\before
 .elseif \number == \null
 mov r\number, #0
 .endif
.endm

#include "elf_table.h"

/* ---- the first call ------------------------------------------------------------------------- */

/* struct frame, then fields that only this file uses; below r11, at which are the caller's r11 and lr, the slot and
 * the part. */
#define INDIRECT 16
#define STACK    20
#define RESULT   24
#define OBSERVE  28
#define PART     32
#define FPSCR    36
#define VECTORS  40
#define FRAME    104
#define FROM_SLOT 8
#define FROM_PART 12
#define FROM_CALLER 16
/* struct observed_call: the caller's r11, sp and lr, in the order of an unwind instruction */
#define OBSERVED_SP 4
#define OBSERVED_LR 8

.macro gpustub_vectors instruction, register
 add \register, sp, #VECTORS
 \instruction \register, {d0-d7}
.endm

 .section .text.gpustub1_slow, "axG", %progbits, gpustub1.slow, comdat
 .p2align 4
 .globl gpustub1_slow
 .hidden gpustub1_slow
 .type gpustub1_slow, %function
gpustub1_slow:
 .fnstart
 .pad #8                        @ the slot and the part
 push {r11, lr}
 .save {r11, lr}
 mov r11, sp
 .setfp r11, sp
 sub sp, sp, #FRAME
 .pad #FRAME
 stm sp, {r0-r3}
 add ip, r11, #FROM_CALLER
 str ip, [sp, #STACK]
 mov ip, #0
 str ip, [sp, #INDIRECT]
 str ip, [sp, #RESULT]
 str ip, [sp, #OBSERVE]
 ldr ip, [r11, #FROM_PART]
 str ip, [sp, #PART]
 ldr lr, [r11, #FROM_SLOT]
 ldr r2, [lr, #SLOT_CODE]
 dmb ish
 ands r2, r2, #SLOT_REASON
 beq 0f
 @ No function to jump to: no other register is to be preserved.
 ldr r0, [ip]                   @ the library
 ldr r1, [lr, #SLOT_INFO]
 ldrh r1, [lr, r1]
 mov r3, #SPEC_SIZE
 ldr ip, [r0, #LIBRARY_SPECS]
 mla r1, r1, r3, ip
 mov r3, sp
 bl gpustub1_answer
 b 9f
0: @ A library's constructor may set the rounding mode, which must not affect the call.
 vmrs ip, fpscr
 str ip, [sp, #FPSCR]
 gpustub_vectors vstmia, ip
 mov r0, lr
 mov r1, sp
 bl gpustub1_enter
 mov ip, r0
 gpustub_vectors vldmia, lr
 ldr lr, [sp, #FPSCR]
 vmsr fpscr, lr
 cmp ip, #0
 beq 9f
 ldr lr, [sp, #OBSERVE]
 cmp lr, #0
 bne 10f
 ldm sp, {r0-r3}
 mov sp, r11
 pop {r11, lr}
 add sp, sp, #8
 bx ip
9: ldr r0, [sp, #RESULT]
 mov r1, #0
 .irp i, 0, 1, 2, 3            @ a struct of up to four doubles
 vmov d\i, r1, r1
 .endr
 mov sp, r11
 pop {r11, lr}
 add sp, sp, #8
 bx lr
 @ An observed call; see x86_64.S. r11, sp and lr move into the record, lr.
10: ldr r0, [r11]
 str r0, [lr]
 add r0, r11, #FROM_CALLER
 str r0, [lr, #OBSERVED_SP]
 ldr r0, [r11, #4]
 str r0, [lr, #OBSERVED_LR]
 ldm sp, {r0-r3}
 add sp, r11, #FROM_CALLER
 mov r11, lr
 .fnend

 .fnstart
 .unwind_raw 0, 0x9b, 0x86, 0x80 @ vsp = r11; pop {r11, sp, lr}
 blx ip
 mov ip, r11
 ldr lr, [ip, #OBSERVED_LR]
 ldr r11, [ip]
 .fnend

 .fnstart
 sub sp, sp, #8
 .pad #8
 push {r11, lr}
 .save {r11, lr}
 mov r11, sp
 .setfp r11, sp
 sub sp, sp, #FRAME
 .pad #FRAME
 stm sp, {r0-r3}
 gpustub_vectors vstmia, lr
 mov r1, r0
 mov r0, ip
 bl gpustub1_returned
 gpustub_vectors vldmia, lr
 ldm sp, {r0-r3}
 mov sp, r11
 pop {r11, lr}
 add sp, sp, #8
 bx lr
 .fnend
 .size gpustub1_slow, . - gpustub1_slow

/* ---- the exit --------------------------------------------------------------------------------- */

 .section .text.gpustub1_exit, "axG", %progbits, gpustub1.exit, comdat
 .p2align 2
.Lexit:
 gpustub_distance r0, gpustub1_exiting, .Lexit_flag
 add r0, pc, r0
 mov r1, #1
 strb r1, [r0]
 gpustub_distance r0, gpustub1_on_exit, .Lexit_hook
 ldr ip, [pc, r0]
 cmp ip, #0
 bxeq lr
 bx ip
 gpustub_kept_by_exit

 .section .note.GNU-stack, "", %progbits
