// Prints sizes and offsets of LLVM's RPC, a name and a number in each line: layout. Compiled from the headers of a release.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>

#if LLVM_MAJOR == 19
#include "src/__support/RPC/rpc.h"
namespace rpc = LIBC_NAMESPACE::rpc;
#else
#include "shared/rpc.h"
#endif

namespace {
using Client = rpc::Process<false>;

void print(const char *name, size_t value) { std::printf("%s %zu\n", name, value); }
} // namespace

int main() {
    print("client_size", sizeof(rpc::Client));
    print("server_size", sizeof(rpc::Server));
    print("max_ports", rpc::MAX_PORT_COUNT);
    print("lock_offset", offsetof(Client, lock));
    print("lock_words", sizeof(Client::lock) / sizeof(uint32_t));
    print("port_count", offsetof(Client, port_count));
    print("inbox", offsetof(Client, inbox));
    print("outbox", offsetof(Client, outbox));
    print("header", offsetof(Client, header));
    print("packet", offsetof(Client, packet));
#if LLVM_MAJOR >= 23
    print("doorbell", offsetof(Client, doorbell));
    print("doorbell.value", offsetof(rpc::Doorbell, value));
    print("doorbell.mailbox", offsetof(rpc::Doorbell, mailbox));
    print("doorbell.event_id", offsetof(rpc::Doorbell, event_id));
    print("alignment", alignof(rpc::Doorbell));
#else
    print("alignment", alignof(rpc::Buffer));
#endif
    print("header_size", sizeof(rpc::Header));
    print("header.mask", offsetof(rpc::Header, mask));
    print("header.opcode", offsetof(rpc::Header, opcode));
    print("opcode_bytes", sizeof(rpc::Header::opcode));
    print("packet_size", sizeof(rpc::Buffer));
    for (uint32_t ports : {1, 2, 3, 63, 64, 65, 1000, 4096, static_cast<int>(rpc::MAX_PORT_COUNT)})
        for (uint32_t lanes : {1, 32, 64}) {
            std::printf("size %u %u %zu\n", ports, lanes, size_t(rpc::Server::allocation_size(lanes, ports)));
            std::printf("parts %u %u %zu %zu %zu %zu\n", ports, lanes, size_t(Client::inbox_offset(ports)),
                        size_t(Client::outbox_offset(ports)), size_t(Client::header_offset(ports)),
                        size_t(Client::buffer_offset(ports)));
        }
}
