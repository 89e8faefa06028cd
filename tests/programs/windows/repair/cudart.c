/* A CUDA runtime of the major in VERSION with two functions, and what images import that no stub can replace. */
int cudaGetDeviceCount(int *count), cudaRuntimeGetVersion(int *version), by_number(void);

int there = 1;

int cudaGetDeviceCount(int *count)
{
    *count = VERSION;
    return 0;
}

int cudaRuntimeGetVersion(int *version)
{
    *version = VERSION * 1000;
    return 0;
}

int by_number(void) { return 1; }
