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

// Bytes of a message, and the packets that it takes: one has 56 bytes after the size, the others 64.
#define MESSAGE 1024
#define MESSAGE_PACKETS (1 + (MESSAGE - 56 + 63) / 64)
#define WRITE_TO_STDOUT 0x63000002u
#define MALLOC 0x6300000au

static uint64_t handled;

static void receive(gpurpc_blocking_t *call, void *data) {
    void *messages[64];
    uint64_t sizes[64];
    (void)data;
    check(gpurpc_blocking_recv_n(call, messages, sizes));
    for (int lane = 0; lane < 64; lane++)
        handled += sizes[lane];
}

static void answer(gpurpc_blocking_t *call, void *data) {
    static const char bytes[MESSAGE];
    const void *messages[64];
    uint64_t sizes[64], mask = gpurpc_blocking_lane_mask(call);
    (void)data;
    for (int lane = 0; lane < 64; lane++) {
        messages[lane] = bytes, sizes[lane] = MESSAGE;
        handled += mask >> lane & 1 ? MESSAGE : 0;
    }
    check(gpurpc_blocking_recv(call, NULL, NULL));
    check(gpurpc_blocking_send_n(call, messages, sizes));
}

static int64_t written(gpurpc_device_t device, int stream, const void *bytes, uint64_t size, void *data) {
    (void)device, (void)stream, (void)bytes, (void)data;
    handled += size;
    return (int64_t)size;
}

static uint64_t allocated(gpurpc_device_t device, uint64_t size, void *data) {
    static uint64_t next = 64;
    (void)device, (void)data;
    handled += size;
    return next += 64;
}

static void freed(gpurpc_device_t device, uint64_t address, void *data) { (void)device, (void)address, (void)data; }

// Calls of several packets, and those of libc's services. Returns 0 for other kinds.
static int services(const struct calls *calls) {
    static const struct {
        const char *kind;
        uint32_t opcode, packets;
        uint64_t first_word;
    } kinds[] = {
        {"recv_n", CALL, MESSAGE_PACKETS, MESSAGE},
        {"send_n", CALL, MESSAGE_PACKETS, MESSAGE},
        {"WRITE_TO_STDOUT", WRITE_TO_STDOUT, 1, 16},
        {"MALLOC", MALLOC, 1, 16},
    };
    size_t kind = 0;
    while (strcmp(calls->kind, kinds[kind].kind))
        if (++kind == sizeof kinds / sizeof *kinds)
            return 0;
    gpurpc_libc_options_t libc = {.struct_size = sizeof libc, .write = written, .malloc = allocated, .free = freed};
    if (kind < 2)
        check(gpurpc_register_blocking(server, CALL, kind ? answer : receive, NULL));
    else
        check(gpurpc_register_libc(server, &libc));
    gpurpc_device_options_t options = {.struct_size = sizeof options, .ports = calls->ports, .lanes = calls->lanes};
    gpurpc_device_t device;
    void *memory;
    check(gpurpc_device_add(server, &options, &device));
    check(gpurpc_device_buffer(server, device, &memory, NULL));
    exchange(calls, memory, kinds[kind].opcode, kinds[kind].packets, kinds[kind].first_word, poll);
    if (handled != (uint64_t)calls->rounds * calls->pending * calls->lanes * kinds[kind].first_word)
        fail("a call was not handled");
    return 1;
}

int main(int count, char **words) {
    struct calls calls = arguments(count, words);
    gpurpc_device_options_t options = {.struct_size = sizeof options, .ports = calls.ports, .lanes = calls.lanes};
    gpurpc_device_t device;
    void *memory;
    check(gpurpc_server_create(NULL, &server));
    if (services(&calls))
        return gpurpc_server_destroy(server);
    if (!strcmp(calls.kind, "blocking"))
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
