/* Stands for nvcc's header of this name, which the runtime wheels lack. Nothing of it matters in C. */
