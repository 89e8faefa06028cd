/* A device that writes while it is removed, and afterwards: for valgrind and ThreadSanitizer (tests/sanitizer). Its
 * memory is that of the library, which stays until the server is destroyed. */
#include <sched.h>

#include <gpurpc.h>

#include "rpc-check.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ADD = GPURPC_OPCODE('t', 1), ECHO = GPURPC_OPCODE('t', 2) };
enum { DEVICES = 10, PORTS = 64, LANES = 32, HEADER = 16, PACKET = 64 };

static gpurpc_server_t *server;

static void add(const gpurpc_buffer_t *input, gpurpc_buffer_t *output, uint64_t mask, uint32_t lanes, void *data) {
    uint32_t lane;
    (void)data;
    for (lane = 0; lane < lanes; lane++)
        if (mask >> lane & 1)
            /* The device writes to the same word. */
            __atomic_store_n(&output[lane].data[0], input[lane].data[0] + 1, __ATOMIC_RELAXED);
}

/* Receives messages of any size, until the call is dropped or abandoned. */
static void echo(gpurpc_blocking_t *call, void *data) {
    void *messages[64];
    uint64_t sizes[64];
    (void)data;
    (void)gpurpc_blocking_recv_n(call, messages, sizes);
}

static void *serve(void *data) {
    (void)data;
    OK(gpurpc_serve(server));
    return NULL;
}

struct storm {
    unsigned char *memory;
    uint64_t size, writes;
    int calm;
};

/* Writes opcodes, sizes and mailboxes until the flag is set, as a warp that cannot be ended. */
static void *write_everywhere(void *data) {
    struct storm *storm = (struct storm *)data;
    uint64_t state = 88172645463325252u;
    while (!__atomic_load_n(&storm->calm, __ATOMIC_ACQUIRE)) {
        uint64_t port, packet;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        port = state % PORTS;
        packet = 8 * PORTS + HEADER * PORTS + PACKET * (port * LANES + (state >> 8) % LANES);
        CHECK(packet + PACKET <= storm->size);
        /* The accesses of a device are atomic in its words. */
        __atomic_store_n((uint64_t *)(storm->memory + packet), state >> 32 & 0xffff, __ATOMIC_RELAXED);
        __atomic_store_n((uint64_t *)(storm->memory + 8 * PORTS + HEADER * port), state, __ATOMIC_RELAXED);
        __atomic_store_n((uint64_t *)(storm->memory + 8 * PORTS + HEADER * port + 8), state >> 20 & 1 ? ADD : ECHO,
                         __ATOMIC_RELAXED);
        __atomic_fetch_xor((uint32_t *)(storm->memory + 4 * (PORTS + port)), 1, __ATOMIC_RELEASE);
        __atomic_fetch_add(&storm->writes, 1, __ATOMIC_RELEASE);
        sched_yield();
    }
    return NULL;
}

/* Waits until the device has written so many times more. */
static void await_writes(struct storm *storm, uint64_t count) {
    uint64_t until = __atomic_load_n(&storm->writes, __ATOMIC_ACQUIRE) + count;
    while (__atomic_load_n(&storm->writes, __ATOMIC_ACQUIRE) < until)
        sched_yield();
}

int main(void) {
    static struct storm storms[DEVICES];
    static pthread_t warps[DEVICES];
    pthread_t servers[2];
    int n;

    OK(gpurpc_server_create(NULL, &server));
    OK(gpurpc_register_warp(server, ADD, 1, add, NULL));
    OK(gpurpc_register_blocking(server, ECHO, echo, NULL));
    for (n = 0; n < 2; n++)
        CHECK(pthread_create(&servers[n], NULL, serve, NULL) == 0);
    for (n = 0; n < DEVICES; n++) {
        gpurpc_device_options_t options;
        gpurpc_device_t device;
        void *memory = NULL;
        uint32_t reset = 0;
        memset(&options, 0, sizeof options);
        options.struct_size = sizeof options;
        options.ports = PORTS;
        options.lanes = LANES;
        OK(gpurpc_device_add(server, &options, &device));
        OK(gpurpc_device_buffer(server, device, &memory, &storms[n].size));
        storms[n].memory = (unsigned char *)memory;
        CHECK(pthread_create(&warps[n], NULL, write_everywhere, &storms[n]) == 0);
        await_writes(&storms[n], 200);
        OK(gpurpc_device_reset_ports(server, device, &reset));
        CHECK(reset <= PORTS);
        await_writes(&storms[n], 200);
        OK(gpurpc_device_remove(server, device));
        /* The device continues beside the next one. */
        await_writes(&storms[n], 200);
        if (n > 0) {
            __atomic_store_n(&storms[n - 1].calm, 1, __ATOMIC_RELEASE);
            CHECK(pthread_join(warps[n - 1], NULL) == 0);
        }
    }
    __atomic_store_n(&storms[DEVICES - 1].calm, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(warps[DEVICES - 1], NULL) == 0);
    OK(gpurpc_stop(server));
    for (n = 0; n < 2; n++)
        CHECK(pthread_join(servers[n], NULL) == 0);
    OK(gpurpc_server_destroy(server));
    printf("%d devices\n", DEVICES);
    return 0;
}
