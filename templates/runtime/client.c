/* client.c: what an image that links a library of stubs contains of gpustub: the functions of gpustub.h,
 * and a reference to the library's table. */
#ifndef GPUSTUB_EXPORT
#error "GPUSTUB_EXPORT is the name of the library of stubs"
#endif
#include "query.c"

extern const struct api GPUSTUB_API_OF(GPUSTUB_EXPORT);

/* Retained: of the clients of two libraries the linker keeps one copy of the functions, which reads both
 * entries (SHF_GNU_RETAIN: GCC 11, Clang 13). Not constant, so that each compiler makes it writable. */
#ifdef __has_attribute
#if __has_attribute(retain)
#define RETAIN __attribute__((retain))
#endif
#endif
#ifndef RETAIN
#define RETAIN
#endif
static const struct api *entry
    __attribute__((used, section("gpustub1_apis"))) RETAIN = &GPUSTUB_API_OF(GPUSTUB_EXPORT);

/* Mark of the interface's version, with the references that bfd needs, as in elf_table.h. */
__asm__(".pushsection .gpustub.gpustub_interface_2, \"G\", %progbits, gpustub_interface_2, comdat\n"
        ".globl gpustub_error_incompatible_gpustub_versions__update_gpustub_build_in_both_packages\n"
        ".hidden gpustub_error_incompatible_gpustub_versions__update_gpustub_build_in_both_packages\n"
        "gpustub_error_incompatible_gpustub_versions__update_gpustub_build_in_both_packages:\n"
        ".hidden __start_gpustub1_apis\n"
        ".hidden __stop_gpustub1_apis\n"
#if __SIZEOF_POINTER__ == 8
        ".quad __start_gpustub1_apis, __stop_gpustub1_apis\n"
#else
        ".long __start_gpustub1_apis, __stop_gpustub1_apis\n"
#endif
        ".popsection\n");
