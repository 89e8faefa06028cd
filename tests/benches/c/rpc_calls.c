// Calls of a client on the same thread, for instruction counts: KIND PORTS LANES PENDING ROUNDS.
// Each round makes PENDING calls on ports at equal distances, and polls until all are answered. A call adds one to a
// word of each lane.
#include "gpurpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL 0x79000001u

static void fail(const char *what) {
    fprintf(stderr, "rpc_calls: %s\n", what);
    exit(1);
}

static void check(gpurpc_status_t status) {
    if (status)
        fail(gpurpc_strerror(status));
}

static void add_one(gpurpc_buffer_t *buffer, uint32_t lane, void *data) {
    (void)lane, (void)data;
    buffer->data[0]++;
}

static void queued(gpurpc_port_t *port, void *data) {
    (void)data;
    gpurpc_recv_and_send(port, add_one, NULL);
}

#ifdef GPURPC_IN_PLACE
static void warp(const gpurpc_buffer_t *in, gpurpc_buffer_t *out, uint64_t mask, uint32_t lanes, void *data) {
    (void)data;
    if (mask == (lanes == 64 ? ~0ull : (1ull << lanes) - 1))
        for (uint32_t lane = 0; lane < lanes; lane++)
            out[lane].data[0] = in[lane].data[0] + 1;
}
#endif

int main(int count, char **words) {
    if (count != 6)
        fail("KIND PORTS LANES PENDING ROUNDS");
    const char *kind = words[1];
    uint32_t ports = strtoul(words[2], 0, 10), lanes = strtoul(words[3], 0, 10);
    uint32_t pending = strtoul(words[4], 0, 10), rounds = strtoul(words[5], 0, 10);
    uint32_t step = ports / pending;
    gpurpc_server_t *server;
    check(gpurpc_server_create(NULL, &server));
    gpurpc_device_options_t options = {.struct_size = sizeof options, .ports = ports, .lanes = lanes};
    if (!strcmp(kind, "reply"))
        check(gpurpc_register_request(server, CALL, add_one, NULL));
    else if (!strcmp(kind, "queued"))
        check(gpurpc_register_callback(server, CALL, queued, NULL));
#ifdef GPURPC_IN_PLACE
    else if (!strncmp(kind, "warp", 4)) {
        check(gpurpc_register_warp(server, CALL, strcmp(kind, "warp-word") ? 8 : 1, warp, NULL));
        options.flags = strcmp(kind, "warp-in-place") ? 0 : GPURPC_IN_PLACE;
    }
#endif
    else
        fail("no such kind");
    gpurpc_device_t device;
    check(gpurpc_device_add(server, &options, &device));
    void *start;
    check(gpurpc_device_buffer(server, device, &start, NULL));
    volatile uint32_t *inbox = start;
    volatile uint32_t *outbox = inbox + ports;
    struct header { uint64_t mask; uint32_t opcode, reserved; } *headers = (struct header *)((char *)start + 8 * ports);
    volatile gpurpc_buffer_t *packets = (volatile gpurpc_buffer_t *)(headers + ports);
    for (uint32_t port = 0; port < ports; port += step)
        headers[port] = (struct header){lanes == 64 ? ~0ull : (1ull << lanes) - 1, CALL, 0};
    for (uint32_t round = 1; round <= rounds; round++) {
        for (uint32_t port = 0; port < ports; port += step)
            __atomic_store_n(&outbox[port], round & 1, __ATOMIC_RELEASE);
        for (uint32_t port = 0; port < ports; port += step)
            while (inbox[port] != (round & 1))
                gpurpc_poll(server, NULL);
    }
    for (uint32_t port = 0; port < ports; port += step)
        for (uint32_t lane = 0; lane < lanes; lane++)
            if (packets[(size_t)port * lanes + lane].data[0] != rounds)
                fail("a wrong answer");
    check(gpurpc_server_destroy(server));
    return 0;
}
