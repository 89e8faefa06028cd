// The server in the header of LLVM 22, with a loop as in its loader, or as in its offload runtime.
#include "client.h"
#include "rpc.h"

static rpc::Server *server;
static uint32_t lanes;

static void serve(rpc::Server::Port &port) {
    if (port.get_opcode() != 1)
        fail("another opcode");
    port.recv_and_send([](rpc::Buffer *packet, uint32_t) { packet->data[0]++; });
}

static void each_port(void) {
    uint32_t next = 0;
    while (auto port = server->try_open(lanes, next)) {
        next = port->get_index() + 1;
        serve(*port);
        port->close();
    }
}

static void first_port(void) {
    if (auto port = server->try_open(lanes, 0)) {
        serve(*port);
        port->close();
    }
}

int main(int count, char **words) {
    struct calls calls = arguments(count, words);
    lanes = calls.lanes;
    void *memory = calloc(1, rpc::Server::allocation_size(lanes, calls.ports));
    server = new rpc::Server(calls.ports, memory);
    call(&calls, memory, 1, strcmp(calls.kind, "offload") ? each_port : first_port);
    delete server;
    free(memory);
    return 0;
}
