/* Device code of a device link of HIP, and its handle, by the names that the objects leave undefined.
 * gpustub_hip_link.inc has a line CODE(name) and HANDLE(name) for each of these. */

#define LABEL(name) .globl name; .hidden name; name:

/* Aligned as clang's bundler aligns its entries. */
.section .hip_fatbin, "a"
.p2align 12
LABEL(gpustub_hip_code)
#define CODE(name) LABEL(name)
#define HANDLE(name)
#include "gpustub_hip_link.inc"
#undef CODE
#undef HANDLE
.incbin "device.hipfb"

.bss
.p2align 3
LABEL(gpustub_hip_handle)
#define CODE(name)
#define HANDLE(name) LABEL(name)
#include "gpustub_hip_link.inc"
.zero 8
.section .note.GNU-stack, ""
