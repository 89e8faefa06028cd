/* runtime.c: the run time as one translation unit, so that building it is one compiler call. */
#define SINGLE_UNIT
#include "format.c"
#include "system.c"
#include "parts.c"
#include "dirs.c"
#include "search_dirs.c"
#include "preload.c"
#include "version_query.c"
#include "resolve.c"
#include "data.c"
#include "candidate.c"
#include "search.c"
#include "load.c"
#include "call.c"
#include "hook.c"
#include "unload.c"
#include "trace.c"
#include "report.c"
#include "api.c"
#ifndef GPUSTUB_EXPORT
#include "query.c"
#endif
#ifndef GPUSTUB_LIBRARIES_APART
#include "libraries.c"
#include "adapters.c"
#endif
