/* x86.S: trampolines for i386 ELF, 32 bits.
 *
 * "System V ABI, Intel386 Architecture Processor Supplement" (gitlab.com/x86-psABIs/i386-ABI): all arguments are on
 * the stack, the first at 4(esp); vectors of prototyped functions in xmm/ymm/zmm 0-2; the static chain in ecx;
 * results in eax and edx, st(0) or xmm0. The hidden result pointer is the first argument on the stack, and the
 * function removes it: `ret $4`. eax is free at every call. Functions with the attributes regparm(1) and __m64
 * arguments are not supported.
 *
 * No address is relative to eip: the trampoline finds its slot by the return address of a call of its next
 * instruction, which processors do not predict as a call. A helper in a section of its own (`__x86.get_pc_thunk`)
 * would be a second call, and belong to one library only.
 *
 * A warm call is `endbr32; call; pop; jmp *slot`. An unbound slot points at the thunk after its trampoline, which
 * passes the slot in eax, and through its library's entry in ebp, and the part in eax. */

#include "frame.h"

/* The instruction, for assemblers before binutils 2.29. */
#define ENDBR32 .byte 0xf3, 0x0f, 0x1e, 0xfb

/* Address of the label `here`, which follows, in a register. */
.macro gpustub_here register, here
 call \here
\here:
 popl %\register
.endm

/* The sections of a function are one group: see x86_64.S. */
.macro gpustub_function library, tables, name, spec
 .section .text.gpustub.\name, "axG", %progbits, gpustub1.\library\().\name, comdat
 .p2align 4
 .globl \name
 GPUSTUB_HIDE(\name)
 .type \name, @function
\name:
.Ltrampoline_\name:
 ENDBR32
 gpustub_here eax, .Lhere_\name
 jmp *(.Lslot_\name - .Lhere_\name)(%eax)
.Lthunk_\name:
 ENDBR32
 gpustub_here eax, .Lthere_\name
 leal (.Lslot_\name - .Lthere_\name)(%eax), %eax
 jmp .Lenter_\library
 .size \name, . - \name
 gpustub_slot \library, \tables, \name, \spec
.endm

/* Entry of a library's unbound calls: begins the frame of gpustub1_slow, and passes the part in eax. */
.macro gpustub_entry library
 .section .text.gpustub_enter.\library, "ax", @progbits
.Lenter_\library:
 .cfi_startproc
 pushl %ebp
 .cfi_def_cfa_offset 8
 .cfi_offset %ebp, -8
 movl %eax, %ebp
 call .Lhere_\library
.Lhere_\library:
 .cfi_def_cfa_offset 12
 popl %eax
 .cfi_def_cfa_offset 8
 leal (.Lpart_\library - .Lhere_\library)(%eax), %eax
 jmp gpustub1_slow
 .cfi_endproc
.endm

/* Adapter thunk: target of the slot of a function with one more argument, which is null. It calls its target with
 * copies of the arguments, as many as a function with an adapter thunk may have (MAX_ADAPTER_ARGS), read from the
 * caller's frame whether they are arguments or not. Loads stay in order. */
.macro gpustub_null_argument library, name, argument
 gpustub_section .rodata.gpustub.\name, aG, \library, \name
 .long .Ladapter_\name - .
 gpustub_section .text.gpustub.\name, axG, \library, \name
.Ladapter_\name:
 ENDBR32
 .cfi_startproc
 subl $28, %esp
 .cfi_def_cfa_offset 32
 call .Ladapt_\name
.Ladapt_\name:
 .cfi_def_cfa_offset 36
 popl %eax
 .cfi_def_cfa_offset 32
 .irp i, 0, 1, 2, 3, 4, 5
 gpustub_argument \i, \argument
 .endr
 call *(gpustub1_targets_\name - .Ladapt_\name)(%eax)
 addl $28, %esp
 .cfi_def_cfa_offset 4
 ret
 .cfi_endproc
.endm

.macro gpustub_argument number, null
 .if \number == \null
 movl $0, \number * 4(%esp)
 .else
 .if \number < \null
 movl 32 + \number * 4(%esp), %ecx
 .else
 movl 28 + \number * 4(%esp), %ecx
 .endif
 movl %ecx, \number * 4(%esp)
 .endif
.endm

#include "elf_table.h"

/* ---- the first call ------------------------------------------------------------------------- */

/* Frame at esp: arguments of callees, struct frame, then fields that only this file uses; 64-byte aligned for
 * zmm. */
#define FRAME_AT 16
#define POPS     (FRAME_AT + 0)         /* `indirect`: whether the function removes its hidden result pointer */
#define STACK    (FRAME_AT + 4)
#define RESULT   (FRAME_AT + 8)
#define OBSERVE  (FRAME_AT + 12)
#define PART     (FRAME_AT + 16)
#define MXCSR    36
#define X87CW    40
#define ECX      44
#define EDX      48
#define VECTORS  64
#define FRAME    (VECTORS + 3 * 64)

