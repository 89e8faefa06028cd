// What device code of others calls.
#pragma once

#if SIDES != 3
#error the defines of base are not there
#endif

__device__ int base_twice(int x);
