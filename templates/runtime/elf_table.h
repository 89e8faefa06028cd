/* elf_table.h: lays out the slots of all libraries; included by each asm/<arch>.S for ELF.
 *
 * All slots of an image are between gpustub1_slots_first and gpustub1_slots_last, on separate pages,
 * so that they can be made read-only. The slots of one library are between gpustub1_first_<library>
 * and gpustub1_last_<library>; the targets of its adapter thunks follow. Linkers keep the order of the
 * sections of one object file within .data, and sorting by name gives the same order. Start/stop
 * symbols would serve as well, but make bfd and mold keep every slot, used or not. */

.macro gpustub_label section, name, align
 .section .data.gpustub\section, "aw", @progbits
 .p2align \align
 .globl \name
 .hidden \name
\name:
.endm

/* Header mark of gpustub.h for the stubs, with the major of GpuStub.toml's `header-version`. */
.macro gpustub_header library, major
 .section .gpustub.headers.\library\().\major, "G", %progbits, gpustub_headers_\library\()_\major, comdat
 .globl gpustub_error_incompatible_header_versions_of_\library\()__see_header_version_in_GpuStub_toml
 .hidden gpustub_error_incompatible_header_versions_of_\library\()__see_header_version_in_GpuStub_toml
gpustub_error_incompatible_header_versions_of_\library\()__see_header_version_in_GpuStub_toml:
.endm

#define GPUSTUB_HEADER(library, major) gpustub_header library, major
#define GPUSTUB_LIBRARY(library) gpustub_label .b.library.a, gpustub1_first_##library, 3
#define GPUSTUB_LIBRARY_END(library) gpustub_label .b.library.c, gpustub1_last_##library, 3
#define GPUSTUB_FN(library, index, name, spec) gpustub_function library, index, name, spec
#define GPUSTUB_ADAPTER(library, name, argument) gpustub_adapter library, name, argument

/* struct adapter of a function, in sections of the function's name, which the linker drops together. The
 * target follows the slots of the library, on the pages that become read-only. */
.macro gpustub_adapter_info library, name
 .section .rodata.gpustub.\name, "a", %progbits
 .long .Ladapter_\name - .
 .long .Ltarget_\name - .

 .section .data.gpustub.b.\library\().d.\name, "aw", %progbits
 .p2align 3
.Ltarget_\name:
 .quad 0
.endm

/* Duplicate symbol that stops the link of two stub archives into one program; its name is the remedy.
 * First symbol of the first member, because lld shows only 20 duplicate symbols; in a section that is
 * not loaded, because mold checks only the symbols that its garbage collection leaves. */
 .section .gpustub.one_provider, "", @progbits
 .globl gpustub_error_two_packages_provide_stubs__set_provide_false_in_the_GpuStub_toml_of_all_but_one
 .hidden gpustub_error_two_packages_provide_stubs__set_provide_false_in_the_GpuStub_toml_of_all_but_one
gpustub_error_two_packages_provide_stubs__set_provide_false_in_the_GpuStub_toml_of_all_but_one:

 gpustub_label .a, gpustub1_slots_first, 12
#include "gpustub_table.inc"
 gpustub_label .c, gpustub1_slots_last, 12
