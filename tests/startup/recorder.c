/* A CUDA runtime, or with -DHIP HIP's, that records its calls, for objects of compilers of any
 * version. MAJOR and VERSION select the version that it imitates; CUDA's of 11.8 has no
 * __cudaGetKernel and __cudaLaunchKernel. Pointers are written as image+offset, handles as numbers
 * in the order of their creation. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HIP
#define START(name) __hip##name
#define CALL(name) hip##name
#else
#define START(name) __cuda##name
#define CALL(name) cuda##name
#endif

enum { ROOM = 256, INVALID_SYMBOL = 13, NO_DEVICE_FUNCTION = 98 };

static char handles[ROOM];
static int opened;
static struct function {
    const void *host;
    int handle;
} functions[ROOM];
static const void *variables[ROOM];
/* Atomic: a call may come from another thread than the registrations. */
static int known, known_variables;

typedef struct {
    unsigned x, y, z;
} dim3;
static __thread struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} pushed;

#define SAY(...) dprintf(2, "record " __VA_ARGS__)

static const char *place(const void *pointer)
{
    static __thread char texts[4][4200];
    static __thread unsigned next;
    char *text = texts[next++ % 4];
    Dl_info info;
    if (!pointer)
        return "null";
    if (!dladdr(pointer, &info))
        return "nowhere";
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(text, sizeof texts[0], "%s+0x%lx", slash ? slash + 1 : info.dli_fname,
             (unsigned long)((const char *)pointer - (const char *)info.dli_fbase));
    return text;
}

static int number(void **handle)
{
    const char *at = (const char *)handle;
    return at >= handles && at < handles + opened ? (int)(at - handles) + 1 : -1;
}

/* Pauses once, in the first kernel's registration. PAUSE_FDS has two descriptors: the function
 * writes to the first and waits for a byte from the second. */
static void pause_replay(void)
{
    static int passed;
    const char *descriptors = getenv("PAUSE_FDS");
    int entered, leave;
    char byte = '.';
    if (!descriptors || passed++ || sscanf(descriptors, "%d,%d", &entered, &leave) != 2)
        return;
    if (write(entered, &byte, 1) != 1 || read(leave, &byte, 1) != 1)
        SAY("PAUSE_FDS is broken\n");
}

/* Hash of a fatbinary.h wrapper's data. The wrapper has magic, version and data; the data's own
 * header has its sizes. HIP's data has another format. */
static uint32_t sum(const void *wrapper)
{
#ifdef HIP
    uint32_t magic;
    memcpy(&magic, wrapper, sizeof magic);
    return magic;
#else
    const unsigned char *data;
    uint16_t header;
    uint64_t size;
    uint32_t hash = 2166136261u;
    memcpy(&data, (const char *)wrapper + 8, sizeof data);
    memcpy(&header, data + 6, sizeof header);
    memcpy(&size, data + 8, sizeof size);
    for (uint64_t i = 0; i < header + size; i++)
        hash = (hash ^ data[i]) * 16777619u;
    return hash;
#endif
}

/* Writes the objects of a device link to the directory OBJECTS: files `1.fatbin`, …. Version 2 of a
 * wrapper has a list of them, from which drivers repeat the link for later GPUs. */
static void write_objects(const void *wrapper)
{
#ifndef HIP
    const char *directory = getenv("OBJECTS");
    const struct {
        int magic, version;
        const void *data;
        const unsigned char *const *objects;
    } *link = wrapper;
    if (!directory || link->version != 2)
        return;
    for (int i = 0; link->objects[i]; i++) {
        char path[4200];
        uint16_t header;
        uint64_t size;
        memcpy(&header, link->objects[i] + 6, sizeof header);
        memcpy(&size, link->objects[i] + 8, sizeof size);
        snprintf(path, sizeof path, "%s/%d.fatbin", directory, i + 1);
        FILE *file = fopen(path, "wb");
        if (!file || fwrite(link->objects[i], 1, header + size, file) != header + size || fclose(file))
            SAY("%s is not written\n", path);
    }
#else
    (void)wrapper;
#endif
}

