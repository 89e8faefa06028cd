/* What the interoperation headers of CUDA use of EGL's: all versions of it have these types. */
typedef int EGLint;
