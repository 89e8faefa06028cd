/* What the device's program and the host agree on. C11, C++17, CUDA, HIP. */
#ifndef DEVICE_H
#define DEVICE_H

#include <gpurpc_client.h>

/* Gives the next number that is to be added up; 0: there is none. */
#define TAKE GPURPC_OPCODE('e', 1)
/* Takes a sum. */
#define HAND_IN GPURPC_OPCODE('e', 2)

#if defined(__CUDACC__) || defined(__HIPCC__)
#define DEVICE __device__
#else
#define DEVICE
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The program, for each warp. `client` is what the host filled in. */
DEVICE void warp(gpurpc_client_t *client);

/* One warp prints a file. */
DEVICE void print_file(gpurpc_client_t *client, const char *name);

#ifdef __cplusplus
}
#endif

#endif