void **START(RegisterFatBinary)(void *wrapper)
{
    void **handle = (void **)(handles + opened++);
    write_objects(wrapper);
    SAY("open %d %s %08x\n", opened, place(wrapper), sum(wrapper));
    return handle;
}

void START(RegisterFatBinaryEnd)(void **handle) { SAY("end %d\n", number(handle)); }

void START(UnregisterFatBinary)(void **handle) { SAY("close %d\n", number(handle)); }

void START(RegisterFunction)(void **handle, const char *host, char *device, const char *name,
                            int threads, void *a, void *b, void *c, void *d, int *e)
{
    pause_replay();
    SAY("function %d %s %s %s %d %s %s %s %s %s\n", number(handle), place(host), device, name, threads,
        place(a), place(b), place(c), place(d), place(e));
    functions[known] = (struct function){host, number(handle)};
    __atomic_add_fetch(&known, 1, __ATOMIC_RELEASE);
}

void START(RegisterVar)(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global)
{
    SAY("variable %d %s %s %s %d %zu %d %d\n", number(handle), place(host), device, name, external,
        size, constant, global);
    variables[known_variables] = host;
    __atomic_add_fetch(&known_variables, 1, __ATOMIC_RELEASE);
}

#ifdef HIP
void __hipRegisterManagedVar(void **handle, void **host, void *initial, const char *name, size_t size,
                             unsigned align)
{
    SAY("managed %d %s %s %s %zu %u\n", number(handle), place(host), place(initial), name, size, align);
    *host = initial;
}
#else
static struct {
    void **pointer;
    int handle;
    size_t size;
} managed[ROOM];
static int managed_count;

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global)
{
    SAY("managed %d %s %s %s %d %zu %d %d\n", number(handle), place(host), device, name, external,
        size, constant, global);
    managed[managed_count].pointer = host;
    managed[managed_count].size = size;
    managed[managed_count++].handle = number(handle);
}

/* Called by each source that uses managed variables, with the handle of their device link. */
char __cudaInitModule(void **handle)
{
    SAY("init %d\n", number(handle));
    for (int i = 0; i < managed_count; i++)
        if (managed[i].handle == number(handle)) {
            *managed[i].pointer = calloc(1, managed[i].size);
            managed[i].handle = 0;
        }
    return 1;
}

void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size)
{
    SAY("host %d %s %s %zu\n", number(handle), name, place(host), size);
}

/* Undeclared in headers. The real function is called with five arguments (disassembled, 12.9). */
void __cudaRegisterUnifiedTable(void **handle, void *functions_start, size_t functions_size,
                                void *data_start, size_t data_size)
{
    SAY("table %d %s %zu %s %zu\n", number(handle), place(functions_start), functions_size,
        place(data_start), data_size);
}
#endif

void START(RegisterTexture)(void **handle, const void *host, const void **device, const char *name,
                            int dimensions, int normalised, int external)
{
    SAY("texture %d %s %s %s %d %d %d\n", number(handle), place(host), place(device), name, dimensions,
        normalised, external);
}

void START(RegisterSurface)(void **handle, const void *host, const void **device, const char *name,
                            int dimensions, int external)
{
    SAY("surface %d %s %s %s %d %d\n", number(handle), place(host), place(device), name, dimensions,
        external);
}

/* ---- launches ----------------------------------------------------------------------------------- */

unsigned START(PushCallConfiguration)(dim3 grid, dim3 block, size_t shared, void *stream)
{
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return 0;
}

int START(PopCallConfiguration)(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    memcpy(stream, &pushed.stream, sizeof pushed.stream);
    return 0;
}

static int last;

static int launch(const struct function *function, dim3 grid, dim3 block, void **args, size_t shared,
                  void *stream)
{
    (void)args;
    SAY("launch %s of %d: %u,%u,%u %u,%u,%u %zu %s\n", place(function->host), function->handle, grid.x,
        grid.y, grid.z, block.x, block.y, block.z, shared, place(stream));
    return last = 0;
}

