/* What the interoperation headers of CUDA use of EGL's: all versions of it have these types. */
typedef void *EGLImageKHR;
typedef void *EGLStreamKHR;
typedef void *EGLSyncKHR;
