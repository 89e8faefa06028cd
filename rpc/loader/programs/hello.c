/* hello.c - a GPU program without a libc, which calls the host through gpurpc_client.h. C11 or C++17, compiled by
 * clang for a GPU or by nvcc (-x cu). */
#include <gpurpc_client.h>

#if defined(__CUDACC__)
#define DEVICE __device__
#define KERNEL __global__
#elif defined(__NVPTX__)
#define DEVICE
#define KERNEL __attribute__((nvptx_kernel))
#elif defined(__AMDGCN__)
/* Names are invisible outside of the image by default. */
#define DEVICE __attribute__((visibility("protected")))
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected")))
#else
#define DEVICE
#define KERNEL
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The loader finds it, and fills it in. */
DEVICE gpurpc_client_t __llvm_rpc_client;

/* Writes a text of each thread to the standard output. Gives how many of its bytes were written. */
GPURPC_DETAIL_FN uint64_t print(const char *text, uint64_t size) {
    gpurpc_call_t call = gpurpc_client_open(&__llvm_rpc_client, GPURPC_OPCODE_WRITE_TO_STDOUT);
    gpurpc_call_send_n(&call, text, size);
    size = gpurpc_call_recv(&call)->data[0];
    gpurpc_call_close(&call);
    return size;
}

KERNEL void _start(int argc, char **argv, char **envp, int *result);
KERNEL void _start(int argc, char **argv, char **envp, int *result) {
    char text[] = "hello from lane 00\n";
    uint32_t lane = gpurpc_lane_id();
    (void)argc, (void)argv, (void)envp;
    text[16] = (char)('0' + lane / 10);
    text[17] = (char)('0' + lane % 10);
    /* The loader's exit code, unless all went well. */
    if (print(text, sizeof text - 1) != sizeof text - 1)
        *result = 1;
}

#ifdef __cplusplus
}
#endif