static const struct function *find(const void *host)
{
    for (int i = 0; i < __atomic_load_n(&known, __ATOMIC_ACQUIRE); i++)
        if (functions[i].host == host)
            return &functions[i];
    SAY("UNKNOWN function %s\n", place(host));
    return NULL;
}

int CALL(LaunchKernel)(const void *host, dim3 grid, dim3 block, void **args, size_t shared, void *stream)
{
    const struct function *function = find(host);
    return function ? launch(function, grid, block, args, shared, stream)
                    : (last = NO_DEVICE_FUNCTION);
}

#if MAJOR >= 12 && !defined(HIP)
int __cudaGetKernel(const void **kernel, const void *host)
{
    *kernel = find(host);
    return *kernel ? 0 : NO_DEVICE_FUNCTION;
}

int __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
                       void *stream)
{
    const struct function *function = kernel;
    if (function < functions || function >= functions + ROOM) {
        SAY("UNKNOWN kernel\n");
        return last = NO_DEVICE_FUNCTION;
    }
    return launch(function, grid, block, args, shared, stream);
}
#endif

/* ---- calls -------------------------------------------------------------------------------------- */

int CALL(GetLastError)(void)
{
    int status = last;
    last = 0;
    return status;
}

int CALL(GetDeviceCount)(int *count)
{
    *count = 1;
    return 0;
}

int CALL(RuntimeGetVersion)(int *version)
{
    *version = VERSION;
    return 0;
}

int CALL(Malloc)(void **memory, size_t size)
{
    return (*memory = malloc(size)) ? 0 : 2;
}

int CALL(Free)(void *memory)
{
    free(memory);
    return 0;
}

int CALL(Memset)(void *memory, int value, size_t size)
{
    memset(memory, value, size);
    return 0;
}

int CALL(Memcpy)(void *to, const void *from, size_t size, int kind)
{
    (void)kind;
    memcpy(to, from, size);
    return 0;
}

#ifdef HIP
/* Writes the entries of an offload bundle (clang/docs/ClangOffloadBundler.rst), which need not be aligned. */
int hipModuleLoadData(void **module, const void *image)
{
    static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    const char *entry = (const char *)image + sizeof magic - 1;
    uint64_t count, field[3];
    if (memcmp(image, magic, sizeof magic - 1))
        return 200; /* hipErrorInvalidImage */
    memcpy(&count, entry, sizeof count);
    entry += sizeof count;
    for (; count--; entry += sizeof field + field[2]) {
        memcpy(field, entry, sizeof field);
        SAY("module %.*s %lu\n", (int)field[2], entry + sizeof field, (unsigned long)field[1]);
    }
    *module = &handles;
    return 0;
}
#endif

/* Device code does not run here, so that all its variables are zero. */
int CALL(MemcpyFromSymbol)(void *to, const void *symbol, size_t size, size_t offset, int kind)
{
    (void)offset, (void)kind;
    for (int i = 0; i < __atomic_load_n(&known_variables, __ATOMIC_ACQUIRE); i++)
        if (variables[i] == symbol) {
            SAY("read %s %zu\n", place(symbol), size);
            memset(to, 0, size);
            return 0;
        }
    SAY("UNKNOWN variable %s\n", place(symbol));
    return INVALID_SYMBOL;
}

int CALL(MemcpyToSymbol)(const void *symbol, const void *from, size_t size, size_t offset, int kind)
{
    (void)from;
    for (int i = 0; i < __atomic_load_n(&known_variables, __ATOMIC_ACQUIRE); i++)
        if (variables[i] == symbol) {
            SAY("copy %s %zu %zu %d\n", place(symbol), size, offset, kind);
            return 0;
        }
    SAY("UNKNOWN variable %s\n", place(symbol));
    return INVALID_SYMBOL;
}
