#define NCCL_VERSION_CODE 21400
typedef enum { ncclSuccess, ncclNumResults } ncclResult_t;
typedef struct { unsigned long size; unsigned magic, version; int blocking; } ncclConfig_t;
ncclResult_t ncclCommInitRankConfig(void **comm, ncclConfig_t *config);
ncclResult_t ncclCommFinalize(void *comm);
