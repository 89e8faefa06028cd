/* A shared library that nothing refers to is left out by linkers (--as-needed, which rustc says), and nothing calls
 * a final. This object asks for all that the final has to define; if it is another one, the link fails.
 * gpustub_final.inc has a line FINAL(id) for each object of relocatable code. */

#define FINAL(id) void __cudaRegisterLinkedBinary##id(void);
#include "gpustub_final.inc"
#undef FINAL

#define FINAL(id) __cudaRegisterLinkedBinary##id,
static void (*const needed[])(void) = {
#include "gpustub_final.inc"
};

/* Linkers drop what nothing uses, but no constructor. */
__attribute__((constructor)) static void need(void) { __asm__ volatile("" : : "r"(needed)); }
