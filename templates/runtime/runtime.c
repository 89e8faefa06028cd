/* runtime.c: the run time as one translation unit, so that building it is one compiler call. */
#define GPUSTUB1_ONE_UNIT
#include "text.c"
#include "image.c"
#include "place.c"
#include "major.c"
#include "take.c"
#include "find.c"
#include "load.c"
#include "call.c"
#include "hook.c"
#include "debug.c"
#include "report.c"
#include "api.c"
