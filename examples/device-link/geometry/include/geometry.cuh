// Device functions for the kernels of other libraries.
#pragma once

namespace geometry {

// Area of a right triangle with these legs. Counts its calls.
__device__ double triangle(double a, double b);

// Number of calls of `triangle`, in all kernels of the program.
extern __device__ unsigned long long calls;

} // namespace geometry
