// The device's end of typed calls: C++17, CUDA, HIP.
#if defined(__clang__) && (defined(__CUDA__) || defined(__HIP__))
// As in the headers of CUDA and HIP.
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#endif
#include <gpurpc.hpp>

#if defined(__CUDACC__) || defined(__CUDA__) || defined(__HIP__)
#define FUNCTION extern "C" __device__
#else
#define FUNCTION extern "C"
#endif

struct Point {
    double x;
    int y;
};
using Move = Point(float, bool, Point, unsigned char);

FUNCTION double move(gpurpc_client_t *client, float by, Point from);
FUNCTION double move(gpurpc_client_t *client, float by, Point from) {
    const auto to = gpurpc::call<Move>(client, GPURPC_OPCODE('t', 1), by, true, from, static_cast<unsigned char>(7));
    return to.x + to.y;
}

FUNCTION void report(gpurpc_client_t *client, int error);
FUNCTION void report(gpurpc_client_t *client, int error) {
    gpurpc::post<void()>(client, GPURPC_OPCODE('t', 2));
    for (uint64_t lanes = gpurpc_lane_mask(); lanes != 0; lanes &= lanes - 1)
        if (gpurpc_lane_is_first(lanes) && gpurpc::call_lane<bool(int)>(client, GPURPC_OPCODE('t', 3), error))
            gpurpc::post_lane<void(int)>(client, GPURPC_OPCODE('t', 4), error);
}
