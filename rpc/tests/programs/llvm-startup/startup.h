// Included before each file of a start-up test.
#ifndef STARTUP_H
#define STARTUP_H

// LLVM's client pauses so between two polls. Hundreds of threads of the host poll here.
#define __builtin_ia32_pause() warp::pause()
#include "client.h"

#endif
