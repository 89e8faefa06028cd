/* runtime.c: the run time as one translation unit, so that building it is one compiler call. */
#define SINGLE_UNIT
#include "format.c"
#include "image.c"
#include "search_dirs.c"
#include "toolkit_version.c"
#include "candidate.c"
#include "search.c"
#include "load.c"
#include "call.c"
#include "hook.c"
#include "trace.c"
#include "report.c"
#include "api.c"
