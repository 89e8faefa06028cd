// LLVM's own client and server of its libc's RPC, compiled for the host, where a warp has one lane. The headers
// are LLVM's (component llvm-libc-22); this file has only the functions that the test calls.
#include "rpc.h"
#include "rpc_opcodes.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

static_assert(sizeof(rpc::Client) == 552 && sizeof(rpc::Server) == 552, "as gpurpc has it");
static_assert(sizeof(rpc::Header) == 16 && sizeof(rpc::Buffer) == 64, "as gpurpc has it");
static_assert(offsetof(rpc::Header, opcode) == 8, "as gpurpc has it");

namespace {
template <uint32_t Opcode, typename Words>
uint64_t ask(rpc::Client *client, Words words) {
    auto port = client->open<Opcode>();
    uint64_t answer = 0;
    port.send_and_recv([&](rpc::Buffer *packet, uint32_t) { words(packet->data); },
                       [&](rpc::Buffer *packet, uint32_t) { answer = packet->data[0]; });
    port.close();
    return answer;
}

template <uint32_t Opcode> uint64_t write(rpc::Client *client, uint64_t file, const void *text, uint64_t size) {
    auto port = client->open<Opcode>();
    if (Opcode == LIBC_WRITE_TO_STREAM)
        port.send([=](rpc::Buffer *packet, uint32_t) { packet->data[0] = file; });
    port.send_n(text, size);
    uint64_t answer = 0;
    port.recv([&](rpc::Buffer *packet, uint32_t) { answer = packet->data[0]; });
    port.close();
    return answer;
}
} // namespace

extern "C" {

uint64_t llvm_allocation_size(uint32_t ports, uint32_t lanes) {
    return rpc::Server::allocation_size(lanes, ports);
}

rpc::Client *llvm_client(uint32_t ports, void *buffer) { return new rpc::Client(ports, buffer); }

void llvm_client_free(rpc::Client *client) { delete client; }

uint64_t llvm_increment(rpc::Client *client, uint64_t value) {
    return ask<LIBC_TEST_INCREMENT>(client, [=](uint64_t *words) { words[0] = value; });
}

// Sends bytes and receives them again. Returns 0 if they are the same.
int llvm_stream(rpc::Client *client, const void *bytes, uint64_t size) {
    auto port = client->open<LIBC_TEST_STREAM>();
    port.send_n(bytes, size);
    std::unique_ptr<char[]> received;
    void *to = nullptr;
    uint64_t got = 0;
    port.recv_n(&to, &got, [&](uint64_t n) {
        received.reset(new char[n + 1]);
        return static_cast<void *>(received.get());
    });
    port.close();
    return got != size || std::memcmp(received.get(), bytes, size) != 0;
}

uint64_t llvm_malloc(rpc::Client *client, uint64_t size) {
    return ask<LIBC_MALLOC>(client, [=](uint64_t *words) { words[0] = size; });
}

void llvm_free(rpc::Client *client, uint64_t address) {
    auto port = client->open<LIBC_FREE>();
    port.send([=](rpc::Buffer *packet, uint32_t) { packet->data[0] = address; });
    port.close();
}

uint64_t llvm_puts(rpc::Client *client, const char *text) {
    return write<LIBC_WRITE_TO_STDOUT_NEWLINE>(client, 0, text, std::strlen(text));
}

// Writes a file, seeks to its beginning, and reads it again. Returns 0 if all results conform to C.
int llvm_file(rpc::Client *client, const char *path, const void *bytes, uint64_t size) {
    auto port = client->open<LIBC_OPEN_FILE>();
    uint64_t file = 0;
    port.send_n(path, std::strlen(path) + 1);
    port.send_and_recv([](rpc::Buffer *packet, uint32_t) { std::memcpy(packet->data, "w+", 3); },
                       [&](rpc::Buffer *packet, uint32_t) { file = packet->data[0]; });
    port.close();
    if (!file)
        return 1;
    if (write<LIBC_WRITE_TO_STREAM>(client, file, bytes, size) != size)
        return 2;
    if (ask<LIBC_FTELL>(client, [=](uint64_t *words) { words[0] = file; }) != size)
        return 3;
    if (ask<LIBC_FSEEK>(client, [=](uint64_t *words) { words[0] = file, words[1] = 0, words[2] = 0; }) != 0)
        return 4;
    auto read = client->open<LIBC_READ_FROM_STREAM>();
    std::vector<char> received(size + 1);
    void *to = received.data();
    uint64_t sent = 0, count = 0;
    // More than the size of the file.
    read.send([=](rpc::Buffer *packet, uint32_t) { packet->data[0] = size + 1, packet->data[1] = file; });
    read.recv_n(&to, &sent, [&](uint64_t) { return static_cast<void *>(received.data()); });
    read.recv([&](rpc::Buffer *packet, uint32_t) { count = packet->data[0]; });
    read.close();
    if (sent != size || count != size || std::memcmp(received.data(), bytes, size) != 0)
        return 5;
    if (ask<LIBC_FEOF>(client, [=](uint64_t *words) { words[0] = file; }) == 0)
        return 6;
    if (ask<LIBC_CLOSE_FILE>(client, [=](uint64_t *words) { words[0] = file; }) != 0)
        return 7;
    return 0;
}

void llvm_exit(rpc::Client *client, int status) {
    auto port = client->open<LIBC_EXIT>();
    port.send_and_recv([](rpc::Buffer *, uint32_t) {}, [](rpc::Buffer *, uint32_t) {});
    port.send([=](rpc::Buffer *packet, uint32_t) { std::memcpy(packet->data, &status, sizeof status); });
    port.close();
}

// Serves calls with LLVM's server, for warps of any size, until a call without a service.
void llvm_serve(uint32_t ports, uint32_t lanes, void *buffer) {
    rpc::Server server(ports, buffer);
    for (;;) {
        auto port = server.open(lanes);
        switch (port.get_opcode()) {
        case LIBC_TEST_INCREMENT:
            port.recv_and_send([](rpc::Buffer *packet, uint32_t) { packet->data[0] += 1; });
            break;
        case LIBC_TEST_STREAM: {
            std::vector<void *> bytes(lanes);
            std::vector<uint64_t> sizes(lanes);
            port.recv_n(bytes.data(), sizes.data(), [](uint64_t n) -> void * { return new char[n + 1]; });
            port.send_n(bytes.data(), sizes.data());
            for (void *one : bytes)
                delete[] static_cast<char *>(one);
            break;
        }
        default:
            port.recv([](rpc::Buffer *, uint32_t) {});
            port.close();
            return;
        }
        port.close();
    }
}

} // extern "C"
