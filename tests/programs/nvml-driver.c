/* A fake NVML of driver 535.54, compiled with nvml.h of CUDA 12.2.81 and -DNVML_NO_UNVERSIONED_FUNC_DEFS: the drivers
 * from 535.43 until 535.98 have these functions. It reports two processes. */
#include <stdio.h>
#include <string.h>

#include "nvml.h"

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    snprintf(version, length, "12.535.54.03");
    return NVML_SUCCESS;
}

#define PROCESSES(function, type)                                                                  \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, type *processes)               \
    {                                                                                              \
        (void)device;                                                                              \
        memset(processes, 0xff, 2 * sizeof *processes);                                            \
        for (*count = 0; *count < 2; ++*count) {                                                   \
            processes[*count].pid = 100 + *count;                                                  \
            processes[*count].usedGpuMemory = 4096 * (1 + *count);                                 \
        }                                                                                          \
        return NVML_SUCCESS;                                                                       \
    }
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)
