// The server in the header of LLVM 22 or 23, with a loop as in its loader, or as in its offload runtime.
#include "client.h"
#include "rpc.h"

// Ports of LLVM 23 close themselves; its memory begins with a doorbell.
#ifdef LLVM_23
#define CLOSE(port)
#define MAILBOXES sizeof(rpc::Doorbell)
#else
#define CLOSE(port) (port)->close()
#define MAILBOXES 0
#endif

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
        CLOSE(port);
    }
}

static void first_port(void) {
    if (auto port = server->try_open(lanes, 0)) {
        serve(*port);
        CLOSE(port);
    }
}

int main(int count, char **words) {
    struct calls calls = arguments(count, words);
    lanes = calls.lanes;
    size_t size = rpc::Server::allocation_size(lanes, calls.ports);
    // A multiple of the alignment.
    size = (size + 63) / 64 * 64;
    void *memory = aligned_alloc(64, size);
    memset(memory, 0, size);
    server = new rpc::Server(calls.ports, memory);
    call(&calls, (char *)memory + MAILBOXES, 1, strcmp(calls.kind, "offload") ? each_port : first_port);
    delete server;
    free(memory);
    return 0;
}
