/* CUDA's headers for Direct3D need those of the system, of which cudaD3D9.h and the others include none, and name a
 * struct without `struct`, which only C++ allows. */
#include <windows.h>
#include <d3d9.h>
#include <d3d10.h>
#include <d3d11.h>
#include <GL/gl.h>
typedef struct cudaArray cudaArray;
