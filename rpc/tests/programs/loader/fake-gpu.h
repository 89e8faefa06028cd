/* fake-gpu.h - a fake GPU: threads of the host run the "kernels" of a shared library, as many as a launch requests,
 * in the order of its stream. It replaces a driver on machines without a GPU, so that the loader's own work is real:
 * its stubs find and bind this library, and its server answers calls of running code. It shows nothing about a GPU:
 * neither memory models, nor the waiting of a real driver.
 *
 * Each call of the driver is a line in the file FAKE_LOG, with its stream. Asynchronous work of a driver takes some
 * queries here (cuMemAllocAsync is complete at the third one). FAKE_CUDA_IMAGE and FAKE_HIP_IMAGE are paths of shared
 * libraries that are loaded in place of every image, so that images for real GPUs run. FAKE_LANES is the warp size that the
 * driver reports, by default that of gpurpc_client.h on a host. With FAKE_CLIENT the driver writes a client of its own into
 * a loaded image. Other variables: FAKE_VERSION, FAKE_DEVICES, FAKE_POOLS, FAKE_PROCESSORS, FAKE_THREADS,
 * FAKE_STATUS_OF_INIT, FAKE_STATUS_OF_KERNELS, FAKE_END. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Status codes that CUDA and HIP share. */
enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, NOT_FOUND = 500, NOT_READY = 600 };
enum { STREAMS = 16, QUESTIONS = 2 };

struct stream {
    int number;
    unsigned asked, done;
    int questions;
};

struct kernel {
    char name[64];
    void (*run)(int, char **, char **, int *);
    int parameters;
};

struct launch {
    struct kernel *kernel;
    struct stream *stream;
    unsigned turn, threads, block_size;
    int argc;
    char **argv, **envp;
    int *result;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stream streams[STREAMS];
static int created;
static _Thread_local unsigned own_thread, own_block_size;

static int variable(const char *name, int otherwise)
{
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

__attribute__((format(printf, 1, 2))) static void record(const char *format, ...)
{
    char line[256];
    const char *path = getenv("FAKE_LOG");
    va_list values;
    va_start(values, format);
    int size = vsnprintf(line, sizeof line - 1, format, values);
    va_end(values);
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0666) : -1;
    if (file < 0 || size < 0)
        return;
    line[size] = '\n';
    if (write(file, line, (size_t)size + 1) != size + 1)
        abort();
    close(file);
}

/* With FAKE_END, records whether the loader's serving thread, which reads the memory, exists at the exit of the
 * process, when a driver removes its memory. */
__attribute__((destructor)) static void at_end(void)
{
    int serving = 0;
    DIR *tasks = getenv("FAKE_END") ? opendir("/proc/self/task") : NULL;
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file))
            serving += strcmp(name, "services\n") == 0;
        if (file)
            fclose(file);
    }
    if (tasks && closedir(tasks) == 0)
        record("end serving=%d", serving);
}

static int number(const void *stream)
{
    return stream ? ((const struct stream *)stream)->number : 0;
}

static struct stream *new_stream(void)
{
    if (created == STREAMS)
        return NULL;
    streams[created].number = created + 1;
    return &streams[created++];
}

static int ask(struct stream *stream)
{
    pthread_mutex_lock(&lock);
    int ready = stream->asked == stream->done && stream->questions == 0;
    if (stream->questions > 0)
        stream->questions--;
    pthread_mutex_unlock(&lock);
    return ready;
}

