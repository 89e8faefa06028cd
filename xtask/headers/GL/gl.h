/* Types of OpenGL that the interoperation headers of CUDA use: all versions have them. */
typedef unsigned int GLenum;
typedef unsigned int GLuint;
