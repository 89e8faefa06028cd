/* Imitates the part of OpenCL's header that FindOpenCL and the program need. */
#define CL_VERSION_1_2 1
int clGetPlatformIDs(unsigned capacity, void *platforms, unsigned *count);
