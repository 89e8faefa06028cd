/* Registers one object of every kind by hand: no current compiler generates all of these calls, but
 * programs of older ones contain them. Every argument is a different number. */
#include <stddef.h>
#include <stdio.h>

static char fatbin[64] = {[6] = 16};
static struct {
    int magic, version;
    const void *data;
    void *name;
} wrapper = {0x466243b1, 1, fatbin, NULL};
static char places[16];

#ifdef HIP
#define START(name) __hip##name
int hipGetDeviceCount(int *);
#define COUNT hipGetDeviceCount
void __hipRegisterManagedVar(void **, void **, void *, const char *, size_t, unsigned);
#else
#define START(name) __cuda##name
int cudaGetDeviceCount(int *);
#define COUNT cudaGetDeviceCount
void __cudaRegisterFatBinaryEnd(void **);
void __cudaRegisterHostVar(void **, const char *, char *, size_t);
void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
void __cudaRegisterUnifiedTable(void **, void *, size_t, void *, size_t);
#endif
void **START(RegisterFatBinary)(void *);
void START(UnregisterFatBinary)(void **);
void START(RegisterFunction)(void **, const char *, char *, const char *, int, void *, void *, void *,
                             void *, int *);
void START(RegisterVar)(void **, char *, char *, const char *, int, size_t, int, int);
void START(RegisterTexture)(void **, const void *, const void **, const char *, int, int, int);
void START(RegisterSurface)(void **, const void *, const void **, const char *, int, int);

static void **handle;

static void close_module(void) { START(UnregisterFatBinary)(handle); }

__attribute__((constructor)) static void open_module(void)
{
    static const void *device;
    static void *managed;
    static int size;
    int atexit(void (*)(void));
    handle = START(RegisterFatBinary)(&wrapper);
    START(RegisterFunction)
    (handle, places, "device a", "name a", 2, places + 1, places + 2, places + 3, places + 4, &size);
    START(RegisterVar)(handle, places + 5, "device b", "name b", 1, (size_t)1 << 33, 3, 4);
    START(RegisterTexture)(handle, places + 6, &device, "name c", 5, 6, 7);
    START(RegisterSurface)(handle, places + 7, &device, "name d", 8, 9);
#ifdef HIP
    __hipRegisterManagedVar(handle, &managed, places + 8, "name e", (size_t)1 << 34, 16);
#else
    __cudaRegisterManagedVar(handle, &managed, "device e", "name e", 10, (size_t)1 << 34, 11, 12);
    __cudaRegisterHostVar(handle, "name f", places + 9, (size_t)1 << 35);
    __cudaRegisterUnifiedTable(handle, places + 10, (size_t)1 << 36, places + 11, (size_t)1 << 37);
    __cudaRegisterFatBinaryEnd(handle);
#endif
    atexit(close_module);
}

int main(void)
{
    int count = -7, status = COUNT(&count);
    printf("count %d %d\n", status, count);
    return 0;
}
