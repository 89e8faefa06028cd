// A warp of 32 lanes on the host: each lane is a thread, and the functions of CUDA that gpurpc_client.h calls are defined here,
// so that its code for nvcc runs. Lanes diverge as on sm_70 and later. Says nothing about the memory of a GPU.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#define CHECK(what)                                                          \
    do {                                                                     \
        if (!(what)) {                                                       \
            std::fprintf(stderr, "line %d: failed: %s\n", __LINE__, #what);  \
            std::exit(1);                                                    \
        }                                                                    \
    } while (0)
#define OK(what) CHECK((what) == GPURPC_STATUS_SUCCESS)

namespace {

constexpr std::uint32_t LANES = 32, ALL = ~UINT32_C(0);

// Lanes that wait for each other, by their mask.
struct Group {
    int arrived = 0;
    std::uint32_t bits = 0, result = 0;
    std::uint64_t round = 0;
};
std::mutex lock;
std::condition_variable changed;
std::map<std::uint32_t, Group> groups;

thread_local std::uint32_t own_lane, own_active = ALL;

std::uint32_t __activemask() { return own_active; }

std::uint32_t __ballot_sync(std::uint32_t mask, int what) {
    CHECK((mask >> own_lane & 1) != 0);
    const std::uint32_t bit = what != 0 ? UINT32_C(1) << own_lane : 0;
    std::unique_lock<std::mutex> guard(lock);
    Group &group = groups[mask];
    const std::uint64_t round = group.round;
    group.bits |= bit;
    if (++group.arrived == __builtin_popcount(mask)) {
        group.result = group.bits;
        group.bits = 0;
        group.arrived = 0;
        group.round++;
        changed.notify_all();
    }
    changed.wait(guard, [&] { return group.round != round; });
    return group.result;
}

// By the bits of the values.
std::uint32_t __match_any_sync(std::uint32_t mask, std::uint32_t value) {
    std::uint32_t equal = mask;
    for (int bit = 0; bit < 32; bit++) {
        const std::uint32_t set = __ballot_sync(mask, static_cast<int>(value >> bit & 1));
        equal &= (value >> bit & 1) != 0 ? set : ~set;
    }
    return equal;
}

void __syncwarp(std::uint32_t mask) { __ballot_sync(mask, 0); }
void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
void __threadfence_system() { __threadfence(); }
void __nanosleep(unsigned) { std::this_thread::yield(); }
std::uint32_t atomicOr(std::uint32_t *word, std::uint32_t bits) { return __atomic_fetch_or(word, bits, __ATOMIC_RELAXED); }
std::uint32_t atomicAnd(std::uint32_t *word, std::uint32_t bits) { return __atomic_fetch_and(word, bits, __ATOMIC_RELAXED); }
[[maybe_unused]] unsigned long long atomicAdd_system(unsigned long long *word, unsigned long long by) {
    return __atomic_fetch_add(word, by, __ATOMIC_RELAXED);
}

} // namespace

#define __device__
#define __host__
#define __NVCC__
#define __CUDACC__
#define __CUDACC_VER_MAJOR__ 13
#define __CUDA_ARCH__ 700
// The only assembly reads the number of the lane.
#define __asm__(...) lane = own_lane
#include <gpurpc.hpp>
#undef __asm__

namespace {

enum : std::uint32_t { ADD = GPURPC_OPCODE('t', 1), MASK, ERROR, TEXT };

using Add = std::int64_t(std::int64_t, std::uint8_t);

gpurpc_client_t client;
gpurpc_server_t *server;

// Calls that the host has received.
std::vector<std::uint64_t> masks;
std::vector<std::uint32_t> errors;
std::atomic<std::uint64_t> bytes{0};

void note_mask(const gpurpc_buffer_t *, gpurpc_buffer_t *output, std::uint64_t mask, std::uint32_t lanes, void *) {
    CHECK(lanes == LANES);
    masks.push_back(mask);
    for (std::uint32_t lane = 0; lane < lanes; lane++)
        if ((mask >> lane & 1) != 0)
            output[lane].data[0] = mask;
}

void receive_text(gpurpc_blocking_t *call, void *) {
    void *messages[64];
    std::uint64_t sizes[64];
    OK(gpurpc_blocking_recv_n(call, messages, sizes));
    for (std::uint32_t lane = 0; lane < LANES; lane++) {
        CHECK(messages[lane] != nullptr && sizes[lane] == 5 * lane);
        for (std::uint64_t i = 0; i < sizes[lane]; i++)
            CHECK(static_cast<const char *>(messages[lane])[i] == static_cast<char>('a' + lane));
        bytes += sizes[lane];
    }
}

// Runs all lanes to their end.
void warp(const std::function<void(std::uint32_t)> &lane_code) {
    std::vector<std::thread> lanes;
    for (std::uint32_t lane = 0; lane < LANES; lane++)
        lanes.emplace_back([&lane_code, lane] {
            own_lane = lane;
            lane_code(lane);
        });
    for (auto &lane : lanes)
        lane.join();
}

std::uint64_t participants(gpurpc_call_t call) {
    gpurpc_call_fill(&call);
    gpurpc_call_send(&call);
    const std::uint64_t mask = gpurpc_call_recv(&call)->data[0];
    gpurpc_call_close(&call);
    return mask;
}

} // namespace

int main() {
    OK(gpurpc_server_create(nullptr, &server));
    auto add = [](std::int64_t left, std::uint8_t right) { return left + right; };
    auto note_error = [](std::uint32_t error) { errors.push_back(error); };
    OK(gpurpc::register_typed<Add>(server, ADD, add));
    OK(gpurpc_register_warp(server, MASK, 1, note_mask, nullptr));
    OK(gpurpc::register_typed<void(std::uint32_t)>(server, ERROR, note_error));
    OK(gpurpc_register_blocking(server, TEXT, receive_text, nullptr));
    gpurpc_device_options_t options{};
    options.struct_size = sizeof options;
    // Fewer than lanes that call alone.
    options.ports = 3;
    options.lanes = LANES;
    options.generation = GPURPC_CLIENT_LLVM;
    gpurpc_device_t device{};
    void *buffer = nullptr;
    OK(gpurpc_device_add(server, &options, &device));
    OK(gpurpc_device_buffer(server, device, &buffer, nullptr));
    OK(gpurpc_client_init(&options, &client, sizeof client, reinterpret_cast<std::uintptr_t>(buffer)));
    std::thread serving([] { OK(gpurpc_serve(server)); });

    // All lanes together, each with its own arguments and result.
    warp([](std::uint32_t lane) {
        for (std::uint32_t i = 0; i < 10; i++)
            CHECK(gpurpc::call<Add>(&client, ADD, -std::int64_t(lane) * 1000, std::uint8_t(i)) == i - std::int64_t(lane) * 1000);
        CHECK(participants(gpurpc_client_open(&client, MASK)) == ALL);
    });
    // Branches of a warp make separate calls.
    warp([](std::uint32_t lane) {
        const std::uint32_t first = 0x3ff;
        own_active = lane < 10 ? first : ~first;
        for (int i = 0; i < 5; i++)
            CHECK(participants(gpurpc_client_open(&client, MASK)) == own_active);
    });
    // Lanes of different branches that meet in a function: a call for each opcode.
    warp([](std::uint32_t lane) {
        const std::uint32_t odd = 0xaaaaaaaa;
        for (std::uint8_t i = 0; i < 5; i++) {
            own_active = ALL;
            gpurpc_call_t call = gpurpc_client_open(&client, lane % 2 != 0 ? MASK : ADD);
            CHECK(call.mask == (lane % 2 != 0 ? odd : ~odd));
            if (lane % 2 != 0) {
                CHECK(participants(call) == odd);
            } else {
                gpurpc_buffer_t *packet = gpurpc_call_fill(&call);
                packet->data[0] = lane;
                packet->data[1] = i;
                gpurpc_call_send(&call);
                CHECK(gpurpc_call_recv(&call)->data[0] == lane + i);
                gpurpc_call_close(&call);
            }
        }
    });
    // Every lane alone, in an order of its own, while others hold the ports.
    warp([](std::uint32_t lane) {
        for (std::uint8_t i = 0; i < 5; i++) {
            CHECK(participants(gpurpc_client_open_lane(&client, MASK)) == UINT64_C(1) << lane);
            CHECK(gpurpc::call_lane<Add>(&client, ADD, lane, i) == lane + i);
        }
    });
    // Lanes of a branch report one after the other, and wait for no answer; then one for all of them.
    warp([](std::uint32_t lane) {
        own_active = 0x80402011;
        if ((own_active >> lane & 1) == 0)
            return;
        for (std::uint64_t lanes = gpurpc_lane_mask(); lanes != 0; lanes &= lanes - 1)
            if (gpurpc_lane_is_first(lanes))
                gpurpc::post_lane<void(std::uint32_t)>(&client, ERROR, lane);
        own_active &= ~UINT32_C(1);
        if (lane != 0 && gpurpc_lane_is_first(gpurpc_lane_mask()))
            gpurpc::post_lane<void(std::uint32_t)>(&client, ERROR, 200 + lane);
    });
    // Posted by all, and messages of different sizes.
    warp([](std::uint32_t lane) {
        gpurpc::post<void(std::uint32_t)>(&client, ERROR, 100 + lane);
        const std::string text(5 * lane, static_cast<char>('a' + lane));
        gpurpc_call_t call = gpurpc_client_open(&client, TEXT);
        gpurpc_call_send_n(&call, text.data(), text.size());
        gpurpc_call_close(&call);
    });
    OK(gpurpc_drain(server));
    serving.join();

    CHECK(masks.size() == 1 + 2 * 5 + 5 + 32 * 5);
    std::vector<std::uint32_t> expected = {0, 4, 13, 22, 31, 204};
    for (std::uint32_t lane = 0; lane < LANES; lane++)
        expected.push_back(100 + lane);
    CHECK(errors.size() == expected.size());
    // Ports are served in any order.
    for (const std::uint32_t error : expected)
        CHECK(std::count(errors.begin(), errors.end(), error) == 1);
    CHECK(bytes == 5 * 31 * 32 / 2);
    OK(gpurpc_server_destroy(server));
    std::puts("all lanes were served");
    return 0;
}
