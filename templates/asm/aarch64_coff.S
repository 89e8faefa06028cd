/* aarch64_coff.S: trampolines for ARM64 COFF, after coff_table.S.
 *
 * "Overview of ARM64 ABI conventions" (learn.microsoft.com), after AAPCS64: integer arguments in x0-x7, vectors in q0-q7,
 * the indirect result pointer in x8, the return address in x30; variadic functions take all in x0-x7. x18 is the thread's
 * environment block. x9-x15 are free at every call; the slot is passed in x15 and the part in x14, because linkers may
 * insert a veneer, which uses x16 and x17, between thunk and slow path.
 *
 * Trampolines are leaf functions that only jump, and need no unwind data. */

.macro gpustub_address register, symbol
 adrp \register, \symbol
 add \register, \register, :lo12:\symbol
.endm
/* x17: a pointer in memory that is aligned to its size. */
.macro gpustub_pointer symbol
 adrp x16, \symbol
 ldr x17, [x16, :lo12:\symbol]
.endm
/* x17: an entry point of the run time (entries.c). */
.macro gpustub_entry_point offset
 gpustub_address x16, gpustub1_entries
 ldr x17, [x16, #\offset]
.endm

.macro gpustub_trampoline slot
 gpustub_pointer \slot
 br x17
.endm
.macro gpustub_thunk slot, entry
 gpustub_address x15, \slot
 b \entry
.endm
.macro gpustub_thunk_address name
 .quad \name + 12
.endm
.macro gpustub_entry part
 gpustub_address x14, \part
 b gpustub1_slow
.endm

/* Adapter thunk: target of the slot of a function with one more argument, which is null; the arguments after it move up.
 * The thunk's own target is written before the slot, but may be read before it: then gpustub1_enter, which orders the
 * two, jumps to this thunk again. */
.macro gpustub_null_argument library, tables, name, argument
 gpustub_comdat .rdata, dr, gpustub1_i_\library\()_\tables\()_\name
 .long gpustub1_null_\name\()_\argument - .
 gpustub_comdat .text, xr, gpustub1_null_\name\()_\argument
 .p2align 2
gpustub1_null_\name\()_\argument:
 gpustub_pointer gpustub1_targets_\name
 cbz x17, 1f
 gpustub_argument 7, \argument, 6
 gpustub_argument 6, \argument, 5
 gpustub_argument 5, \argument, 4
 gpustub_argument 4, \argument, 3
 gpustub_argument 3, \argument, 2
 gpustub_argument 2, \argument, 1
 gpustub_argument 1, \argument, 0
 gpustub_argument 0, \argument
 br x17
1: gpustub_thunk gpustub1_s_\library\()_\tables\()_b_\name, gpustub1_e_\library\()_\tables
.endm

.macro gpustub_argument number, null, before
 .if \number > \null
 mov x\number, x\before
 .elseif \number == \null
 mov x\number, xzr
 .endif
.endm

/* ---- the first call ------------------------------------------------------------------------------ */

/* Registers of arguments, from the frame of gpustub1_slow, which ends. */
.macro gpustub_restore
 ldp x0, x1, [sp, #16]
 ldp x2, x3, [sp, #32]
 ldp x4, x5, [sp, #48]
 ldp x6, x7, [sp, #64]
 ldr x8, [sp, #80]
 gpustub_leave
.endm
.macro gpustub_leave
 .seh_startepilogue
 ldp x29, x30, [sp], #256
 .seh_save_fplr_x 256
 .seh_endepilogue
.endm

/* x15: the slot, x14: the part. The frame has x29 and x30, struct frame at 16, fpcr at 120 and q0-q7 at 128. No function of
 * a GPU library has the convention __vectorcall, under which more vector registers are arguments. */
 gpustub_code gpustub1_slow
 .p2align 4
 .seh_proc gpustub1_slow
gpustub1_slow:
 stp x29, x30, [sp, #-256]!
 .seh_save_fplr_x 256
 mov x29, sp
 .seh_set_fp
 .seh_endprologue
 stp x0, x1, [sp, #16]
 stp x2, x3, [sp, #32]
 stp x4, x5, [sp, #48]
 stp x6, x7, [sp, #64]
 add x9, sp, #256               // the arguments on the stack
 stp x8, x9, [sp, #80]
 stp xzr, xzr, [sp, #96]        // the result, and the record of an observed call
 // A DLL's start-up code may set the rounding mode, which must not affect the call.
 mrs x10, fpcr
 stp x14, x10, [sp, #112]
 add x9, x15, #12
 ldar w2, [x9]
 ands w2, w2, #7
 b.eq 1f
 // No function to jump to.
 ldr x0, [x14]                  // the library
 ldrsw x9, [x15, #8]
 ldrh w9, [x15, x9]
 mov w10, #28                   // SPEC_SIZE
 ldr x11, [x0, #8]
 madd x1, x9, x10, x11          // its spec
 add x3, sp, #16
 gpustub_entry_point 8
 blr x17
 b 2f
1: stp q0, q1, [sp, #128]
 stp q2, q3, [sp, #160]
 stp q4, q5, [sp, #192]
 stp q6, q7, [sp, #224]
 mov x0, x15
 add x1, sp, #16
 gpustub_entry_point 0
 blr x17
 ldr x10, [sp, #120]
 msr fpcr, x10
 cbz x0, 2f
 mov x9, x0
 ldp q0, q1, [sp, #128]
 ldp q2, q3, [sp, #160]
 ldp q4, q5, [sp, #192]
 ldp q6, q7, [sp, #224]
 ldr x10, [sp, #104]            // the record of an observed call
 cbnz x10, 3f
 gpustub_restore
 br x9
2: ldr x0, [sp, #96]
 mov x1, xzr
 movi d0, #0                    // a struct of up to four floats (AAPCS64 6.9)
 movi d1, #0
 movi d2, #0
 movi d3, #0
 gpustub_leave
 ret
3: gpustub_restore
 b gpustub1_observed
 .seh_endproc

/* x9: the function, x10: the record. Exceptions pass only frames that are on the thread's stack, so the function gets a
 * copy of the arguments on the stack. Only the caller knows their size: 248 words serve the 119 of 127 arguments (C11
 * 5.2.4.1) that are not in registers, if none has more than two words; those beyond the end of the stack (StackBase of the
 * thread information block) are none. */
 gpustub_code gpustub1_observed
 .p2align 4
 .seh_proc gpustub1_observed
gpustub1_observed:
 stp x29, x30, [sp, #-32]!
 .seh_save_fplr_x 32
 str x19, [sp, #16]
 .seh_save_reg x19, 16
 sub sp, sp, #1984
 .seh_stackalloc 1984
 .seh_endprologue
 mov x19, x10
 add x11, sp, #2016
 mov x12, sp
 ldr x13, [x18, #8]
 sub x13, x13, x11
 lsr x13, x13, #4               // pairs of words, as both addresses are aligned to 16
 mov x14, #124
 cmp x13, x14
 csel x13, x13, x14, lo
1: cbz x13, 2f
 ldp x14, x15, [x11], #16
 stp x14, x15, [x12], #16
 sub x13, x13, #1
 b 1b
2: blr x9
 stp x0, x1, [sp]               // results are in x0-x1 and q0-q3
 stp q0, q1, [sp, #16]
 stp q2, q3, [sp, #48]
 mov x1, x0
 mov x0, x19
 gpustub_entry_point 16
 blr x17
 ldp x0, x1, [sp]
 ldp q0, q1, [sp, #16]
 ldp q2, q3, [sp, #48]
 .seh_startepilogue
 add sp, sp, #1984
 .seh_stackalloc 1984
 ldr x19, [sp, #16]
 .seh_save_reg x19, 16
 ldp x29, x30, [sp], #32
 .seh_save_fplr_x 32
 .seh_endepilogue
 ret
 .seh_endproc

/* ---- functions of gpustub.h ----------------------------------------------------------------------- */

.macro gpustub_query name, offset
 gpustub_code gpustub_\name
 .p2align 2
gpustub_\name:
 gpustub_entry_point \offset
 br x17
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
 .p2align 2
gpustub1_exit:
 cbnz w1, 1f
 gpustub_address x9, gpustub1_exiting
 ldrb w10, [x9]
 cbnz w10, 1f
 mov w10, #1
 strb w10, [x9]
 cmp x2, #0
 cset w10, eq
 gpustub_address x9, gpustub1_closing
 strb w10, [x9]
 gpustub_pointer gpustub1_on_exit
 cbz x17, 1f
 br x17
1: ret
 .long _tls_used - .            // makes linkers write the TLS directory

/* Windows ends DLLs before it calls the program's TLS callbacks, and wine does not call those: the C run time calls this,
 * after all functions that were registered later. */
 gpustub_comdat .text, xr, gpustub1_end
 .p2align 2
gpustub1_end:
 mov w1, #0
 mov x2, #1
 b gpustub1_exit

 gpustub_comdat .text, xr, gpustub1_start
 .p2align 2
gpustub1_start:
 gpustub_address x0, gpustub1_end
 b atexit

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

