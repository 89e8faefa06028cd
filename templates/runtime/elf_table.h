/* elf_table.h: sections of the slots, parts and exit hook; included by each asm/<arch>.S for ELF.
 *
 * With glibc, slots are in .data.rel.ro, which the loader makes read-only when it has relocated the image (PT_GNU_RELRO).
 * The run time opens their pages for its own stores, under the loader's lock (load.c). Without that lock, they are on pages
 * of their own, which it makes read-only once.
 *
 * The slots of an object are between .Lpages_first and .Lpages_last; those of one library between .Lfirst_<library> and
 * .Llast_<library>, and the targets of its adapters follow. Linkers keep the order of the sections of one object file.
 * Sorting by name gives the same order: the names contain a hash of the library's tables, so that slots of
 * several objects mix only if their tables are equal.
 *
 * References leave a group, and never enter one: linkers drop groups that another object has, too. So all
 * labels outside of groups are local, and each object delimits its own slots.
 *
 * Start/stop symbols for the slots would serve as well, but make bfd and mold keep every slot, used or
 * not. For the parts, a reference from each function, and one from the queries, keeps the section also where
 * these symbols do not (lld, -z start-stop-gc). */

/* A word of the machine. */
#if __SIZEOF_POINTER__ == 8
#define GPUSTUB_WORD .quad
#define GPUSTUB_WORD_ALIGN .p2align 3
#else
#define GPUSTUB_WORD .long
#define GPUSTUB_WORD_ALIGN .p2align 2
#endif

/* First part of the names of the slots' sections, and alignment of .Lpages_first and .Lpages_last. glibc: as for
 * IMAGE_IS_LOCKED of the run time. */
#if defined __linux__ && !defined __ANDROID__
#include <features.h>
#endif
#ifdef __GLIBC__
#define GPUSTUB_SLOTS .data.rel.ro.gpustub
#define GPUSTUB_SLOTS_ALIGN .p2align 3
#else
#define GPUSTUB_SLOTS .data.gpustub
#define GPUSTUB_SLOTS_ALIGN .p2align 12
#endif

/* Section of a function, in the function's group. Not used for the sections that every function has: a
 * macro in a macro takes the assembler a quarter of its time. */
.macro gpustub_section section, flags, library, name
 .section \section, "\flags", %progbits, gpustub1.\library\().\name, comdat
.endm

/* Name of a slot: struct slot_info. */
.macro gpustub_info library, name, spec
 .section .rodata.gpustub.\name, "aG", %progbits, gpustub1.\library\().\name, comdat
.Linfo_\name:
 .short \spec
 .asciz "\name"
.endm

/* Slot and name of a function: struct slot. */
.macro gpustub_slot library, tables, name, spec
 .section GPUSTUB_SLOTS.b.\library\().\tables\().b.\name, "awG", %progbits, gpustub1.\library\().\name, comdat
 .p2align 3
.Lslot_\name:
 GPUSTUB_WORD .Lthunk_\name
 .long .Linfo_\name - .Lslot_\name
 .long .Ltrampoline_\name - .Lslot_\name
#if __SIZEOF_POINTER__ == 4
 .long 0
#endif

 gpustub_info \library, \name, \spec
.endm

/* Data of a library, what was copied to it last, and its slot: the target is the object, by its name, because a program
 * with a copy relocation has the object itself. The references keep slot and part with the object, which stays
 * writable and is in a section with contents, since one without has no references. */
.macro gpustub_data library, tables, name, spec, size, align
 .section .gpustub_data, "awG", %progbits, gpustub1.\library\().\name, comdat
 .p2align \align
 .globl \name
 GPUSTUB_HIDE(\name)
 .type \name, %object
 .size \name, \size
\name:
 .zero \size
 .p2align 3
.Lcopied_\name:
 .zero \size
 .byte 0 /* slot_is_denied */
 .p2align 2
 .long .Lslot_\name - ., .Lpart_\library - .

 .section GPUSTUB_SLOTS.b.\library\().\tables\().b.\name, "awG", %progbits, gpustub1.\library\().\name, comdat
 .p2align 3
.Lslot_\name:
 GPUSTUB_WORD \name
 .long .Linfo_\name - .Lslot_\name, .Lcopied_\name - .Lslot_\name
#if __SIZEOF_POINTER__ == 4
 .long 0
#endif

 gpustub_info \library, \name, \spec
.endm

/* Label at a bound of a library's slots: a precedes them, c follows. */
.macro gpustub_bound library, tables, order, label
 .section GPUSTUB_SLOTS.b.\library\().\tables\().\order, "aw", %progbits
 .p2align 3
