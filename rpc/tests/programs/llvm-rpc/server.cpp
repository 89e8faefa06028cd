// LLVM's server: server FILE PORTS LANES. Provides its libc's services, on the streams of this process and in its
// directory, until a client exits. Version 19 uses the library of that name, later ones the header instead.
#include <cstdint>
#include <string>
#include <vector>

#include "memory.h"

#if LLVM_MAJOR == 19
#include "llvmlibc_rpc_opcodes.h"
#include "llvmlibc_rpc_server.h"

namespace {
void check(rpc_status_t status) {
    if (status != RPC_STATUS_SUCCESS && status != RPC_STATUS_CONTINUE) {
        std::fprintf(stderr, "LLVM's server: status %x\n", status);
        std::exit(3);
    }
}

using Callback = rpc_opcode_callback_ty;

// Without malloc: a device may free addresses that were not allocated.
void *allocate(uint64_t size, void *) { return ::operator new(size); }

const Callback increment = [](rpc_port_t port, void *) {
    rpc_recv_and_send(
        port, [](rpc_buffer_t *packet, void *) { packet->data[0] += 1; }, nullptr);
};

// Implementation of LLVM 19's own loader.
const Callback malloc_of_device = [](rpc_port_t port, void *) {
    rpc_recv_and_send(
        port,
        [](rpc_buffer_t *packet, void *) {
            packet->data[0] = reinterpret_cast<uint64_t>(std::malloc(packet->data[0]));
        },
        nullptr);
};
const Callback free_of_device = [](rpc_port_t port, void *) {
    rpc_recv(
        port, [](rpc_buffer_t *packet, void *) { std::free(reinterpret_cast<void *>(packet->data[0])); }, nullptr);
};

const Callback stream = [](rpc_port_t port, void *) {
    std::vector<void *> bytes(port.lane_size);
    std::vector<uint64_t> sizes(port.lane_size);
    rpc_recv_n(port, bytes.data(), sizes.data(), allocate, nullptr);
    rpc_send_n(port, bytes.data(), sizes.data());
    for (void *one : bytes)
        ::operator delete(one);
};

// One count per lane.
const Callback interface = [](rpc_port_t port, void *) {
    struct Counts {
        uint64_t end_with_recv = 0, at = 0, of[64] = {};
    } counts;
    auto first = [](rpc_buffer_t *packet, void *to) { static_cast<Counts *>(to)->end_with_recv = packet->data[0]; };
    // The interface passes no lane number, but visits the active lanes in ascending order.
    auto take = [](rpc_buffer_t *packet, void *to) {
        auto counts = static_cast<Counts *>(to);
        counts->of[counts->at++] = packet->data[0];
    };
    auto give = [](rpc_buffer_t *packet, void *from) {
        auto counts = static_cast<Counts *>(from);
        packet->data[0] = ++counts->of[counts->at++];
    };
    auto recv = [&] { counts.at = 0, rpc_recv(port, take, &counts); };
    auto send = [&] { counts.at = 0, rpc_send(port, give, &counts); };
    rpc_recv(port, first, &counts);
    recv(), send(), recv(), send(), recv(), recv(), send(), send();
    counts.end_with_recv ? recv() : send();
};

void serve(uint32_t ports, uint32_t lanes, void *buffer) {
    rpc_device_t device;
    check(rpc_server_init(
        &device, ports, lanes, [](uint64_t, void *buffer) { return buffer; }, buffer));
    const std::pair<uint16_t, Callback> callbacks[] = {
        {RPC_MALLOC, malloc_of_device}, {RPC_FREE, free_of_device}, {1 << 15, increment},
        {(1 << 15) + 1, interface},     {(1 << 15) + 2, stream},
    };
    for (auto [opcode, callback] : callbacks)
        check(rpc_register_callback(device, opcode, callback, nullptr));
    for (;;)
        check(rpc_handle_server(device));
}

uint64_t size(uint32_t ports, uint32_t lanes) { return ports * (24 + uint64_t(64) * lanes); }
} // namespace

#else
#include "shared/rpc_server.h"

namespace {
[[maybe_unused]] constexpr uint32_t INCREMENT = uint32_t('c') << 24 | 1 << 15, INTERFACE = INCREMENT + 1,
                                    STREAM = INCREMENT + 2;

#if LLVM_MAJOR < 23
using LIBC_NAMESPACE::shared::handle_libc_opcodes;
#else
using rpc::handle_libc_opcodes;
#endif

void serve(uint32_t ports, uint32_t lanes, void *buffer) {
    rpc::Server server(ports, buffer);
    for (uint32_t index = 0;;) {
        auto port = server.try_open(lanes, index);
        if (!port) {
            index = 0;
            continue;
        }
        index = port->get_index() + 1;
        switch (port->get_opcode()) {
        case LIBC_MALLOC:
            port->recv_and_send([](rpc::Buffer *packet, uint32_t) {
                packet->data[0] = reinterpret_cast<uint64_t>(std::malloc(packet->data[0]));
            });
            break;
        case LIBC_FREE:
            port->recv([](rpc::Buffer *packet, uint32_t) { std::free(reinterpret_cast<void *>(packet->data[0])); });
            break;
#if LLVM_MAJOR < 22
        // Later ones have them.
        case INCREMENT:
            port->recv_and_send([](rpc::Buffer *packet, uint32_t) { packet->data[0] += 1; });
            break;
        case STREAM: {
            std::vector<void *> bytes(lanes);
            std::vector<uint64_t> sizes(lanes);
            port->recv_n(bytes.data(), sizes.data(), [](uint64_t n) -> void * { return ::operator new(n); });
            port->send_n(bytes.data(), sizes.data());
            for (void *one : bytes)
                ::operator delete(one);
            break;
        }
#endif
        case INTERFACE: {
            // LLVM's own has one count for all lanes; this one has one per lane.
            std::vector<uint64_t> counts(lanes);
            bool end_with_recv = false;
            auto recv = [&] { port->recv([&](rpc::Buffer *packet, uint32_t id) { counts[id] = packet->data[0]; }); };
            auto send = [&] { port->send([&](rpc::Buffer *packet, uint32_t id) { packet->data[0] = ++counts[id]; }); };
            port->recv([&](rpc::Buffer *packet, uint32_t) { end_with_recv = packet->data[0]; });
            recv(), send(), recv(), send(), recv(), recv(), send(), send();
            end_with_recv ? recv() : send();
            break;
        }
        default:
            if (handle_libc_opcodes(*port, lanes) != rpc::RPC_SUCCESS) {
                std::fprintf(stderr, "LLVM's server: opcode %x\n", port->get_opcode());
                std::exit(3);
            }
        }
#if LLVM_MAJOR < 23
        port->close();
#endif
    }
}

uint64_t size(uint32_t ports, uint32_t lanes) { return rpc::Server::allocation_size(lanes, ports); }
} // namespace
#endif

int main(int count, char **words) {
    if (count != 4)
        return 2;
    // Exits do not flush.
    std::setvbuf(stdout, nullptr, _IONBF, 0);
    uint32_t ports = static_cast<uint32_t>(std::stoul(words[2])), lanes = static_cast<uint32_t>(std::stoul(words[3]));
    void *buffer = memory(words[1], size(ports, lanes));
#if LLVM_MAJOR >= 23
    // Counter and mailbox are behind the memory of the protocol. Without a counter the server subtracts no calls.
    auto after = reinterpret_cast<uint64_t *>(static_cast<char *>(buffer) + size(ports, lanes));
    *static_cast<rpc::Doorbell *>(buffer) = {after, after + 1, 0};
#endif
    serve(ports, lanes, buffer);
}
