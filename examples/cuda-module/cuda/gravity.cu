__device__ float acceleration(float distance) { return 1.0f / (distance * distance); }
