// As host.c, with the threads and ownership of C++.
#include <gpurpc.h>

#include "device.h"

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

constexpr int warp_count = 8;
constexpr std::uint64_t last = 1000;

void ok(gpurpc_status_t status) {
    if (status != GPURPC_STATUS_SUCCESS)
        throw std::runtime_error(gpurpc_strerror(status));
}

struct Destroy {
    void operator()(gpurpc_server_t *server) const { gpurpc_server_destroy(server); }
};

std::unique_ptr<gpurpc_server_t, Destroy> create() {
    gpurpc_server_t *server = nullptr;
    ok(gpurpc_server_create(nullptr, &server));
    return std::unique_ptr<gpurpc_server_t, Destroy>(server);
}

struct Work {
    std::uint64_t next = 1, sum = 0;
};

int run(const char *file) {
    Work work;
    const auto server = create();
    gpurpc_libc_options_t libc{};
    libc.struct_size = sizeof libc;
    libc.root = "files";
    ok(gpurpc_register_libc(server.get(), &libc));
    // The device has one lane in each warp.
    const auto give = [](const gpurpc_buffer_t *, gpurpc_buffer_t *output, std::uint64_t, std::uint32_t, void *data) {
        auto &next = static_cast<Work *>(data)->next;
        output->data[0] = next <= last ? next++ : 0;
    };
    const auto collect = [](const gpurpc_buffer_t *input, gpurpc_buffer_t *, std::uint64_t, std::uint32_t, void *data) {
        static_cast<Work *>(data)->sum += input->data[0];
    };
    ok(gpurpc_register_warp(server.get(), TAKE, 1, give, &work));
    ok(gpurpc_register_warp(server.get(), HAND_IN, 1, collect, &work));

    gpurpc_device_options_t options{};
    options.struct_size = sizeof options;
    options.ports = warp_count;
    options.lanes = 1;
    gpurpc_device_t device{};
    void *buffer = nullptr;
    gpurpc_client_t client;
    ok(gpurpc_device_add(server.get(), &options, &device));
    ok(gpurpc_device_buffer(server.get(), device, &buffer, nullptr));
    ok(gpurpc_client_init(&options, &client, sizeof client, reinterpret_cast<std::uintptr_t>(buffer)));

    std::thread serving([&] { gpurpc_serve(server.get()); });
    print_file(&client, file);
    std::vector<std::thread> warps;
    for (int i = 0; i < warp_count; i++)
        warps.emplace_back(warp, &client);
    for (auto &one : warps)
        one.join();
    gpurpc_drain(server.get());
    serving.join();
    std::printf("the sum up to %llu is %llu\n", static_cast<unsigned long long>(last),
                static_cast<unsigned long long>(work.sum));
    return 0;
}

} // namespace

int main(int count, char **arguments) {
    try {
        return run(count > 1 ? arguments[1] : "poem.txt");
    } catch (const std::exception &error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
