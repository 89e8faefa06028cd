/* x86_64_coff.S: trampolines for x86-64 COFF, after coff_table.S.
 *
 * Microsoft x64 calling convention: argument i is in rcx rdx r8 r9 or on the stack, those of floating-point type in xmm i;
 * rax r10 r11 are free at a call, but r10 is the static chain of gcc. The slot is passed in rax, the part in r11.
 *
 * Trampolines are leaf functions that only jump, and need no unwind data. */

.macro gpustub_trampoline slot
 jmpq *\slot(%rip)
.endm
.macro gpustub_thunk slot, entry
 .p2align 3
 leaq \slot(%rip), %rax
 jmp \entry
.endm
.macro gpustub_thunk_address name
 .quad \name + 8
.endm
.macro gpustub_entry part
 leaq \part(%rip), %r11
 jmp gpustub1_slow
.endm

/* Adapter thunk: target of the slot of a function with one more argument, which is null; the arguments after it move
 * up, from the fourth on to the stack. */
.macro gpustub_null_argument library, tables, name, argument
 gpustub_comdat .rdata, dr, gpustub1_i_\library\()_\tables\()_\name
 .long gpustub1_null_\name\()_\argument - .
 gpustub_comdat .text, xr, gpustub1_null_\name\()_\argument
 .p2align 4
 .seh_proc gpustub1_null_\name\()_\argument
gpustub1_null_\name\()_\argument:
 subq $0x38, %rsp
 .seh_stackalloc 0x38
 .seh_endprologue
 movq 0x60(%rsp), %rax          /* the fifth argument, if there is one */
 .if 5 == \argument
 movq $0, 0x28(%rsp)
 .else
 movq %rax, 0x28(%rsp)
 .endif
 .if 4 > \argument
 movq %r9, 0x20(%rsp)
 .elseif 4 == \argument
 movq $0, 0x20(%rsp)
 .else
 movq %rax, 0x20(%rsp)
 .endif
 gpustub_argument 3, \argument, %r9, %r8
 gpustub_argument 2, \argument, %r8, %rdx
 gpustub_argument 1, \argument, %rdx, %rcx
 gpustub_argument 0, \argument, %rcx, %rcx
 call *gpustub1_targets_\name(%rip)
 addq $0x38, %rsp
 ret
 .seh_endproc
.endm

.macro gpustub_argument number, null, register, before
 .if \number > \null
 movq \before, \register
 .elseif \number == \null
 movq $0, \register
 .endif
.endm

/* ---- the first call ------------------------------------------------------------------------------ */

/* rax: the slot, r11: the part. The frame has 32 bytes for the functions that it calls, struct frame at 0x20, and r10,
 * mxcsr, the x87 control word, xmm0-5. No function of a GPU library has the convention __vectorcall, which passes more. */
 gpustub_code gpustub1_slow
 .p2align 4
 .seh_proc gpustub1_slow
gpustub1_slow:
 subq $0xe8, %rsp
 .seh_stackalloc 0xe8
 .seh_endprologue
 movq %rcx, 0x20(%rsp)
 movq %rdx, 0x28(%rsp)
 movq %r8, 0x30(%rsp)
 movq %r9, 0x38(%rsp)
 leaq 0x110(%rsp), %rcx         /* after the return address and the home of four registers */
 movq %rcx, 0x48(%rsp)
 movq %r11, 0x60(%rsp)
 movl 12(%rax), %r8d
 andl $7, %r8d
 jz 1f
 /* No function to jump to. */
 movq (%r11), %rcx              /* the library */
 movslq 8(%rax), %rdx
 movzwl (%rax,%rdx), %edx
 imulq $28, %rdx                /* SPEC_SIZE */
 addq 8(%rcx), %rdx             /* its spec */
 leaq 0x20(%rsp), %r9
 call *gpustub1_entries+8(%rip)
 jmp 2f
1: movq %r10, 0x68(%rsp)
 movq $0, 0x50(%rsp)
 /* A DLL's start-up code may set the rounding or denormal mode, which must not affect the call. */
 stmxcsr 0x70(%rsp)
 fnstcw 0x74(%rsp)
 movaps %xmm0, 0x80(%rsp)
 movaps %xmm1, 0x90(%rsp)
 movaps %xmm2, 0xa0(%rsp)
 movaps %xmm3, 0xb0(%rsp)
 movaps %xmm4, 0xc0(%rsp)
 movaps %xmm5, 0xd0(%rsp)
 movq %rax, %rcx
 leaq 0x20(%rsp), %rdx
 call *gpustub1_entries(%rip)
 fldcw 0x74(%rsp)
 ldmxcsr 0x70(%rsp)
 testq %rax, %rax
 jz 2f
 movaps 0x80(%rsp), %xmm0
 movaps 0x90(%rsp), %xmm1
 movaps 0xa0(%rsp), %xmm2
 movaps 0xb0(%rsp), %xmm3
 movaps 0xc0(%rsp), %xmm4
 movaps 0xd0(%rsp), %xmm5
 movq 0x58(%rsp), %r11          /* the record of an observed call */
 testq %r11, %r11
 jnz 3f
 movq 0x20(%rsp), %rcx
 movq 0x28(%rsp), %rdx
 movq 0x30(%rsp), %r8
 movq 0x38(%rsp), %r9
 movq 0x68(%rsp), %r10
 addq $0xe8, %rsp
 .byte 0x48, 0xff, 0xe0         /* rex.w jmp *%rax: the form that unwinders know as the end of a function */
