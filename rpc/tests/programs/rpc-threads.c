/* Host threads as clients and as servers. For ThreadSanitizer: tests/sanitizer. With GPURPC_CLIENT_LLVM 23, a doorbell
 * counts their calls. */
#include <sched.h>

#define GPURPC_PAUSE() sched_yield()
#include <gpurpc.h>
#include <gpurpc_client.h>

#include "rpc-check.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ADD = GPURPC_OPCODE('t', 1), ECHO = GPURPC_OPCODE('t', 2) };
enum { CLIENTS = 4, CALLS = 300, PORTS = 3 };

static gpurpc_server_t *server;
static gpurpc_client_t client;
/* Number of open calls, and mailbox. */
static uint64_t doorbell[2];

static void add(const gpurpc_buffer_t *input, gpurpc_buffer_t *output, uint64_t mask, uint32_t lanes, void *data) {
    (void)mask;
    (void)lanes;
    (void)data;
    output->data[0] = input->data[0] + input->data[7];
}

/* A message, and the same one as the answer. */
static void echo(gpurpc_blocking_t *call, void *data) {
    void *messages[64];
    uint64_t sizes[64];
    (void)data;
    OK(gpurpc_blocking_recv_n(call, messages, sizes));
    OK(gpurpc_blocking_send_n(call, (const void *const *)messages, sizes));
}

static void *ask(void *data) {
    uint64_t id = (uint64_t)(uintptr_t)data, n;
    for (n = 0; n < CALLS; n++) {
        uint64_t value = id << 32 | n, size;
        unsigned char text[200], back[200];
        gpurpc_call_t call = gpurpc_client_open(&client, ADD);
        gpurpc_buffer_t *packet = gpurpc_call_fill(&call);
        packet->data[0] = value;
        packet->data[7] = 5;
        gpurpc_call_send(&call);
        CHECK(gpurpc_call_recv(&call)->data[0] == value + 5);
        gpurpc_call_close(&call);

        call = gpurpc_client_open(&client, ECHO);
        size = value % sizeof text;
        memset(text, (int)value, sizeof text);
        gpurpc_call_send_n(&call, text, size);
        CHECK(gpurpc_call_recv_n(&call, back, sizeof back) == size);
        CHECK(memcmp(text, back, size) == 0);
        gpurpc_call_close(&call);

        /* A call without a waiting client. */
        call = gpurpc_client_open(&client, ADD);
        gpurpc_call_fill(&call)->data[0] = value;
        gpurpc_call_send(&call);
        gpurpc_call_close(&call);
    }
    return NULL;
}

static void *serve(void *data) {
    (void)data;
    OK(gpurpc_serve(server));
    return NULL;
}

int main(void) {
    gpurpc_device_options_t options;
    gpurpc_device_t device;
    pthread_t servers[2], clients[CLIENTS];
    void *buffer = NULL;
    uint64_t size = 0;
    uintptr_t id;

    OK(gpurpc_server_create(NULL, &server));
    OK(gpurpc_register_warp(server, ADD, 8, add, NULL));
    OK(gpurpc_register_blocking(server, ECHO, echo, NULL));
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.ports = PORTS;
    options.lanes = 1;
    options.generation = GPURPC_CLIENT_LLVM;
#if GPURPC_CLIENT_LLVM >= 23
    options.doorbell_value = &doorbell[0];
    options.doorbell_mailbox = &doorbell[1];
    options.doorbell_event = 7;
#endif
    OK(gpurpc_device_add(server, &options, &device));
    OK(gpurpc_device_buffer(server, device, &buffer, &size));
    OK(gpurpc_client_init(&options, &client, sizeof client, (uint64_t)(uintptr_t)buffer));
    for (id = 0; id < 2; id++)
        CHECK(pthread_create(&servers[id], NULL, serve, NULL) == 0);
    for (id = 0; id < CLIENTS; id++)
        CHECK(pthread_create(&clients[id], NULL, ask, (void *)id) == 0);
    for (id = 0; id < CLIENTS; id++)
        CHECK(pthread_join(clients[id], NULL) == 0);
    OK(gpurpc_drain(server));
    for (id = 0; id < 2; id++)
        CHECK(pthread_join(servers[id], NULL) == 0);
    CHECK(doorbell[0] == 0 && doorbell[1] == options.doorbell_event);
    OK(gpurpc_device_remove(server, device));
    OK(gpurpc_server_destroy(server));
    printf("%d calls\n", 3 * CLIENTS * CALLS);
    return 0;
}
