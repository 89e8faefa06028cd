/* libraries.c: the libraries of a package. gpustub-build compiles it and adapters.c as translation units of their own: all
 * else of the run time is the same in every package. Apart from each other, since strings of adapters share a section. */
#include "internal.h"

#include <stddef.h>

#include "gpustub_libraries.inc"