/* Vector registers of this CPU that the kernel saves; see x86_64.S. */
 .section .bss.gpustub1_vectors, "awG", @nobits, gpustub1.slow, comdat
.Lvectors: .byte 0              /* 0 unknown, 1 none, 2 xmm, 3 ymm, 4 zmm */

/* Saves or restores the first `count` vector registers at `offset`; ebx is the address of .Lhere. */
.macro gpustub_vectors offset, count, save
 cmpb $2, .Lvectors - .Lhere(%ebx)
 jb 93f
 je 92f
 cmpb $3, .Lvectors - .Lhere(%ebx)
 je 91f
 gpustub_move vmovaps, zmm, \offset, \count, \save
 jmp 93f
91:
 gpustub_move vmovaps, ymm, \offset, \count, \save
 jmp 93f
92:
 gpustub_move movaps, xmm, \offset, \count, \save
93:
.endm

.macro gpustub_move instruction, register, offset, count, save
 .irp i, 0, 1, 2
 .if \i < \count
 .if \save
 \instruction %\register\i, \offset + \i * 64(%esp)
 .else
 \instruction \offset + \i * 64(%esp), %\register\i
 .endif
 .endif
 .endr
.endm

 .section .text.gpustub1_slow, "axG", @progbits, gpustub1.slow, comdat
 .p2align 4
 .globl gpustub1_slow
 .hidden gpustub1_slow
 .type gpustub1_slow, @function
gpustub1_slow:
 .cfi_startproc
 .cfi_def_cfa_offset 8          /* gpustub_entry has saved ebp */
 .cfi_offset %ebp, -8
 pushl %eax                     /* the part */
 .cfi_def_cfa_offset 12
 pushl %ebp                     /* the slot */
 .cfi_def_cfa_offset 16
 pushl %ebx
 .cfi_def_cfa_offset 20
 .cfi_offset %ebx, -20
 leal 12(%esp), %ebp
 .cfi_def_cfa %ebp, 8
 subl $FRAME, %esp
 andl $-64, %esp
 movl %ecx, ECX(%esp)
 movl %edx, EDX(%esp)
 leal 8(%ebp), %ecx
 movl %ecx, STACK(%esp)
 xorl %ecx, %ecx
 movl %ecx, POPS(%esp)
 movl %ecx, RESULT(%esp)
 movl %ecx, OBSERVE(%esp)
 movl %eax, PART(%esp)
 movl -8(%ebp), %ecx
 movl SLOT_CODE(%ecx), %edx
 andl $SLOT_REASON, %edx
 jz 0f
 /* No function to jump to: no other register is to be preserved. */
 movl (%eax), %eax              /* the library */
 movl SLOT_INFO(%ecx), %ebx
 movzwl (%ecx,%ebx), %ebx
 imull $SPEC_SIZE, %ebx
 addl LIBRARY_SPECS(%eax), %ebx
 movl %eax, 0(%esp)
 movl %ebx, 4(%esp)
 movl %edx, 8(%esp)
 leal FRAME_AT(%esp), %eax
 movl %eax, 12(%esp)
 call gpustub1_answer
 jmp 9f
0: call .Lhere
.Lhere:
 popl %ebx
 /* A library's constructor may set the rounding or denormal mode, which must not affect the call. */
 fnstcw X87CW(%esp)
 cmpb $0, .Lvectors - .Lhere(%ebx)
 jne 2f
 /* As in x86_64.S; CPUID.1:EDX has SSE (25). */
 pushl %esi
 pushl %ebx
 movl $1, %esi
 movl $1, %eax
 cpuid
 btl $25, %edx
 jnc 1f
 movl $2, %esi
 andl $0x18000000, %ecx
 cmpl $0x18000000, %ecx
 jne 1f
 xorl %ecx, %ecx
 xgetbv
 movl %eax, %ecx
 andl $6, %eax
 cmpl $6, %eax
 jne 1f
 movl $3, %esi
 andl $0xe6, %ecx
 cmpl $0xe6, %ecx
 jne 1f
 xorl %eax, %eax
 cpuid
 cmpl $7, %eax
 jb 1f
 movl $7, %eax
 xorl %ecx, %ecx
 cpuid
 btl $16, %ebx
 jnc 1f
 movl $4, %esi
1: popl %ebx
 movl %esi, %eax
 popl %esi
 movb %al, .Lvectors - .Lhere(%ebx)
2: cmpb $2, .Lvectors - .Lhere(%ebx)
 jb 3f
 stmxcsr MXCSR(%esp)
