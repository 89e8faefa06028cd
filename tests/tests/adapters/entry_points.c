/* Asks the runtime for the functions of the driver that the arguments name, NAME or NAME@VERSION: prints the code, the
 * status and which function there is. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cudaGetDriverEntryPoint(const char *, void **, unsigned long long, int *);
int cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long, int *);

int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        void *function = (void *)1;
        int status = -1, code;
        printf("%s: ", arguments[i]);
        char *version = strchr(arguments[i], '@');
        if (version) {
            *version = 0;
            code = cudaGetDriverEntryPointByVersion(
                arguments[i], &function, (unsigned)strtoul(version + 1, NULL, 10), 0, &status);
        } else {
            code = cudaGetDriverEntryPoint(arguments[i], &function, 0, &status);
        }
        printf("%d, status %d, %d\n", code, status, (int)(intptr_t)function);
    }
    return 0;
}
