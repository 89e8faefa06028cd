/* Loads the CUDA runtime, which selects the toolkit, then two of its libraries. */
#include <stdio.h>

#include "gpustub.h"

int cudaRuntimeGetVersion(int *version);
int cusolverGetProperty(int type, int *value);
int cusparseGetProperty(int type, int *value);

int main(void)
{
    static const char *const libraries[] = {"cudart", "cusolver", "cusparse"};
    int value;
    (void)cudaRuntimeGetVersion(&value);
    (void)cusolverGetProperty(0, &value);
    (void)cusparseGetProperty(0, &value);
    for (int i = 0; i < 3; i++) {
        printf("%s %d\n", libraries[i], gpustub_is_available(libraries[i]));
        fputs(gpustub_report(libraries[i]), stderr);
    }
    return 0;
}