\label:
.endm

/* SHF_GNU_RETAIN is in Clang 13 and binutils 2.36; gas defines `.gasversion.` as the latter's number. */
#if defined(__clang__) && __clang_major__ >= 13
#define GPUSTUB_HAS_RETAIN 1
#elif defined(__clang__)
#define GPUSTUB_HAS_RETAIN 0
#else
#define GPUSTUB_HAS_RETAIN .gasversion. >= 23600
#endif

/* struct part; `retain`: the linker keeps it even if no function of the library is used. */
.macro gpustub_part library, tables, first, last, retain
 .if \retain && GPUSTUB_HAS_RETAIN
 .section gpustub1_parts, "awR", %progbits
 .else
 .section gpustub1_parts, "aw", %progbits
 .endif
 GPUSTUB_WORD_ALIGN
 .ifndef .Lparts
.Lparts:
 .endif
.Lpart_\library:
 GPUSTUB_WORD gpustub1_library_\library\()_\tables, \first, \last, .Lpages_first, .Lpages_last, 0
.endm

/* Note of the library that a program opens (UAPI.12, "dlopen() Metadata for ELF Files"), which tools read that
 * make packages. Every unbound call passes through the library's entry, which refers to the note: linkers drop it
 * with the entry. Being in a group makes the note a section that bfd and lld collect, and one per image; gold and
 * mold keep all notes. */
.macro gpustub_note library
 .section .text.gpustub_enter.\library, "ax", %progbits
 .long gpustub1_note_\library - .
 .section .note.dlopen, "aG", %note, gpustub1.note.\library, comdat
 .p2align 2
 .globl gpustub1_note_\library
 .hidden gpustub1_note_\library
gpustub1_note_\library:
 .long 4, 2f - 1f, 0x407c0c0a
 .asciz "FDO"
1:
.endm
.macro gpustub_note_end
2:
 .p2align 2
.endm

/* A mark: objects with another value of the same mark do not link, because their groups have different
 * names and define one symbol, whose name is the message. Not loaded. */
.macro gpustub_mark group, symbol
 .section .gpustub.\group, "G", %progbits, \group, comdat
 .globl \symbol
 .hidden \symbol
\symbol:
.endm

/* Mark of the headers' version, as in gpustub.h. */
.macro gpustub_headers library, version
 gpustub_mark gpustub_headers_\library\()_\version, gpustub_error_incompatible_header_versions_of_\library\()__see_header_version_in_GpuStub_toml
.endm

/* Mark whether there is one: without it, functions are refused that the other package calls. */
.macro gpustub_declares library, answer
 gpustub_mark gpustub_declares_\library\()_\answer, gpustub_error_some_packages_lack_header_version_of_\library\()__see_header_version_in_GpuStub_toml
.endm

/* struct adapter_list of a function, before its adapters. The targets follow the slots of the library, among
 * the data that is read-only. They are a group of their own: if the linker keeps the function of another
 * package, whose gpustub knows no adapter of it, those of this package still refer to their targets. */
.macro gpustub_adapted library, tables, name
 .section GPUSTUB_SLOTS.b.\library\().\tables\().d.\name, "awG", %progbits, gpustub1.targets.\library\().\name, comdat
 .p2align 3
 .globl gpustub1_targets_\name
 .hidden gpustub1_targets_\name
gpustub1_targets_\name:
 GPUSTUB_WORD 0, 0, 0, 0
 gpustub_section .rodata.gpustub.\name, aG, \library, \name
 .long gpustub1_targets_\name - .
.endm

/* Names of the library's status codes, after the name of a function that has no adapters: the linker drops them with
 * the last such function. */
.macro gpustub_errors library, name
 gpustub_section .rodata.gpustub.\name, aG, \library, \name
 .hidden gpustub1_errors_\library
 .long gpustub1_errors_\library - .
.endm

/* Adapter in C. A function may have several. */
.macro gpustub_adapter library, name, code
 gpustub_section .rodata.gpustub.\name, aG, \library, \name
 .hidden gpustub1_adapter_\name\()_\code
 .long gpustub1_adapter_\name\()_\code - .
.endm

/* References of the exit hook. Without a part, gold drops all parts and misses their symbols. */
.macro gpustub_kept_by_exit
 .long gpustub1_no_part - .
#ifndef GPUSTUB_EXPORT
 .long gpustub1_no_api - .
#endif
.endm

#define GPUSTUB_HEADERS(library, version)                                                          \
    gpustub_headers library, version;                                                              \
    gpustub_declares library, yes
