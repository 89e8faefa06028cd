// What physics offers to host code: sums over n triangles, computed on the GPU.
#pragma once

extern "C" {
// Sum of the areas of the triangles with legs i and i, for i below n. Status of the CUDA runtime.
int physics_area(unsigned n, double *sum);
// The same of triangles with legs i and 2, each twice.
int physics_energy(unsigned n, double *sum);
}
