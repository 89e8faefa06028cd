/* Replaces nvcc's header of this name, which the runtime wheels lack. Its contents are irrelevant in C. */
