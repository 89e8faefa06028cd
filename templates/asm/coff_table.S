/* coff_table.S: sections and symbols of the functions, for all machines: before asm/<arch>_coff.S, which has the
 * instructions, and the table of functions. Without a preprocessor: rustc assembles it (global_asm!), for the GNU and the
 * MSVC targets, or clang, or GNU as.
 *
 * Each section is a COMDAT under a global symbol, since linkers collect COMDATs only, and GNU ld wants the name of a
 * section to end with `$` and that symbol. References name global symbols, so that none is to a discarded copy. Linkers
 * sort sections by what follows `$`: hence the letters a, b, c in the names. The names contain the hash of the library's
 * tables: what has one name has one content. */

/* .gasversion. is defined by GNU as ("Symbols"). gpustub_hide (sources/coff.rs) keeps a symbol out of automatic exports. */
.macro gpustub_comdat section, flags, symbol
 gpustub_hide \symbol
 gpustub_named_section \section, \flags, \symbol
.endm
.macro gpustub_named_section section, flags, symbol
 .ifdef .gasversion.
 .section \section\()$\symbol, "\flags"
 .linkonce discard
 .else
 .section \section\()$\symbol, "\flags", discard, \symbol
 .endif
 .globl \symbol
.endm

.macro gpustub_code symbol
 gpustub_comdat .text, xr, \symbol
 .def \symbol
 .scl 2
 .type 32
 .endef
.endm

/* A function. `__imp_name`, which callers with dllimport load, is a constant pointer to the trampoline: so both kinds of
 * callers see one address, which never changes. */
.macro gpustub_fn library, tables, name, spec
 gpustub_code \name
 .p2align 3
\name:
 gpustub_trampoline gpustub1_s_\library\()_\tables\()_b_\name
 gpustub_thunk gpustub1_s_\library\()_\tables\()_b_\name, gpustub1_e_\library\()_\tables

 gpustub_comdat .gpustub, dw, gpustub1_s_\library\()_\tables\()_b_\name
 .p2align 4
gpustub1_s_\library\()_\tables\()_b_\name:
 gpustub_thunk_address \name
 .long gpustub1_i_\library\()_\tables\()_\name - gpustub1_s_\library\()_\tables\()_b_\name
 .long \name - gpustub1_s_\library\()_\tables\()_b_\name

 gpustub_comdat .rdata, dr, gpustub1_i_\library\()_\tables\()_\name
gpustub1_i_\library\()_\tables\()_\name:
 .short \spec
 .asciz "\name"

 gpustub_named_section .rdata, dr, __imp_\name
 .p2align 3
__imp_\name:
 .quad \name
.endm

/* struct part, and the bounds of a library's slots, also of a library that is only known or queried: an object with its
 * functions may define the same part. */
.macro gpustub_part library, tables
 gpustub_hide gpustub1_library_\library\()_\tables
 gpustub_hide gpustub1_state_\library
 gpustub_comdat .gpustub, dw, gpustub1_s_\library\()_\tables\()_a
 .p2align 4
gpustub1_s_\library\()_\tables\()_a:
 .quad 0, 0
 gpustub_comdat .gpustub, dw, gpustub1_s_\library\()_\tables\()_c
 .p2align 4
gpustub1_s_\library\()_\tables\()_c:
 .quad 0, 0
 gpustub_comdat .gpustubp, dw, gpustub1_p_b_\library\()_\tables
 .p2align 4
gpustub1_p_b_\library\()_\tables:
 .quad gpustub1_library_\library\()_\tables
 .quad gpustub1_s_\library\()_\tables\()_a + 16, gpustub1_s_\library\()_\tables\()_c
 .quad gpustub1_a_pages_first, gpustub1_z_pages_last, 0
.endm

/* Entry of a library's unbound calls. */
.macro gpustub_library library, tables
 gpustub_comdat .text, xr, gpustub1_e_\library\()_\tables
 .p2align 2
