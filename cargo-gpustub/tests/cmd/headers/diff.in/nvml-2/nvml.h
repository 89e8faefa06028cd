#ifndef NVML_NO_UNVERSIONED_FUNC_DEFS
#define nvmlGet nvmlGet_v3
#endif
typedef struct { int pid; } nvmlProcess_v1_t;
typedef struct { int pid, memory, instance; } nvmlProcess_v3_t;
typedef nvmlProcess_v3_t nvmlProcess_t;
#ifdef NVML_NO_UNVERSIONED_FUNC_DEFS
int nvmlGet(nvmlProcess_v1_t *process);
int nvmlGet_v2(nvmlProcess_t *process);
#endif
int nvmlGet_v3(nvmlProcess_t *process);
int nvmlSet(nvmlProcess_t *process);