/* Waits until all requests of a stream are complete. */
__attribute__((unused)) static void wait_for(struct stream *stream)
{
    pthread_mutex_lock(&lock);
    while (stream->asked != stream->done)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void *allocate(size_t size, struct stream *stream)
{
    pthread_mutex_lock(&lock);
    stream->questions = QUESTIONS;
    pthread_mutex_unlock(&lock);
    return malloc(size);
}

/* Images. */

static unsigned thread_number(void)
{
    return own_thread;
}

static unsigned block_size(void)
{
    return own_block_size;
}

/* Size of an ELF file, whose section headers are its end. */
static size_t size_of(const void *image)
{
    const Elf64_Ehdr *header = image;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return 0;
    return header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
}

static int global(void *module, const char *name, void **address, size_t *size)
{
    const Elf64_Sym *symbol = NULL;
    Dl_info info;
    *address = dlsym(module, name);
    if (!*address || !dladdr1(*address, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return NOT_FOUND;
    *size = symbol->st_size;
    return OK;
}

static void *load(const void *image)
{
    char path[64];
    const char *replacement = getenv(FAKE_IMAGE);
    if (!replacement) {
        size_t size = size_of(image);
        int file = memfd_create("image", 0);
        if (size == 0 || file < 0 || write(file, image, size) != (ssize_t)size)
            return NULL;
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    void *module = dlopen(replacement ? replacement : path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        fprintf(stderr, "fake: %s\n", dlerror());
        return NULL;
    }
    void *client;
    size_t client_size;
    if (getenv("FAKE_CLIENT") && global(module, "__llvm_rpc_client", &client, &client_size) == OK) {
        memset(client, 0x5a, client_size);
        record("client of the driver");
    }
    unsigned (**thread)(void) = (unsigned (**)(void))dlsym(module, "fake_thread");
    if (thread)
        *thread = thread_number;
    unsigned (**size)(void) = (unsigned (**)(void))dlsym(module, "fake_block_size");
    if (size)
        *size = block_size;
    return module;
}

static int kernel(void *module, const char *name, void **out)
{
    void *function = dlsym(module, name);
    struct kernel *found = function ? calloc(1, sizeof *found) : NULL;
    if (!found)
        return NOT_FOUND;
    snprintf(found->name, sizeof found->name, "%s", name);
    *(void **)&found->run = function;
    found->parameters = strcmp(name, "_begin") == 0 ? 3 : strcmp(name, "_start") == 0 || !strchr(name, '_') ? 4 : 0;
    if (strcmp(name, "_end") == 0)
        found->parameters = dlsym(module, "end_takes_nothing") ? 0 : 1;
    *out = found;
    return OK;
}

/* Launches. */

struct thread {
    const struct launch *launch;
    unsigned number;
};

static void *run_thread(void *argument)
{
    struct thread *thread = argument;
    const struct launch *launch = thread->launch;
    own_thread = thread->number;
    own_block_size = launch->block_size;
    launch->kernel->run(launch->argc, launch->argv, launch->envp, launch->result);
    return NULL;
}

static void *run_launch(void *argument)
{
    struct launch *launch = argument;
    pthread_t *threads = calloc(launch->threads, sizeof *threads);
    struct thread *each = calloc(launch->threads, sizeof *each);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);

    pthread_mutex_lock(&lock);
    while (launch->stream->done != launch->turn)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < launch->threads; i++) {
        each[i] = (struct thread){launch, i};
        if (pthread_create(&threads[i], &small, run_thread, &each[i]) != 0)
            abort();
    }
    for (unsigned i = 0; i < launch->threads; i++)
        pthread_join(threads[i], NULL);
    record("done %s", launch->kernel->name);
    pthread_mutex_lock(&lock);
    launch->stream->done++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    free(threads);
    free(each);
    free(launch);
    return NULL;
}

static int start(struct kernel *kernel, unsigned blocks, unsigned block_size, struct stream *stream, void **values)
{
    struct launch *launch = calloc(1, sizeof *launch);
    pthread_t runner;
    *launch = (struct launch){.kernel = kernel, .stream = stream, .threads = blocks * block_size, .block_size = block_size};
    launch->argc = *(int *)values[0];
    if (kernel->parameters > 1)
        launch->argv = *(char ***)values[1];
    if (kernel->parameters > 2)
        launch->envp = *(char ***)values[2];
    if (kernel->parameters > 3)
        launch->result = *(int **)values[3];
    pthread_mutex_lock(&lock);
    launch->turn = stream->asked++;
    pthread_mutex_unlock(&lock);
    if (pthread_create(&runner, NULL, run_launch, launch) != 0)
        abort();
    pthread_detach(runner);
    return OK;
}
