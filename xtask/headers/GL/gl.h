/* What the interoperation headers of CUDA use of OpenGL's: all versions of it have these types. */
typedef unsigned int GLenum;
typedef unsigned int GLuint;