3: gpustub_vectors VECTORS, 3, 1
 movl -8(%ebp), %eax
 movl %eax, 0(%esp)
 leal FRAME_AT(%esp), %eax
 movl %eax, 4(%esp)
 call gpustub1_enter
 gpustub_vectors VECTORS, 3, 0
 cmpb $2, .Lvectors - .Lhere(%ebx)
 jb 4f
 ldmxcsr MXCSR(%esp)
4: fldcw X87CW(%esp)
 testl %eax, %eax
 jz 9f
 cmpl $0, OBSERVE(%esp)
 jne 10f
 movl ECX(%esp), %ecx
 movl EDX(%esp), %edx
 movl -12(%ebp), %ebx
 .cfi_remember_state
 .cfi_restore %ebx
 leave
 .cfi_def_cfa %esp, 4
 .cfi_restore %ebp
 jmp *%eax
 .cfi_restore_state
9: movl RESULT(%esp), %eax
 xorl %edx, %edx
 movl POPS(%esp), %ecx
 movl -12(%ebp), %ebx
 .cfi_remember_state
 .cfi_restore %ebx
 leave
 .cfi_def_cfa %esp, 4
 .cfi_restore %ebp
 testl %ecx, %ecx
 jnz 8f
 ret
8: ret $4
 .cfi_restore_state
 /* An observed call; see x86_64.S. A function that removes its hidden result pointer leaves esp, and so the place
  * of the return address, 4 higher. */
10: movl OBSERVE(%esp), %ecx
 movl 0(%ebp), %edx
 movl %edx, 0(%ecx)
 movl 4(%ebp), %edx
 movl %edx, 4(%ecx)
 movl %ecx, 0(%ebp)
 .cfi_escape 0x10, 5, 3, 0x75, 0, 6             /* ebp at **ebp */
 movl ECX(%esp), %ecx
 movl EDX(%esp), %edx
 movl -12(%ebp), %ebx
 .cfi_restore %ebx
 leave
 .cfi_def_cfa %esp, 4
 .cfi_escape 0x10, 5, 2, 0x75, 0                /* ebp at *ebp */
 jmp 11f
 .cfi_endproc

 .cfi_startproc
 .cfi_signal_frame
 .cfi_escape 0x10, 5, 2, 0x75, 0
 .cfi_escape 0x16, 8, 5, 0x75, 4, 6, 0x31, 0x1c /* return address: 4(ebp) - 1 */
11: addl $4, %esp
 .cfi_def_cfa_offset 0
 call *%eax
 pushl 4(%ebp)
 .cfi_def_cfa_offset 4
 jmp 12f
 .cfi_endproc

/* The results in eax and edx, on the x87 stack, and in the first vector register. */
#define OBSERVED_X87     16
#define OBSERVED_VECTORS 128
 .cfi_startproc
 .cfi_escape 0x10, 5, 2, 0x75, 0
12: movl %ebp, %ecx
 movl 0(%ebp), %ebp
 .cfi_same_value %ebp
 pushl %ebp
 .cfi_def_cfa_offset 8
 .cfi_offset %ebp, -8
 movl %esp, %ebp
 .cfi_def_cfa_register %ebp
 pushl %ebx
 .cfi_offset %ebx, -12
 pushl %eax
 pushl %edx
 subl $OBSERVED_VECTORS + 64, %esp
 andl $-64, %esp
 movl %ecx, 0(%esp)
 movl %eax, 4(%esp)
 call 13f
13: popl %ebx
 leal .Lhere - 13b(%ebx), %ebx
 gpustub_vectors OBSERVED_VECTORS, 1, 1
 fnsave OBSERVED_X87(%esp)
 fldcw OBSERVED_X87(%esp)
 call gpustub1_returned
 frstor OBSERVED_X87(%esp)
 gpustub_vectors OBSERVED_VECTORS, 1, 0
 movl -12(%ebp), %edx
 movl -8(%ebp), %eax
 movl -4(%ebp), %ebx
 .cfi_restore %ebx
 leave
 .cfi_def_cfa %esp, 4
 .cfi_restore %ebp
 ret
 .cfi_endproc
 .size gpustub1_slow, . - gpustub1_slow

/* ---- the exit --------------------------------------------------------------------------------- */

 .section .text.gpustub1_exit, "axG", @progbits, gpustub1.exit, comdat
.Lexit:
 ENDBR32
 call 1f
1: popl %eax
 movb $1, gpustub1_exiting - 1b(%eax)
 movl gpustub1_on_exit - 1b(%eax), %eax
 testl %eax, %eax
 jz 2f
 jmp *%eax
2: ret
 gpustub_kept_by_exit

/* As in x86_64.S; properties of 32-bit files are aligned to 4. */
 .section .note.gnu.property, "a"
 .p2align 2
 .long 4, 12, 5
 .asciz "GNU"
 .long 0xc0000002, 4, 3

 .section .note.GNU-stack, "", @progbits
