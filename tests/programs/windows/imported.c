/* A caller with __declspec(dllimport), as the headers of CUDA and OpenCL for MSVC have it. */
__declspec(dllimport) int trap_value(void);

int imported_value(void) { return trap_value(); }
void *imported_address(void) { return (void *)trap_value; }
