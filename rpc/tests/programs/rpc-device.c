/* The device's end of calls: C, C++, CUDA, HIP. */
#if defined(__clang__) && (defined(__CUDA__) || defined(__HIP__))
/* As in the headers of CUDA and HIP. */
#define __device__ __attribute__((device))
#endif
#include <gpurpc_client.h>

#if defined(__CUDACC__) || defined(__CUDA__) || defined(__HIP__)
#define FUNCTION extern "C" __device__
#elif defined(__cplusplus)
#define FUNCTION extern "C"
#else
#define FUNCTION
#endif

FUNCTION uint64_t ask(gpurpc_client_t *client, char *text, uint64_t size);

FUNCTION uint64_t ask(gpurpc_client_t *client, char *text, uint64_t size) {
    gpurpc_call_t call = gpurpc_client_open(client, GPURPC_OPCODE('t', 1));
    gpurpc_call_send_n(&call, text, size);
    size = gpurpc_call_recv_n(&call, text, size);
    gpurpc_call_fill(&call)->data[0] = size;
    gpurpc_call_send(&call);
    gpurpc_call_close(&call);
    return size;
}

FUNCTION void report(gpurpc_client_t *client, uint64_t error);

/* One lane at a time, in lockstep too. */
FUNCTION void report(gpurpc_client_t *client, uint64_t error) {
    for (uint64_t lanes = gpurpc_lane_mask(); lanes != 0; lanes &= lanes - 1)
        if (gpurpc_lane_is_first(lanes)) {
            gpurpc_call_t call = gpurpc_client_open_lane(client, GPURPC_OPCODE('t', 2));
            gpurpc_call_fill(&call)->data[0] = error;
            gpurpc_call_post(&call);
        }
}
