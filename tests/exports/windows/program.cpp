// A program in C++ that calls the functions as with the toolkit's import libraries, by pointers.
#include <cstdio>
#include <gpustub.h>

extern "C" __declspec(dllimport) int cuInit(unsigned flags);
extern "C" __declspec(dllimport) int cudaRuntimeGetVersion(int *version);

int main()
{
    int version = -7, driver = cuInit(0), runtime = cudaRuntimeGetVersion(&version);
    int bound = -7;
    gpustub_counts("cudart", &bound, nullptr, nullptr);
    std::printf("cuInit %d, cudaRuntimeGetVersion %d %d, %d bound\n", driver, runtime, version, bound);
}
