// Functions for host code: sums over n triangles, computed on the GPU.
#pragma once

extern "C" {
// Sum of the areas of the triangles with legs i and i, for i below n. Returns the CUDA status.
int physics_area(unsigned n, double *sum);
// As physics_area, for triangles with legs i and 2, each counted twice.
int physics_energy(unsigned n, double *sum);
}
