/* Results and out-parameters of shipped libraries' functions whose positions or results Windows passes otherwise, and
 * of functions that only Windows has. */
#include <string.h>

#include "check.h"

struct complex { double x, y; };
struct channel { int x, y, z, w, kind; };

struct complex cublasZdotc(int n, const void *x, int incx, const void *y, int incy);
struct channel cudaCreateChannelDesc(int x, int y, int z, int w, int kind);
int curandCreatePoissonDistribution(double lambda, void **distribution);
int cudaWGLGetDevice(int *device, void *gpu);
int cudaD3D9GetDevice(int *device, const char *name);
int cuD3D11CtxCreate_v2(void **context, int *device, unsigned flags, void *direct3d);

static int is_zero(const void *bytes, size_t size)
{
    static const char zeros[64];
    return !memcmp(bytes, zeros, size);
}

int main(void)
{
    for (int call = 0; call < 2; call++) {
        int device = 7, other = 7, third = 7;
        void *pointer = &device, *context = &device;
        struct complex product;
        struct channel channel;
        memset(&product, 0xAA, sizeof product);
        memset(&channel, 0xAA, sizeof channel);
        product = cublasZdotc(1, &product, 1, &product, 1);
        CHECK(is_zero(&product, sizeof product));
        channel = cudaCreateChannelDesc(1, 2, 3, 4, 5);
        CHECK(is_zero(&channel, sizeof channel));
        CHECK(curandCreatePoissonDistribution(1.5, &pointer) == 203 && !pointer);
        CHECK(cudaWGLGetDevice(&device, NULL) == 35 && !device);
        CHECK(cudaD3D9GetDevice(&other, "") == 35 && !other);
        CHECK(cuD3D11CtxCreate_v2(&context, &third, 0, NULL) == 100 && !context && !third);
    }
    PASSED();
}
