/* A shared library with device code, for loading and unloading by a program. */
#include "program.h"

static Watcher watcher("plugin");

__device__ int plugin_variable;

__global__ void plugin_kernel(float factor) { plugin_variable = (int)factor; }

extern "C" int plugin_launch()
{
    plugin_kernel<<<5, 6>>>(2.5f);
    return launched("plugin");
}
