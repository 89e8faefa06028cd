/* x86_64.S: trampolines for x86-64 ELF.
 *
 * System V psABI for x86-64, 3.2.3 "Parameter Passing": integer arguments in rdi rsi rdx rcx r8 r9,
 * vectors in xmm/ymm/zmm 0-7, the number of vector registers of a variadic call in al, the static
 * chain in r10, the hidden result pointer in rdi. r11 is free at every call.
 *
 * A warm call is `endbr64; jmp *slot`. An unbound slot points at the thunk after its trampoline, which
 * passes the slot in r11, and through its library's entry the part in rbp, to gpustub1_slow.
 *
 * Trampolines have no FDE: it would cost 32 of about 96 bytes, and a trampoline is never a frame on the
 * stack, since it only jumps. */

#include "frame.h"

/* The instruction, for assemblers before binutils 2.29. */
#define ENDBR64 .byte 0xf3, 0x0f, 0x1e, 0xfa

/* The sections of a function are one group: of two packages that have it, the linker keeps one group, so
 * that trampoline, slot and spec are of one object. It drops the groups of functions that the program does
 * not call. */
.macro gpustub_function library, tables, name, spec
 .section .text.gpustub.\name, "axG", %progbits, gpustub1.\library\().\name, comdat
 .p2align 4                     /* the warm path never crosses a cache line */
 .globl \name
 GPUSTUB_HIDE(\name)
 .type \name, @function
\name:
.Ltrampoline_\name:
 ENDBR64
 jmpq *.Lslot_\name(%rip)
.Lthunk_\name:
 ENDBR64
 leaq .Lslot_\name(%rip), %r11
 jmp .Lenter_\library
 .size \name, . - \name
 gpustub_slot \library, \tables, \name, \spec
.endm

/* Entry of a library's unbound calls: begins the frame of gpustub1_slow, because no register but r11 is
 * free, and passes the part in rbp. */
.macro gpustub_entry library
 .section .text.gpustub_enter.\library, "ax", @progbits
.Lenter_\library:
 .cfi_startproc
 pushq %rbp
 .cfi_def_cfa_offset 16
 .cfi_offset %rbp, -16
 leaq .Lpart_\library(%rip), %rbp
 jmp gpustub1_slow
 .cfi_endproc
.endm

/* Adapter thunk: target of the slot of a function with one more argument, which is null; the arguments
 * after it move up. The thunk's own target is written before the slot, and loads stay in order (Intel SDM
 * vol. 3, 9.2.2). */
.macro gpustub_null_argument library, name, argument
 gpustub_section .rodata.gpustub.\name, aG, \library, \name
 .long .Ladapter_\name - .
 gpustub_section .text.gpustub.\name, axG, \library, \name
.Ladapter_\name:
 ENDBR64
 gpustub_argument 5, \argument, r9, r8
 gpustub_argument 4, \argument, r8, rcx
 gpustub_argument 3, \argument, rcx, rdx
 gpustub_argument 2, \argument, rdx, rsi
 gpustub_argument 1, \argument, rsi, rdi
 gpustub_argument 0, \argument, rdi
 jmpq *gpustub1_targets_\name(%rip)
.endm

.macro gpustub_argument number, null, register, before
 .if \number > \null
 movq %\before, %\register
 .elseif \number == \null
 xorq %\register, %\register
 .endif
.endm

#include "elf_table.h"

/* ---- the first call ------------------------------------------------------------------------- */

/* struct frame, then fields that only this file uses; 64-byte aligned for zmm. */
#define STACK    56
#define RESULT   64
#define OBSERVE  72
#define PART     80
#define RAX      88
#define R10      96
#define RBX      104
#define MXCSR    112
#define X87CW    116
#define VECTORS  128
#define FRAME    (VECTORS + 8 * 64)

/* Vector registers of this CPU that the kernel saves: determined once, at run time, because the flags
 * that the stub was compiled with do not describe the machine that runs it. */
 .section .bss.gpustub1_vectors, "awG", @nobits, gpustub1.slow, comdat
.Lvectors: .byte 0              /* 0 unknown, 1 xmm, 2 ymm, 3 zmm */

 .section .text.gpustub1_slow, "axG", @progbits, gpustub1.slow, comdat
 .p2align 4
 .globl gpustub1_slow
 .hidden gpustub1_slow
 .type gpustub1_slow, @function