2: movq 0x50(%rsp), %rax
 xorps %xmm0, %xmm0
 addq $0xe8, %rsp
 ret
 /* An observed call. */
3: movq 0x20(%rsp), %rcx
 movq 0x28(%rsp), %rdx
 movq 0x30(%rsp), %r8
 movq 0x38(%rsp), %r9
 movq 0x68(%rsp), %r10
 addq $0xe8, %rsp
 jmp gpustub1_observed
 .seh_endproc

/* rax: the function, r11: the record. Exceptions pass only frames that are on the thread's stack, so the function gets a
 * copy of the arguments on the stack. Only the caller knows their number: 124 words serve 127 arguments (C11 5.2.4.1)
 * and a hidden result pointer, as none is larger than a word; those beyond the end of the stack (StackBase of the thread
 * information block) are none. */
 gpustub_code gpustub1_observed
 .p2align 4
 .seh_proc gpustub1_observed
gpustub1_observed:
 movq %rcx, 8(%rsp)
 pushq %rbx
 .seh_pushreg %rbx
 pushq %rsi
 .seh_pushreg %rsi
 pushq %rdi
 .seh_pushreg %rdi
 subq $0x420, %rsp
 .seh_stackalloc 0x420
 .seh_endprologue
 movq %r11, %rbx
 leaq 0x460(%rsp), %rsi         /* after the return address and the home of four registers */
 leaq 0x20(%rsp), %rdi
 movq %gs:8, %rcx
 subq %rsi, %rcx
 shrq $3, %rcx
 movl $124, %r11d
 cmpq %r11, %rcx
 cmovaq %r11, %rcx
 rep movsq
 movq 0x440(%rsp), %rcx
 call *%rax
 movq %rax, 0x400(%rsp)
 movaps %xmm0, 0x410(%rsp)
 movq %rbx, %rcx
 movq %rax, %rdx
 call *gpustub1_entries+16(%rip)
 movq 0x400(%rsp), %rax
 movaps 0x410(%rsp), %xmm0
 addq $0x420, %rsp
 popq %rdi
 popq %rsi
 popq %rbx
 ret
 .seh_endproc

/* ---- functions of gpustub.h ----------------------------------------------------------------------- */

.macro gpustub_query name, offset
 gpustub_code gpustub_\name
gpustub_\name:
 jmpq *gpustub1_entries+\offset(%rip)
.endm
 gpustub_query load, 24
 gpustub_query is_available, 32
 gpustub_query has_function, 40
 gpustub_query path, 48
 gpustub_query version, 56
 gpustub_query reason, 64
 gpustub_query report, 72
 gpustub_query counts, 80
 gpustub_query set_handle, 88

/* ---- the exit -------------------------------------------------------------------------------------- */

/* TLS callback (PE Format, "The .tls Section"): DLL_PROCESS_DETACH is 0, and its last argument is null if FreeLibrary is
 * the reason. It runs before a DLL's own destructors. */
 gpustub_comdat .text, xr, gpustub1_exit
gpustub1_exit:
 testl %edx, %edx
 jnz 1f
 cmpb $0, gpustub1_exiting(%rip)
 jne 1f
 movb $1, gpustub1_exiting(%rip)
 testq %r8, %r8
 setz gpustub1_closing(%rip)
 movq gpustub1_on_exit(%rip), %rax
 testq %rax, %rax
 jz 1f
 jmpq *%rax
1: ret
 .long _tls_used - .            /* makes linkers write the TLS directory */

/* Windows ends DLLs before it calls the program's TLS callbacks, and wine does not call those: the C run time calls this,
 * after all functions that were registered later. */
 gpustub_comdat .text, xr, gpustub1_end
gpustub1_end:
 xorl %edx, %edx
 movl $1, %r8d
 jmp gpustub1_exit

 gpustub_comdat .text, xr, gpustub1_start
gpustub1_start:
 leaq gpustub1_end(%rip), %rcx
 jmp atexit

/* Roots of the linker's garbage collection: each object has them. The C run times of MSVC and mingw-w64 call what is in
 * .CRT$XC? in the order of the names, before `main`: A is their own, C to U are initializers of C++ ("CRT
 * initialization", learn.microsoft.com). */
 .section .CRT$XLE, "dr"
 .p2align 3
 .quad gpustub1_exit
 .section .CRT$XCB, "dr"
 .p2align 3
 .quad gpustub1_start

/* ---- the table --------------------------------------------------------------------------------------- */

