#include "client.h"
#include "gpurpc.h"

#define CALL 0x79000001u

static gpurpc_server_t *server;

static void check(gpurpc_status_t status) {
    if (status)
        fail(gpurpc_strerror(status));
}

static void poll(void) { gpurpc_poll(server, NULL); }

static void add_one(gpurpc_buffer_t *buffer, uint32_t lane, void *data) {
    (void)lane, (void)data;
    buffer->data[0]++;
}

static void queued(gpurpc_port_t *port, void *data) {
    (void)data;
    gpurpc_recv_and_send(port, add_one, NULL);
}

static void blocking(gpurpc_blocking_t *call, void *data) {
    (void)data;
    gpurpc_blocking_recv_and_send(call, add_one, NULL);
}

// A call without an end: each round after the first continues it.
static void waiting(gpurpc_blocking_t *call, void *data) {
    (void)data;
    while (!gpurpc_blocking_recv_and_send(call, add_one, NULL))
        ;
}

static void warp(const gpurpc_buffer_t *input, gpurpc_buffer_t *output, uint64_t mask, uint32_t lanes, void *data) {
    (void)data;
    if (mask == ~0ull >> (64 - lanes))
        for (uint32_t lane = 0; lane < lanes; lane++)
            output[lane].data[0] = input[lane].data[0] + 1;
}

int main(int count, char **words) {
    struct calls calls = arguments(count, words);
    gpurpc_device_options_t options = {.struct_size = sizeof options, .ports = calls.ports, .lanes = calls.lanes};
    gpurpc_device_t device;
    void *memory;
    check(gpurpc_server_create(NULL, &server));
    if (!strcmp(calls.kind, "reply"))
        check(gpurpc_register_request(server, CALL, add_one, NULL));
    else if (!strcmp(calls.kind, "queued"))
        check(gpurpc_register_callback(server, CALL, queued, NULL));
    else if (!strcmp(calls.kind, "blocking"))
        check(gpurpc_register_blocking(server, CALL, blocking, NULL));
    else if (!strcmp(calls.kind, "waiting")) {
        check(gpurpc_register_blocking(server, CALL, waiting, NULL));
        options.memory_limit = 1u << 30;
    } else if (!strcmp(calls.kind, "warp"))
        check(gpurpc_register_warp(server, CALL, 8, warp, NULL));
    else if (!strcmp(calls.kind, "warp in place")) {
        check(gpurpc_register_warp(server, CALL, 8, warp, NULL));
        options.flags = GPURPC_IN_PLACE;
    } else
        fail("no such kind");
    check(gpurpc_device_add(server, &options, &device));
    check(gpurpc_device_buffer(server, device, &memory, NULL));
    call(&calls, memory, CALL, poll);
    check(gpurpc_server_destroy(server));
    return 0;
}
