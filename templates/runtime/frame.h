/* frame.h: what all asm/<arch>.S share before their macros, and offsets that they share with C, where internal.h
 * asserts them. */

#ifndef GPUSTUB_FRAME_H
#define GPUSTUB_FRAME_H

#if __SIZEOF_POINTER__ == 8
#define SLOT_INFO     8
#define SLOT_CODE     12
#define LIBRARY_SPECS 8
#else
#define SLOT_INFO     4
#define SLOT_CODE     8
#define LIBRARY_SPECS 4
#endif
#define SPEC_SIZE     28
/* Mask of the reason in slot.code: slots are aligned to 8 and trampolines to 16, so that three bits are free.
 * gpustub1_slow answers a call of a slot with a reason without saving vector registers. */
#define SLOT_REASON 7

/* Visibility of a stub: those of a library of stubs are exported. */
#ifdef GPUSTUB_EXPORT
#define GPUSTUB_HIDE(name)
#else
#define GPUSTUB_HIDE(name) .hidden name
#endif

#endif
