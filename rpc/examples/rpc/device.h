/* Interface between the device's program and the host. C11, C++17, CUDA, HIP. */
#ifndef DEVICE_H
#define DEVICE_H

#include <gpurpc_client.h>

/* Returns the next number to add; 0: there is none. */
#define TAKE GPURPC_OPCODE('e', 1)
/* Passes a sum to the host. */
#define HAND_IN GPURPC_OPCODE('e', 2)

#if defined(__CUDACC__) || defined(__HIPCC__)
#define DEVICE __device__
#else
#define DEVICE
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The program, for each warp. The host has filled in `client`. */
DEVICE void warp(gpurpc_client_t *client);

/* Prints a file, by one warp. */
DEVICE void print_file(gpurpc_client_t *client, const char *name);

#ifdef __cplusplus
}
#endif

#endif
