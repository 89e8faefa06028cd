/* Checks of the programs that use gpurpc.h. C11 and C++17. */
#ifndef RPC_CHECK_H
#define RPC_CHECK_H

#include <gpurpc.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

#define EXPECT(call, status)                                                                               \
    do {                                                                                                   \
        gpurpc_status_t got = (call);                                                                      \
        if (got != (status)) {                                                                             \
            fprintf(stderr, "%s:%d: %s: %#x: %s\n", __FILE__, __LINE__, #call, (unsigned)got,              \
                    gpurpc_strerror(got));                                                                 \
            exit(1);                                                                                       \
        }                                                                                                  \
    } while (0)

#define OK(call) EXPECT(call, GPURPC_STATUS_SUCCESS)

#endif
