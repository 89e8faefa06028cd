/* A program with device code in two objects. MODE selects its actions between its start and its
 * exit, both of which are the subject of the test. */
#include "program.h"

#include <cstring>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

__device__ int first_variable = 3;
__constant__ int first_constant[4];
__managed__ int first_managed = 5;

__global__ void first_kernel(int *out, float factor)
{
    *out = first_variable + first_constant[0] + first_managed + (int)factor;
}

static Watcher watcher("first");

static int launch_first()
{
    first_kernel<<<dim3(2, 3), 4, 32>>>(nullptr, 1.5f);
    return launched("first");
}

static void calls()
{
    int count = -7, version = -7, numbers[4] = {1, 2, 3, 4};
    void *memory = &count;
    int status = cudaGetDeviceCount(&count);
    printf("count %d %d\n", status, count);
    status = cudaRuntimeGetVersion(&version);
    printf("version %d %d\n", status, version);
    status = cudaMalloc(&memory, 64);
    printf("malloc %d %s\n", status, memory ? "set" : "null");
    printf("copy %d\n", (int)cudaMemcpyToSymbol(first_constant, numbers, sizeof numbers));
    launch_first();
    launch_second();
    /* Without a device the variable's pointer is null, in every program. */
    if (count > 0) {
        first_managed = 6;
        printf("managed %d\n", first_managed);
    }
    fflush(stdout);
}

static pthread_barrier_t barrier;

/* With PAUSE_REPLAY set, the recorder stops in the middle of the replay until it is resumed. */
static int entered[2], leave[2];
static bool pausing;

static void prepare_pause()
{
    char text[32];
    pausing = getenv("PAUSE_REPLAY") && !pipe(entered) && !pipe(leave);
    if (pausing) {
        snprintf(text, sizeof text, "%d,%d", entered[1], leave[0]);
        setenv("PAUSE_FDS", text, 1);
    }
}

static void wait_for_replay()
{
    char byte;
    if (pausing && read(entered[0], &byte, 1) != 1)
        abort();
}

static void resume_replay()
{
    if (pausing && write(leave[1], ".", 1) != 1)
        abort();
}

/* Stubs call this function while they wait for the replaying thread. */
extern "C" int sched_yield(void) __THROW
{
    static int known;
    if (!__atomic_exchange_n(&known, 1, __ATOMIC_SEQ_CST))
        resume_replay();
    return 0;
}

static void *thread(void *which)
{
    long status;
    pthread_barrier_wait(&barrier);
    if (which && getenv("LATER")) {
        wait_for_replay();
        printf("copy %d\n", copy_second());
    }
    status = which ? launch_second() : launch_first();
    resume_replay(); /* for stubs that did not wait */
    return (void *)status;
}

int main()
{
    const char *mode = getenv("MODE");
    if (write(2, "main\n", 5) != 5)
        return 1;
    prepare_pause();
    if (!mode) {
        return 2;
    } else if (!strcmp(mode, "calls")) {
        calls();
    } else if (!strcmp(mode, "threads")) {
        pthread_t threads[2];
        pthread_barrier_init(&barrier, nullptr, 2);
        for (long i = 0; i < 2; i++)
            pthread_create(&threads[i], nullptr, thread, (void *)i);
        for (long i = 0; i < 2; i++)
            pthread_join(threads[i], nullptr);
    } else if (!strcmp(mode, "fork")) {
        fflush(stdout);
        pid_t child = fork();
        int status = -1;
        if (!child) {
            calls();
            exit(0);
        }
        waitpid(child, &status, 0);
        printf("child %d\n", status);
        calls();
    } else if (!strcmp(mode, "fork-during")) {
        pthread_t other;
        int status = -1, count = -7;
        pthread_barrier_init(&barrier, nullptr, 2);
        pthread_create(&other, nullptr, thread, nullptr);
        pthread_barrier_wait(&barrier);
        wait_for_replay();
        pid_t child = fork();
        if (!child) {
            alarm(20);
            if (write(2, "child\n", 6) != 6)
                return 1;
            status = cudaGetDeviceCount(&count);
            printf("child count %d %d\n", status, count);
            fflush(stdout);
            _exit(0);
        }
        waitpid(child, &status, 0);
        printf("child %d\n", status);
        resume_replay();
        pthread_join(other, nullptr);
    } else if (strcmp(mode, "nothing")) {
        return 2;
    }
    return 0;
}