gpustub1_slow:
 .cfi_startproc
 .cfi_def_cfa_offset 16         /* gpustub_entry has saved rbp */
 .cfi_offset %rbp, -16
 pushq %rbp                     /* the part */
 .cfi_def_cfa_offset 24
 leaq 8(%rsp), %rbp
 .cfi_def_cfa %rbp, 16
 subq $FRAME, %rsp
 andq $-64, %rsp
 movq %rdi, 0(%rsp)
 movq %rsi, 8(%rsp)
 movq %rdx, 16(%rsp)
 movq %rcx, 24(%rsp)
 movq %r8, 32(%rsp)
 movq %r9, 40(%rsp)
 movq %rax, RAX(%rsp)
 leaq 16(%rbp), %rax
 movq %rax, STACK(%rsp)
 movq -8(%rbp), %rax
 movq %rax, PART(%rsp)
 movl SLOT_CODE(%r11), %edx
 andl $SLOT_REASON, %edx
 jz 0f
 /* No function to jump to: no other register is to be preserved. */
 movq (%rax), %rdi              /* the library */
 movslq SLOT_INFO(%r11), %rsi
 movzwl (%r11,%rsi), %esi
 imulq $SPEC_SIZE, %rsi
 addq LIBRARY_SPECS(%rdi), %rsi
 movq %rsp, %rcx
 call gpustub1_answer
 jmp 9f
0: movq %r10, R10(%rsp)
 movq $0, RESULT(%rsp)
 /* A library's constructor may set the rounding or denormal mode, which must not affect the call. */
 stmxcsr MXCSR(%rsp)
 fnstcw X87CW(%rsp)

 movzbl .Lvectors(%rip), %eax
 testl %eax, %eax
 jnz 2f
 /* Intel SDM vol. 1, 13.2 and 15.2: CPUID.1:ECX has OSXSAVE (27) and AVX (28), XCR0 the state that the
  * kernel saves: 6 = xmm and ymm, 0xe6 = these and all of zmm; CPUID.7:EBX bit 16 is AVX512F. */
 movq %rbx, RBX(%rsp)
 movl $1, %r8d
 movl $1, %eax
 cpuid
 andl $0x18000000, %ecx
 cmpl $0x18000000, %ecx
 jne 1f
 xorl %ecx, %ecx
 xgetbv
 movl %eax, %r9d
 andl $6, %eax
 cmpl $6, %eax
 jne 1f
 movl $2, %r8d
 xorl %eax, %eax
 cpuid
 cmpl $7, %eax
 jb 1f
 movl $7, %eax
 xorl %ecx, %ecx
 cpuid
 btl $16, %ebx
 jnc 1f
 andl $0xe6, %r9d
 cmpl $0xe6, %r9d
 jne 1f
 movl $3, %r8d
1: movb %r8b, .Lvectors(%rip)
 movl %r8d, %eax
 movq RBX(%rsp), %rbx

2: cmpl $2, %eax
 ja 4f
 je 3f
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7
 movaps %xmm\i, VECTORS + \i * 64(%rsp)
 .endr
 jmp 5f
3:
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7
 vmovaps %ymm\i, VECTORS + \i * 64(%rsp)
 .endr
 jmp 5f
4:
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7
 vmovaps %zmm\i, VECTORS + \i * 64(%rsp)
 .endr

5: movq %r11, %rdi
 movq %rsp, %rsi
 call gpustub1_enter
 movq %rax, %r11

 movzbl .Lvectors(%rip), %eax
 cmpl $2, %eax
 ja 7f
 je 6f
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7
 movaps VECTORS + \i * 64(%rsp), %xmm\i
 .endr
 jmp 8f
6:
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7
 vmovaps VECTORS + \i * 64(%rsp), %ymm\i
 .endr
 jmp 8f
7:
 .irp i, 0, 1, 2, 3, 4, 5, 6, 7
 vmovaps VECTORS + \i * 64(%rsp), %zmm\i
 .endr

8: fldcw X87CW(%rsp)
 ldmxcsr MXCSR(%rsp)
 testq %r11, %r11
 jz 9f
 cmpq $0, OBSERVE(%rsp)
 jne 10f
 movq 0(%rsp), %rdi
 movq 8(%rsp), %rsi
 movq 16(%rsp), %rdx
 movq 24(%rsp), %rcx
 movq 32(%rsp), %r8
 movq 40(%rsp), %r9
 movq RAX(%rsp), %rax
 movq R10(%rsp), %r10
 .cfi_remember_state
 leave
 .cfi_def_cfa %rsp, 8
 jmpq *%r11
 .cfi_restore_state
9: movq RESULT(%rsp), %rax
 xorl %edx, %edx
 xorps %xmm0, %xmm0
 xorps %xmm1, %xmm1
 .cfi_remember_state
 leave
 .cfi_def_cfa %rsp, 8
 ret
 .cfi_restore_state
 /* An observed call. Only the caller knows the size of the arguments on its stack, so the function runs on
  * this very stack, and the caller's rbp and return address move into the record, struct observed_call. */
