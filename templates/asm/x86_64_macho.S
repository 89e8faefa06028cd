/* x86_64_macho.S: stubs for macOS on x86-64; a macro call for each answer follows this text. In LLVM's syntax, without a
 * preprocessor: rustc assembles it (global_asm!).
 *
 * GPU libraries do not exist there, so that a stub is its answer: what the run time (call.c) returns for a missing library.
 * System V psABI for x86-64, 3.2.3 "Parameter Passing": integer arguments in rdi rsi rdx rcx r8 r9 and on the stack; rax r10
 * r11 are free, and r10 is the static chain, which a function without nested ones may lose.
 *
 * Symbols are private to the image, and weak definitions, of which linkers keep the first: those of two packages merge.
 * Names contain the hash of the library's tables: what has one name has one content. */

/* ---- object format --------------------------------------------------------------------------------- */

 .subsections_via_symbols

.macro gpustub_symbol symbol
 .globl \symbol
 .private_extern \symbol
 .weak_definition \symbol
 .p2align 2
\symbol:
.endm
.macro gpustub_function name
 .section __TEXT,__text,regular,pure_instructions
 gpustub_symbol _\name
.endm
.macro gpustub_data name
 .section __TEXT,__const
 gpustub_symbol _\name
.endm

/* ---- instructions ---------------------------------------------------------------------------------- */

/* Text of a library. */
.macro gpustub_string library, tables
 gpustub_data gpustub1_string_\library\()_\tables
.endm

/* Rows of status codes: code, and distances from the row to its text and to the name in it. Text 0 ends them. */
.macro gpustub_errors library, tables
 gpustub_data gpustub1_errors_\library\()_\tables
.endm

/* rax: the pointer in an argument. To 1 if it is null. */
.macro gpustub_pointer argument
 .if \argument == 0
 movq %rdi, %rax
 .elseif \argument == 1
 movq %rsi, %rax
 .elseif \argument == 2
 movq %rdx, %rax
 .elseif \argument == 3
 movq %rcx, %rax
 .elseif \argument == 4
 movq %r8, %rax
 .elseif \argument == 5
 movq %r9, %rax
 .else
 movq (8 * (\argument - 5))(%rsp), %rax
 .endif
 testq %rax, %rax
 jz 1f
.endm

/* Zeroes bytes at rax, which need not be aligned. */
.macro gpustub_clear size
 .if \size == 8
 movq $0, (%rax)
 .elseif \size == 4
 movl $0, (%rax)
 .else
 movl $\size, %r10d
2: movb $0, -1(%rax,%r10)
 decl %r10d
 jnz 2b
 .endif
.endm

/* r10: row of the status code in argument 0, or null. */
.macro gpustub_row library, tables
 leaq _gpustub1_errors_\library\()_\tables(%rip), %r10
2: movl 4(%r10), %r11d
 testl %r11d, %r11d
 jz 3f
 cmpl %edi, (%r10)
 je 4f
 addq $12, %r10
 jmp 2b
3: xorl %r10d, %r10d
4:
.endm

/* r10: name of that code, or null. */
.macro gpustub_name library, tables
 gpustub_row \library, \tables
 testq %r10, %r10
 jz 5f
 movl 8(%r10), %r11d
 addq %r11, %r10
5:
.endm

/* r10: number and name of that code, or null. For the code of a missing library the text says so. */
.macro gpustub_text library, tables, missing
 leaq _gpustub1_string_\library\()_\tables(%rip), %r10
 cmpl $\missing, %edi
 je 5f
 gpustub_row \library, \tables
 testq %r10, %r10
 jz 5f
 movl 4(%r10), %r11d
 addq %r11, %r10
5:
.endm

/* Out-parameters. */
.macro gpustub_zero argument, size
 gpustub_pointer \argument
 gpustub_clear \size
1:
.endm
.macro gpustub_store argument, number
 gpustub_pointer \argument
 movl $\number, (%rax)
1:
.endm
.macro gpustub_store_string argument, library, tables
 gpustub_pointer \argument
 leaq _gpustub1_string_\library\()_\tables(%rip), %r10
 movq %r10, (%rax)
1:
.endm
.macro gpustub_store_name argument, library, tables
 gpustub_pointer \argument
 gpustub_name \library, \tables
 movq %r10, (%rax)
1:
.endm
.macro gpustub_store_text argument, library, tables, missing
 gpustub_pointer \argument
 gpustub_text \library, \tables, \missing
 movq %r10, (%rax)
1:
.endm

/* Results. */
.macro gpustub_return number
 .if \number == 0
 xorl %eax, %eax
 .elseif \number > 0
 movl $\number, %eax
 .else
 movq $\number, %rax
 .endif
 ret
.endm
.macro gpustub_return_nothing
 ret
.endm
/* A number, or a null pointer, floating-point number or small struct of any registers. */
.macro gpustub_return_value number
 xorl %edx, %edx
 xorps %xmm0, %xmm0
 xorps %xmm1, %xmm1
 gpustub_return \number
.endm
.macro gpustub_return_string library, tables
 leaq _gpustub1_string_\library\()_\tables(%rip), %rax
 ret
.endm
.macro gpustub_return_struct size
 gpustub_pointer 0
 gpustub_clear \size
1: ret
.endm
.macro gpustub_return_known
 leaq _gpustub1_unknown(%rip), %rax
 testq %r10, %r10
 cmovneq %r10, %rax
 ret
.endm
.macro gpustub_return_name library, tables
 gpustub_name \library, \tables
 gpustub_return_known
.endm
.macro gpustub_return_text library, tables, missing
 gpustub_text \library, \tables, \missing
 gpustub_return_known
.endm
/* 0, or the number if the status code in argument 0 is unknown. */
.macro gpustub_return_unknown library, tables, number
 gpustub_row \library, \tables
 xorl %r11d, %r11d
 movq $\number, %rax
 testq %r10, %r10
 cmovneq %r11, %rax
 ret
.endm

/* Status of a function of gpustub.h, unless a pointer is null. */
.macro gpustub_return_query status
 movl $\status, %eax
 ret
1: movl $4, %eax                  /* GPUSTUB_INVALID_ARGUMENT */
 ret
.endm
