#include "geometry.cuh"

namespace geometry {

__device__ unsigned long long calls;

__device__ double triangle(double a, double b) {
    atomicAdd(&calls, 1ull);
    return a * b / 2;
}

} // namespace geometry

// Reads the number of calls so far. Returns the CUDA runtime's status.
extern "C" int geometry_calls(unsigned long long *count) {
    return cudaMemcpyFromSymbol(count, geometry::calls, sizeof *count);
}
