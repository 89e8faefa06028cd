/* Prints the processes of a device, by each of NVML's three functions. An inaccessible page follows the array. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nvml.h"

static void print(const char *what,
                  nvmlReturn_t (*get)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *))
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    nvmlProcessInfo_t *processes = (nvmlProcessInfo_t *)(void *)(pages + page) - 2;
    unsigned int count = 2;
    mprotect(pages + page, page, PROT_NONE);
    printf("%s %d", what, get(NULL, &count, processes));
    for (unsigned int i = 0; i < count; i++)
        printf(", %u: %llu", processes[i].pid, processes[i].usedGpuMemory);
    putchar('\n');
    munmap(pages, 2 * page);
}

int main(void)
{
    print("compute", nvmlDeviceGetComputeRunningProcesses);
    print("graphics", nvmlDeviceGetGraphicsRunningProcesses);
    print("mps", nvmlDeviceGetMPSComputeRunningProcesses);
    return 0;
}
