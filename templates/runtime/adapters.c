/* adapters.c: the adapters in use, a translation unit of its own where the run time is built by gpustub-build,
 * which compiles it at the same time. */
#include "adapters.h"

#include "gpustub_adapters.inc"
