#include <execinfo.h>
#include <string.h>

#include "api.h"

static void *constructor[FRAMES];
static int constructor_frames;

__attribute__((constructor)) static void construct(void) { constructor_frames = backtrace(constructor, FRAMES); }

int trap_frames(void **frames) { return backtrace(frames, FRAMES); }

int trap_constructor_frames(void **frames)
{
    memcpy(frames, constructor, sizeof constructor);
    return constructor_frames;
}
