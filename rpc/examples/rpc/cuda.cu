// As host.cpp, with a GPU: nvcc compiles device.c with it.
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

static void cuda(cudaError_t error) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "error: %s\n", cudaGetErrorString(error));
        std::exit(1);
    }
}

static void ok(gpurpc_status_t status) {
    if (status != GPURPC_STATUS_SUCCESS) {
        std::fprintf(stderr, "error: %s\n", gpurpc_strerror(status));
        std::exit(1);
    }
}

// Memory with the same address for host and device.
static void *allocate(uint64_t size, void *) {
    void *memory = nullptr;
    return cudaMallocHost(&memory, size) == cudaSuccess ? memory : nullptr;
}

static void release(void *memory, void *) { cudaFreeHost(memory); }

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
    // Lazily loaded code could wait for the kernel, which waits for the host.
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    int count = 0;
    cuda(cudaGetDeviceCount(&count));

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
    options.lanes = 32;
    options.alloc = allocate;
    options.free = release;
    gpurpc_device_t device = {};
    void *buffer = nullptr;
    ok(gpurpc_device_add(server, &options, &device));
    ok(gpurpc_device_buffer(server, device, &buffer, nullptr));
    static gpurpc_client_t filled;
    ok(gpurpc_client_init(&options, &filled, sizeof filled, reinterpret_cast<uintptr_t>(buffer)));
    cuda(cudaMemcpyToSymbol(client, &filled, sizeof filled));

    cudaStream_t stream;
    cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    program<<<64, 128, 0, stream>>>();
    cuda(cudaGetLastError());
    // Serves the kernel to its end. This thread must not wait for the device in any other way.
    cudaError_t state;
    while ((state = cudaStreamQuery(stream)) == cudaErrorNotReady)
        ok(gpurpc_poll(server, nullptr));
    cuda(state);
    ok(gpurpc_poll(server, nullptr));

    std::printf("the sum up to 1000 is %llu\n", static_cast<unsigned long long>(work.sum));
    cuda(cudaStreamDestroy(stream));
    ok(gpurpc_server_destroy(server));
    return 0;
}