#define GPUSTUB_NO_HEADERS(library) gpustub_declares library, no
#define GPUSTUB_LIBRARY(library)                                                                   \
    gpustub_entry library;                                                                         \
    gpustub_bound library, GPUSTUB_TABLES, a, .Lfirst_##library
#ifdef GPUSTUB_NO_DLOPEN_NOTES
#define GPUSTUB_NOTE(library, json)
#else
#define GPUSTUB_NOTE(library, json)                                                                \
    gpustub_note library;                                                                          \
    .asciz json;                                                                                   \
    gpustub_note_end
#endif
#define GPUSTUB_LIBRARY_END(library)                                                               \
    gpustub_bound library, GPUSTUB_TABLES, c, .Llast_##library;                                    \
    gpustub_part library, GPUSTUB_TABLES, .Lfirst_##library, .Llast_##library, GPUSTUB_RETAIN
#define GPUSTUB_QUERIED(library)                                                                   \
    gpustub_part library, GPUSTUB_TABLES, .Lpages_first, .Lpages_first, GPUSTUB_RETAIN
#define GPUSTUB_FN(library, name, spec) gpustub_function library, GPUSTUB_TABLES, name, spec
#define GPUSTUB_ERRORS(library, name) gpustub_errors library, name
#define GPUSTUB_DATA(library, name, spec, size, align) gpustub_data library, GPUSTUB_TABLES, name, spec, size, align
#define GPUSTUB_ADAPTED(library, name) gpustub_adapted library, GPUSTUB_TABLES, name
#define GPUSTUB_NULL_ARGUMENT(library, name, argument) gpustub_null_argument library, name, argument
#define GPUSTUB_ADAPTER(library, name, code) gpustub_adapter library, name, code

/* Mark of the interface's version. The references keep bfd 2.40 from listing these symbols in .dynsym, as it
 * does if only one object has any. */
 gpustub_mark gpustub_interface_2, gpustub_error_incompatible_gpustub_versions__update_gpustub_build_in_both_packages
 .hidden __start_gpustub1_parts
 .hidden __stop_gpustub1_parts
 GPUSTUB_WORD __start_gpustub1_parts, __stop_gpustub1_parts
#ifndef GPUSTUB_EXPORT
 .hidden __start_gpustub1_apis
 .hidden __stop_gpustub1_apis
 GPUSTUB_WORD __start_gpustub1_apis, __stop_gpustub1_apis
#endif

 .section GPUSTUB_SLOTS.a, "aw", %progbits
 GPUSTUB_SLOTS_ALIGN
.Lpages_first:
#include "gpustub_table.inc"
 .section GPUSTUB_SLOTS.c, "aw", %progbits
 GPUSTUB_SLOTS_ALIGN
.Lpages_last:

 .section gpustub1_parts, "awG", %progbits, gpustub1.no_part, comdat
 GPUSTUB_WORD_ALIGN
 .globl gpustub1_no_part
 .hidden gpustub1_no_part
gpustub1_no_part:
 GPUSTUB_WORD 0, 0, 0, 0, 0, 0

/* Reference of the queries (api.c): the libraries of this object are known though no function is used. */
 .section .rodata.gpustub.parts, "aG", %progbits, gpustub1.parts, comdat
 .p2align 2
 .globl gpustub1_own_parts
 .hidden gpustub1_own_parts
gpustub1_own_parts:
 .ifndef .Lparts
 .long gpustub1_no_part - .
 .else
 .long .Lparts - .
 .endif

#ifdef GPUSTUB_EXPORT
/* Note by which the run time of other images recognises a shared library of stubs (file_check.c). */
 .section .note.gpustub, "a", %note
 .p2align 2
 .long 8, 4, 1
 .asciz "gpustub"
 .long 1
#else
/* Entry of query.c for an image that links no library of stubs; such a library has no query.c. */
 .section gpustub1_apis, "awG", %progbits, gpustub1.no_api, comdat
 GPUSTUB_WORD_ALIGN
 .globl gpustub1_no_api
 .hidden gpustub1_no_api
gpustub1_no_api:
 GPUSTUB_WORD 0
#endif

/* The exit hook, a root of the linker's garbage collection: each image has one, run time or not. */
 .section .bss.gpustub1_exit, "awG", %nobits, gpustub1.exit, comdat
 .p2align 3
 .globl gpustub1_on_exit
 .hidden gpustub1_on_exit
gpustub1_on_exit:
 .zero 8
 .globl gpustub1_exiting
 .hidden gpustub1_exiting
gpustub1_exiting:
 .zero 1

 .section .fini_array.00101, "awG", %fini_array, gpustub1.exit, comdat
 GPUSTUB_WORD_ALIGN
 GPUSTUB_WORD .Lexit
