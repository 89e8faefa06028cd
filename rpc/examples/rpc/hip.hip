// As cuda.cu, with a GPU of AMD: hipcc compiles device.c with it.
#include <hip/hip_runtime.h>

#include <gpurpc.h>

#include "device.c"

#include <cstdio>
#include <cstdlib>

static __device__ gpurpc_client_t client;

static __global__ void program() {
    if (blockIdx.x == 0 && threadIdx.x == 0)
        print_file(&client, "poem.txt");
    warp(&client);
}

static void hip(hipError_t error) {
    if (error != hipSuccess) {
        std::fprintf(stderr, "error: %s\n", hipGetErrorString(error));
        std::exit(1);
    }
}

static void ok(gpurpc_status_t status) {
    if (status != GPURPC_STATUS_SUCCESS) {
        std::fprintf(stderr, "error: %s\n", gpurpc_strerror(status));
        std::exit(1);
    }
}

// Coherent: each side sees what the other writes while the kernel runs.
static void *allocate(uint64_t size, void *) {
    void *memory = nullptr;
    return hipHostMalloc(&memory, size, hipHostMallocCoherent | hipHostMallocMapped) == hipSuccess ? memory : nullptr;
}

static void release(void *memory, void *) { (void)hipHostFree(memory); }

struct Work {
    uint64_t next = 1, sum = 0;
};

static void give(const gpurpc_buffer_t *, gpurpc_buffer_t *output, uint64_t mask, uint32_t lanes, void *data) {
    uint64_t &next = static_cast<Work *>(data)->next;
    for (uint32_t lane = 0; lane < lanes; lane++)
        if (mask >> lane & 1)
            output[lane].data[0] = next <= 1000 ? next++ : 0;
}

static void collect(const gpurpc_buffer_t *input, gpurpc_buffer_t *, uint64_t mask, uint32_t lanes, void *data) {
    for (uint32_t lane = 0; lane < lanes; lane++)
        if (mask >> lane & 1)
            static_cast<Work *>(data)->sum += input[lane].data[0];
}

int main() {
    int count = 0;
    hip(hipGetDeviceCount(&count));

    Work work;
    gpurpc_server_t *server = nullptr;
    ok(gpurpc_server_create(nullptr, &server));
    gpurpc_libc_options_t libc = {};
    libc.struct_size = sizeof libc;
    libc.root = "files";
    ok(gpurpc_register_libc(server, &libc));
    ok(gpurpc_register_warp(server, TAKE, 1, give, &work));
    ok(gpurpc_register_warp(server, HAND_IN, 1, collect, &work));

    gpurpc_device_options_t options = {};
    options.struct_size = sizeof options;
    options.ports = 1024;
    // The kernels have the device's number, as they are compiled without -mwavefrontsize64: 64 on some GPUs, 32 on others.
    int lanes = 0;
    hip(hipDeviceGetAttribute(&lanes, hipDeviceAttributeWarpSize, 0));
    options.lanes = static_cast<uint32_t>(lanes);
    options.alloc = allocate;
    options.free = release;
    gpurpc_device_t device = {};
    void *buffer = nullptr;
    ok(gpurpc_device_add(server, &options, &device));
    ok(gpurpc_device_buffer(server, device, &buffer, nullptr));
    void *on_device = nullptr;
    hip(hipHostGetDevicePointer(&on_device, buffer, 0));
    static gpurpc_client_t filled;
    ok(gpurpc_client_init(&options, &filled, sizeof filled, reinterpret_cast<uintptr_t>(on_device)));
    hip(hipMemcpyToSymbol(client, &filled, sizeof filled));

    hipStream_t stream;
    hip(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    program<<<64, 128, 0, stream>>>();
    hip(hipGetLastError());
    // Serves the kernel to its end. This thread must not wait for the device in any other way.
    hipError_t state;
    while ((state = hipStreamQuery(stream)) == hipErrorNotReady)
        ok(gpurpc_poll(server, nullptr));
    hip(state);
    ok(gpurpc_poll(server, nullptr));

    std::printf("the sum up to 1000 is %llu\n", static_cast<unsigned long long>(work.sum));
    hip(hipStreamDestroy(stream));
    ok(gpurpc_server_destroy(server));
    return 0;
}
