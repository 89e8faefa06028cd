/* toolkit_version.c: determines the toolkit of a file before it is loaded, if two toolkits use its name
 * (cusparse64_12.dll is in CUDA 12 and in CUDA 13). */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Returns the toolkit major of a file whose name two toolkits use, from its path (site-packages/nvidia/cu13,
 * CUDA/v13.0). 0: unknown. */
int32_t toolkit_major(const struct library *library, const char *path)
{
    static const char *const markers[] = {"/nvidia/cu", "/CUDA/v"};
    char *real = real_path(path);
    int32_t major = 0;
    (void)library;
    for (size_t i = 0; i < sizeof markers / sizeof *markers && real && !major; i++) {
        const char *marker = strstr(real, markers[i]);
        const char *number = marker ? marker + strlen(markers[i]) : "";
        if (*number >= '0' && *number <= '9')
            major = (int32_t)strtol(number, NULL, 10) % 10000;
    }
    free(real);
    return major;
}
