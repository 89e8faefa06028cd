// The C library of LLVM 19.
#include "client.h"
#include "llvmlibc_rpc_server.h"

#define CALL 0x8001

static rpc_device_t device;

static void poll(void) { rpc_handle_server(device); }

static void add_one(rpc_buffer_t *buffer, void *data) {
    (void)data;
    buffer->data[0]++;
}

static void callback(rpc_port_t port, void *data) {
    (void)data;
    rpc_recv_and_send(port, add_one, NULL);
}

static void *memory;

static void *allocate(uint64_t size, void *data) {
    (void)data;
    return memory = calloc(1, size);
}

static void release(void *start, void *data) {
    (void)data;
    free(start);
}

int main(int count, char **words) {
    struct calls calls = arguments(count, words);
    if (rpc_server_init(&device, calls.ports, calls.lanes, allocate, NULL))
        fail("rpc_server_init");
    if (rpc_register_callback(device, CALL, callback, NULL))
        fail("rpc_register_callback");
    call(&calls, memory, CALL, poll);
    rpc_server_shutdown(device, release, NULL);
    return 0;
}
