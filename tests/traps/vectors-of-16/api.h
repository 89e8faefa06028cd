/* Vectors of 16 bytes, in the registers that carry them on each machine. */
typedef int vector __attribute__((vector_size(16)));

int trap_lanes(vector v0, vector v1, vector v2, vector v3, vector v4, vector v5, vector v6, vector v7);
vector trap_vector(vector v0, vector v1);