10: movq OBSERVE(%rsp), %rax
 movq 0(%rbp), %rcx
 movq %rcx, 0(%rax)
 movq 8(%rbp), %rcx
 movq %rcx, 8(%rax)
 movq %rax, 0(%rbp)
 .cfi_escape 0x10, 6, 3, 0x76, 0, 6             /* rbp at **rbp */
 movq 0(%rsp), %rdi
 movq 8(%rsp), %rsi
 movq 16(%rsp), %rdx
 movq 24(%rsp), %rcx
 movq 32(%rsp), %r8
 movq 40(%rsp), %r9
 movq RAX(%rsp), %rax
 movq R10(%rsp), %r10
 leave
 .cfi_def_cfa %rsp, 8
 .cfi_escape 0x10, 6, 2, 0x76, 0                /* rbp at *rbp (DWARF 5, 6.4.2.3) */
 jmp 11f
 .cfi_endproc

 /* The call. Its frame has no bytes, so it and the caller's have the same CFA, by which libgcc recognises
  * the frame that catches an exception. It treats a frame that a signal interrupted differently
  * (uw_identify_context), and uses its address as it is instead of subtracting 1. Hence this is a signal
  * frame, whose return address is 1 less. The return address is the same at each call and return, as shadow
  * stacks require. */
 .cfi_startproc
 .cfi_signal_frame
 .cfi_escape 0x10, 6, 2, 0x76, 0
 .cfi_escape 0x16, 16, 5, 0x76, 8, 6, 0x31, 0x1c /* return address: 8(rbp) - 1 */
11: addq $8, %rsp
 .cfi_def_cfa_offset 0
 call *%r11
 pushq 8(%rbp)
 .cfi_def_cfa_offset 8
 jmp 12f
 .cfi_endproc

#define OBSERVED_RDX     8
#define OBSERVED_VECTORS 64
 .cfi_startproc
 .cfi_escape 0x10, 6, 2, 0x76, 0
12: movq %rbp, %rdi
 movq 0(%rbp), %rbp
 .cfi_same_value %rbp
 pushq %rbp
 .cfi_def_cfa_offset 16
 .cfi_offset %rbp, -16
 movq %rsp, %rbp
 .cfi_def_cfa_register %rbp
 subq $OBSERVED_VECTORS + 2 * 64, %rsp
 andq $-64, %rsp
 movq %rax, 0(%rsp)
 movq %rdx, OBSERVED_RDX(%rsp)
 cmpb $2, .Lvectors(%rip)
 ja 14f
 je 13f
 movaps %xmm0, OBSERVED_VECTORS(%rsp)
 movaps %xmm1, OBSERVED_VECTORS + 64(%rsp)
 jmp 15f
13: vmovaps %ymm0, OBSERVED_VECTORS(%rsp)
 vmovaps %ymm1, OBSERVED_VECTORS + 64(%rsp)
 jmp 15f
14: vmovaps %zmm0, OBSERVED_VECTORS(%rsp)
 vmovaps %zmm1, OBSERVED_VECTORS + 64(%rsp)
15: movq %rax, %rsi
 call gpustub1_returned
 cmpb $2, .Lvectors(%rip)
 ja 17f
 je 16f
 movaps OBSERVED_VECTORS(%rsp), %xmm0
 movaps OBSERVED_VECTORS + 64(%rsp), %xmm1
 jmp 18f
16: vmovaps OBSERVED_VECTORS(%rsp), %ymm0
 vmovaps OBSERVED_VECTORS + 64(%rsp), %ymm1
 jmp 18f
17: vmovaps OBSERVED_VECTORS(%rsp), %zmm0
 vmovaps OBSERVED_VECTORS + 64(%rsp), %zmm1
18: movq 0(%rsp), %rax
 movq OBSERVED_RDX(%rsp), %rdx
 leave
 .cfi_def_cfa %rsp, 8
 ret
 .cfi_endproc
 .size gpustub1_slow, . - gpustub1_slow

/* ---- the exit --------------------------------------------------------------------------------- */

 .section .text.gpustub1_exit, "axG", @progbits, gpustub1.exit, comdat
.Lexit:
 ENDBR64
 movb $1, gpustub1_exiting(%rip)
 movq gpustub1_on_exit(%rip), %rax
 testq %rax, %rax
 jz 1f
 jmpq *%rax
1: ret
 gpustub_kept_by_exit

/* Linking an object without this note switches IBT and shadow stacks off for the whole program
 * (x86-64 psABI, "Program Property": GNU_PROPERTY_X86_FEATURE_1_AND = IBT | SHSTK). */
 .section .note.gnu.property, "a"
 .p2align 3
 .long 4, 16, 5
 .asciz "GNU"
 .long 0xc0000002, 4, 3, 0

 .section .note.GNU-stack, "", @progbits
