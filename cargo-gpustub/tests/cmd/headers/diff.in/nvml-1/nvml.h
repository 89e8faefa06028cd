#ifndef NVML_NO_UNVERSIONED_FUNC_DEFS
#define nvmlGet nvmlGet_v2
#endif
typedef struct { int pid, memory; } nvmlProcess_v2_t;
typedef nvmlProcess_v2_t nvmlProcess_t;
#ifdef NVML_NO_UNVERSIONED_FUNC_DEFS
int nvmlGet(nvmlProcess_t *process);
#endif
int nvmlGet_v2(nvmlProcess_t *process);
int nvmlSet(nvmlProcess_t *process);
