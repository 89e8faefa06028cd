/* aarch64_macho.S: stubs for macOS on AArch64; a macro call for each answer follows this text. In LLVM's syntax, without a
 * preprocessor: rustc assembles it (global_asm!).
 *
 * GPU libraries do not exist there, so that a stub is its answer: what the run time (call.c) returns for a missing library.
 * AAPCS64 6.8: integer arguments in x0 to x7 and on the stack, address of a struct to return in x8; x9 to x15 are free.
 * Apple packs arguments on the stack ("Writing ARM64 code for Apple platforms"): only the place of the first is known.
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
.macro gpustub_address register, symbol
 adrp \register, \symbol\()@PAGE
 add \register, \register, \symbol\()@PAGEOFF
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

/* x9: the pointer in an argument. To 1 if it is null. */
.macro gpustub_pointer argument
 .if \argument < 8
 mov x9, x\argument
 .else
 ldr x9, [sp, #(8 * (\argument - 8))]
 .endif
 cbz x9, 1f
.endm

/* Zeroes bytes at x9, which need not be aligned. */
.macro gpustub_clear size
 .if \size == 8
 str xzr, [x9]
 .elseif \size == 4
 str wzr, [x9]
 .else
 mov w10, #\size
2: subs w10, w10, #1
 strb wzr, [x9, w10, uxtw]
 b.ne 2b
 .endif
.endm

/* A number of 32 bits, with its sign in the upper half. */
.macro gpustub_number register, number
 .if (\number) < 0
 movn \register, #((~(\number)) & 0xffff)
 .if (\number) < -0x10000
 movk \register, #(((\number) >> 16) & 0xffff), lsl #16
 .endif
 .else
 movz \register, #((\number) & 0xffff)
 .if (\number) > 0xffff
 movk \register, #(((\number) >> 16) & 0xffff), lsl #16
 .endif
 .endif
.endm

/* x10: row of the status code in argument 0, or null. */
.macro gpustub_row library, tables
 gpustub_address x10, _gpustub1_errors_\library\()_\tables
2: ldp w11, w12, [x10]
 cbz w12, 3f
 cmp w11, w0
 b.eq 4f
 add x10, x10, #12
 b 2b
3: mov x10, xzr
4:
.endm

/* x10: name of that code, or null. */
.macro gpustub_name library, tables
 gpustub_row \library, \tables
 cbz x10, 5f
 ldr w11, [x10, #8]
 add x10, x10, x11
5:
.endm

/* x10: number and name of that code, or null. For the code of a missing library the text says so. */
.macro gpustub_text library, tables, missing
 gpustub_address x10, _gpustub1_string_\library\()_\tables
 gpustub_number x11, \missing
 cmp w11, w0
 b.eq 5f
 gpustub_row \library, \tables
 cbz x10, 5f
 add x10, x10, x12
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
 gpustub_number x10, \number
 str w10, [x9]
1:
.endm
.macro gpustub_store_string argument, library, tables
 gpustub_pointer \argument
 gpustub_address x10, _gpustub1_string_\library\()_\tables
 str x10, [x9]
1:
.endm
.macro gpustub_store_name argument, library, tables
 gpustub_pointer \argument
 gpustub_name \library, \tables
 str x10, [x9]
1:
.endm
.macro gpustub_store_text argument, library, tables, missing
 gpustub_pointer \argument
 gpustub_text \library, \tables, \missing
 str x10, [x9]
1:
.endm

/* Results. */
.macro gpustub_return number
 gpustub_number x0, \number
 ret
.endm
.macro gpustub_return_nothing
 ret
.endm
/* A number, or a null pointer, floating-point number or small struct of any registers. */
.macro gpustub_return_value number
 mov x1, xzr
 movi d0, #0
 movi d1, #0
 movi d2, #0
 movi d3, #0
 gpustub_return \number
.endm
.macro gpustub_return_string library, tables
 gpustub_address x0, _gpustub1_string_\library\()_\tables
 ret
.endm
.macro gpustub_return_struct size
 mov x9, x8
 cbz x9, 1f
 gpustub_clear \size
1: ret
.endm
.macro gpustub_return_known
 gpustub_address x0, _gpustub1_unknown
 cmp x10, #0
 csel x0, x0, x10, eq
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
 gpustub_number x0, \number
 cmp x10, #0
 csel x0, x0, xzr, eq
 ret
.endm

/* Status of a function of gpustub.h, unless a pointer is null. */
.macro gpustub_return_query status
 mov w0, #\status
 ret
1: mov w0, #4                     // GPUSTUB_INVALID_ARGUMENT
 ret
.endm
