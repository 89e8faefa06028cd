/* Types of EGL that the interoperation headers of CUDA use: all versions have them. */
typedef int EGLint;