gpustub1_e_\library\()_\tables:
 gpustub_entry gpustub1_p_b_\library\()_\tables
.endm

/* Keeps the part of another library, a driver, whose version is queried. */
.macro gpustub_keep library, tables, other, other_tables
 gpustub_comdat .text, xr, gpustub1_e_\library\()_\tables
 .long gpustub1_p_b_\other\()_\other_tables - .
.endm

/* Keeps a part for the queries: its library is known though no function is used. */
.macro gpustub_known library, tables
 gpustub_comdat .rdata, dr, gpustub1_own_parts
 .long gpustub1_p_b_\library\()_\tables - .
.endm

/* Targets of a function's adapters. The run time has those of all libraries of a plan, so that each object defines them,
 * one with the functions of another library, too. */
.macro gpustub_targets name
 gpustub_comdat .gpustub, dw, gpustub1_targets_\name
 .p2align 4
gpustub1_targets_\name:
 .quad 0, 0, 0, 0
.endm

/* struct adapter_list of a function, before its adapters: it follows the name. */
.macro gpustub_adapted library, tables, name
 gpustub_comdat .rdata, dr, gpustub1_i_\library\()_\tables\()_\name
 .long gpustub1_targets_\name - .
.endm

/* Adapter in C. */
.macro gpustub_adapter library, tables, name, code
 gpustub_comdat .rdata, dr, gpustub1_i_\library\()_\tables\()_\name
 .long gpustub1_adapter_\name\()_\code - .
.endm

/* Mark: objects that define the same symbol in other COMDATs do not link. A COMDAT whose contents must be equal would
 * not do: GNU ld only warns (IMAGE_COMDAT_SELECT_EXACT_MATCH). */
.macro gpustub_mark symbol, comdat
 gpustub_hide \symbol
 gpustub_comdat .rdata, dr, \comdat
\comdat:
 .globl \symbol
\symbol:
 .byte 0
.endm
.macro gpustub_headers library, version
 gpustub_mark gpustub_error_incompatible_header_versions_of_\library\()__see_header_version_in_GpuStub_toml, gpustub_headers_\library\()_\version
 gpustub_declares \library, yes
.endm
.macro gpustub_declares library, answer
 gpustub_mark gpustub_error_some_packages_lack_header_version_of_\library\()__see_header_version_in_GpuStub_toml, gpustub_declares_\library\()_\answer
.endm
 gpustub_mark gpustub_error_incompatible_gpustub_versions__update_gpustub_build_in_both_packages, gpustub_interface_2

/* ---- bounds ------------------------------------------------------------------------------------- */

 gpustub_comdat .gpustub, dw, gpustub1_a_pages_first
 .p2align 12
gpustub1_a_pages_first:
 .quad 0, 0
 gpustub_comdat .gpustub, dw, gpustub1_z_pages_last
 .p2align 12
gpustub1_z_pages_last:
 .quad 0, 0

/* Defined in C. */
 gpustub_hide gpustub1_entries
 gpustub_hide gpustub1_api

/* Placeholders. */
 gpustub_comdat .gpustubp, dw, gpustub1_p_a
 .p2align 4
gpustub1_p_a:
 .quad 0, 0, 0, 0, 0, 0
 gpustub_comdat .gpustubp, dw, gpustub1_p_c
 .p2align 4
gpustub1_p_c:
 .quad 0, 0, 0, 0, 0, 0

/* Not zero: this image has parts (api.c). */
 gpustub_comdat .rdata, dr, gpustub1_own_parts
 .p2align 2
gpustub1_own_parts:
 .long 1

/* ---- the exit -------------------------------------------------------------------------------------- */

 gpustub_comdat .data, dw, gpustub1_on_exit
 .p2align 3
gpustub1_on_exit:
 .quad 0
 gpustub_comdat .data, dw, gpustub1_exiting
gpustub1_exiting:
 .byte 0
 gpustub_comdat .data, dw, gpustub1_closing
gpustub1_closing:
 .byte 0
