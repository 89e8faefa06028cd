/* Linkers drop a shared library without references (--as-needed, which rustc passes), and no code calls a final.
 * This object refers to all functions that the final has to define; with another final the link fails.
 * gpustub_final.inc has a line FINAL(function) for each object of relocatable code. */

#define FINAL(function) void function(void);
#include "gpustub_final.inc"
#undef FINAL

#define FINAL(function) function,
static void (*const needed[])(void) = {
#include "gpustub_final.inc"
};

/* Linkers drop unused code, but no constructor. */
__attribute__((constructor)) static void need(void) { __asm__ volatile("" : : "r"(needed)); }
