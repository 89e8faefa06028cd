/* Blocking callbacks with deep and shallow stacks, which wait while others are served, and are abandoned: for valgrind and
 * AddressSanitizer. */
#include <sched.h>

#define GPURPC_PAUSE() sched_yield()
#include <gpurpc.h>
#include <gpurpc_client.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                     \
    do {                                                                \
        if (!(what)) {                                                  \
            fprintf(stderr, "line %d: failed: %s\n", __LINE__, #what);  \
            exit(1);                                                    \
        }                                                               \
    } while (0)
#define OK(what) CHECK((what) == GPURPC_STATUS_SUCCESS)

enum { SUM = GPURPC_OPCODE('t', 1), ECHO = GPURPC_OPCODE('t', 2) };
enum { CLIENTS = 3, CALLS = 40, PORTS = 24, LEFT = 8 };

static gpurpc_server_t *server;
static gpurpc_client_t client;
static int began, abandoned;

static void add(gpurpc_buffer_t *buffer, uint32_t lane, void *data) {
    (void)lane;
    *(uint64_t *)data += buffer->data[0];
}

static void put(gpurpc_buffer_t *buffer, uint32_t lane, void *data) {
    (void)lane;
    buffer->data[0] = *(uint64_t *)data;
}

/* Waits `depth` frames below its caller, and leaves them by a jump: sanitizers must know the bounds of the stack. */
static gpurpc_status_t receive_below(gpurpc_blocking_t *call, uint64_t *sum, int depth, jmp_buf back) {
    volatile char frame[600];
    memset((char *)frame, depth, sizeof frame);
    errno = depth;
    gpurpc_status_t status = depth ? receive_below(call, sum, depth - 1, back) : gpurpc_blocking_recv(call, add, sum);
    for (size_t at = 0; at < sizeof frame; at++)
        CHECK(frame[at] == depth);
    if (depth == 20 && !status)
        longjmp(back, 1);
    return status;
}

static void sum(gpurpc_blocking_t *call, void *data) {
    uint64_t *total = malloc(sizeof *total);
    (void)data;
    *total = 0;
    for (volatile int packet = 0; packet < 4; packet++) {
        jmp_buf back;
        if (!setjmp(back) && receive_below(call, total, packet % 2 ? 20 : 30, back)) {
            free(total);
            return;
        }
    }
    OK(gpurpc_blocking_send(call, put, total));
    free(total);
}

/* Receives a second packet that never comes. */
static void echo(gpurpc_blocking_t *call, void *data) {
    void *texts[64];
    uint64_t sizes[64];
    char *kept = malloc(100);
    (void)data;
    OK(gpurpc_blocking_recv_n(call, texts, sizes));
    memcpy(kept, texts[0], sizes[0] < 100 ? sizes[0] : 100);
    began++;
    if (gpurpc_blocking_recv(call, NULL, NULL) == GPURPC_STATUS_ABANDONED)
        abandoned++;
    free(kept);
}

static void *ask(void *data) {
    uint64_t id = (uint64_t)(uintptr_t)data;
    for (uint64_t n = 0; n < CALLS; n++) {
        gpurpc_call_t call = gpurpc_client_open(&client, SUM);
        for (uint64_t packet = 0; packet < 4; packet++) {
            gpurpc_call_fill(&call)->data[0] = id * n + packet;
            gpurpc_call_send(&call);
        }
        CHECK(gpurpc_call_recv(&call)->data[0] == 4 * id * n + 6);
        gpurpc_call_close(&call);
    }
    return NULL;
}

static void *leave(void *data) {
    gpurpc_call_t call = gpurpc_client_open(&client, ECHO);
    (void)data;
    gpurpc_call_send_n(&call, "text", 4);
    return NULL;
}

static void *serve(void *data) {
    (void)data;
    OK(gpurpc_serve(server));
    return NULL;
}

int main(void) {
    gpurpc_device_options_t options = {.struct_size = sizeof options, .ports = PORTS, .lanes = 1};
    gpurpc_device_t device;
    pthread_t threads[CLIENTS], servers[2], left;
    uint64_t id;
    void *buffer;

    OK(gpurpc_server_create(NULL, &server));
    OK(gpurpc_register_blocking(server, SUM, sum, NULL));
    OK(gpurpc_register_blocking(server, ECHO, echo, NULL));
    OK(gpurpc_device_add(server, &options, &device));
    OK(gpurpc_device_buffer(server, device, &buffer, NULL));
    OK(gpurpc_client_init(&options, &client, sizeof client, (uint64_t)(uintptr_t)buffer));

    /* Two threads serve; one ends while calls wait that it has started, as do those of the main thread. */
    for (id = 0; id < 2; id++)
        CHECK(pthread_create(&servers[id], NULL, serve, NULL) == 0);
    for (id = 0; id < CLIENTS; id++)
        CHECK(pthread_create(&threads[id], NULL, ask, (void *)(uintptr_t)(id + 1)) == 0);
    for (id = 0; id < CLIENTS; id++)
        CHECK(pthread_join(threads[id], NULL) == 0);
    OK(gpurpc_drain(server));
    for (id = 0; id < 2; id++)
        CHECK(pthread_join(servers[id], NULL) == 0);
    for (id = 0; id < LEFT; id++) {
        CHECK(pthread_create(&left, NULL, leave, NULL) == 0);
        CHECK(pthread_join(left, NULL) == 0);
    }
    while (began < LEFT)
        OK(gpurpc_poll(server, NULL));
    OK(gpurpc_device_remove(server, device));
    CHECK(abandoned == LEFT);
    OK(gpurpc_server_destroy(server));
    printf("%d calls, %d abandoned\n", CLIENTS * CALLS, abandoned);
    return 0;
}
