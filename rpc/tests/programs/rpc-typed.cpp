// Typed calls of gpurpc.hpp: threads of the host are the device. Prints what each end has received.
#include <sched.h>

#define GPURPC_PAUSE() sched_yield()
#include <gpurpc.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#define CHECK(what)                                                          \
    do {                                                                     \
        if (!(what)) {                                                       \
            std::fprintf(stderr, "line %d: failed: %s\n", __LINE__, #what);  \
            std::exit(1);                                                    \
        }                                                                    \
    } while (0)
#define OK(what) CHECK((what) == GPURPC_STATUS_SUCCESS)

namespace {

enum class Color : std::uint8_t { red = 1, green = 2 };
struct Point {
    // Not default constructible.
    Point(double of_x, std::int32_t of_y) : x(of_x), y(of_y) {}
    double x;
    std::int32_t y;
};
struct Packet {
    std::uint64_t words[8];
};
struct alignas(16) Wide {
    float of[4];
};

using Scale = int(float, int);
using Mixed = double(char, double, bool, std::int16_t, Color, Point);
using Move = Point(Point, std::int8_t);
using Full = Packet(const Packet);
using Count = std::uint64_t();
using Report = void(std::uint32_t) noexcept;
using Sum = float(Wide, Wide);
using Not = bool(bool);

enum : std::uint32_t {
    SCALE = GPURPC_OPCODE('t', 1), MIXED, MOVE, FULL, COUNT, REPORT, SUM, NOT,
};

int scale(float by, int what) { return static_cast<int>(by * static_cast<float>(what)); }

struct Counter {
    std::uint64_t operator()() { return ++count; }
    std::uint64_t count = 0;
};

void device(gpurpc_client_t *client, std::uint32_t own) {
    CHECK(gpurpc::call<Scale>(client, SCALE, 1.5F, 4) == 6);
    // Arguments convert as those of a function.
    CHECK(gpurpc::call<Scale>(client, SCALE, 2.0F, std::int16_t(21)) == 42);
    CHECK(gpurpc::call<Mixed>(client, MIXED, 'a', 0.25, true, std::int16_t(-3), Color::green, Point(8.0, 16)) == 0.5);
    const Point moved = gpurpc::call<Move>(client, MOVE, Point(1.5, 7), std::int8_t(-2));
    CHECK(moved.x == -0.5 && moved.y == 5);
    Packet packet;
    for (unsigned i = 0; i < 8; i++)
        packet.words[i] = own * 100 + i;
    const Packet back = gpurpc::call_lane<Full>(client, FULL, packet);
    for (unsigned i = 0; i < 8; i++)
        CHECK(back.words[i] == packet.words[7 - i]);
    CHECK(gpurpc::call<Count>(client, COUNT) != 0);
    gpurpc::call<Report>(client, REPORT, own);
    // The result is ignored, the call served all the same.
    gpurpc::post<Count>(client, COUNT);
    gpurpc::post_lane<Report>(client, REPORT, own);
    CHECK(gpurpc::call<Sum>(client, SUM, Wide{{1, 2, 3, 4}}, Wide{{10, 20, 30, 40}}) == 110);
    CHECK(!gpurpc::call<Not>(client, NOT, true) && gpurpc::call<Not>(client, NOT, false));
    // Bytes that no compiler would send.
    gpurpc_call_t call = gpurpc_client_open(client, NOT);
    gpurpc_call_fill(&call)->data[0] = 0xfe;
    gpurpc_call_send(&call);
    CHECK(gpurpc_call_recv(&call)->data[0] == 0);
    gpurpc_call_close(&call);
}

} // namespace

int main() {
    gpurpc_server_t *server = nullptr;
    OK(gpurpc_server_create(nullptr, &server));
    Counter counter;
    std::uint64_t reported = 0;
    auto mixed = [](char character, double half, bool yes, std::int16_t less, Color color, Point point) {
        CHECK(character == 'a' && yes && less == -3 && color == Color::green && point.x == 8 && point.y == 16);
        return half * 2;
    };
    const auto move = [](const Point &from, int by) { return Point(from.x + by, from.y + by); };
    auto full = [](Packet packet) {
        Packet turned{};
        for (unsigned i = 0; i < 8; i++)
            turned.words[i] = packet.words[7 - i];
        return turned;
    };
    auto report = [&reported](std::uint32_t own) { reported += own; };
    auto sum = [](Wide left, Wide right) {
        float all = 0;
        for (unsigned i = 0; i < 4; i++)
            all += left.of[i] + right.of[i];
        return all;
    };
    auto negate = [](bool value) { return !value; };
    OK(gpurpc::register_typed<Scale>(server, SCALE, scale));
    OK(gpurpc::register_typed<Mixed>(server, MIXED, mixed));
    OK(gpurpc::register_typed<Move>(server, MOVE, move));
    OK(gpurpc::register_typed<Full>(server, FULL, full));
    OK(gpurpc::register_typed<Count>(server, COUNT, counter));
    OK(gpurpc::register_typed<Report>(server, REPORT, report));
    OK(gpurpc::register_typed<Sum>(server, SUM, sum));
    OK(gpurpc::register_typed<Not>(server, NOT, negate));
    CHECK(gpurpc::register_typed<Not>(server, NOT, negate) == GPURPC_STATUS_DUPLICATE_OPCODE);

    gpurpc_device_options_t options{};
    options.struct_size = sizeof options;
    // Fewer than threads: posted calls keep their port until they are served.
    options.ports = 3;
    options.generation = GPURPC_CLIENT_LLVM;
    options.lanes = 1;
    gpurpc_device_t gpu{};
    void *buffer = nullptr;
    gpurpc_client_t client;
    OK(gpurpc_device_add(server, &options, &gpu));
    OK(gpurpc_device_buffer(server, gpu, &buffer, nullptr));
    OK(gpurpc_client_init(&options, &client, sizeof client, reinterpret_cast<std::uintptr_t>(buffer)));

    std::thread serving([&] { OK(gpurpc_serve(server)); });
    std::thread warps[4];
    for (std::uint32_t i = 0; i < 4; i++)
        warps[i] = std::thread(device, &client, i + 1);
    for (auto &warp : warps)
        warp.join();
    // Serves what was posted last, too.
    OK(gpurpc_drain(server));
    serving.join();
    std::printf("counted %llu, reported %llu\n", static_cast<unsigned long long>(counter.count),
                static_cast<unsigned long long>(reported));
    OK(gpurpc_server_destroy(server));
    return 0;
}
