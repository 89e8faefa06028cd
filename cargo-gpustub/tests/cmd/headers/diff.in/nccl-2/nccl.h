#define NCCL_VERSION_CODE 21700
typedef enum { ncclSuccess, ncclInProgress, ncclNumResults } ncclResult_t;
typedef struct { unsigned long size; unsigned magic, version; int blocking, cgaClusterSize, minCTAs; } ncclConfig_t;
ncclResult_t ncclCommInitRankConfig(void **comm, ncclConfig_t *config);
ncclResult_t ncclCommFinalize(void *comm);
