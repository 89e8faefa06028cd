/* Serves clients of the host, with the C interface. C11 and C++17. Client and server alternate in one thread: a
 * waiting client polls. Then a thread serves to its end. Prints the received data. */
#include <gpurpc.h>

static void turn(void);
#define GPURPC_PAUSE() turn()
#include <gpurpc_client.h>

#include "rpc-check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INCREMENT = GPURPC_OPCODE('t', 1), ADD = GPURPC_OPCODE('t', 2), GREET = GPURPC_OPCODE('t', 3) };

static gpurpc_server_t *server;
static int serves_itself;

static void turn(void) {
    int any = -1;
    if (serves_itself)
        return;
    OK(gpurpc_poll(server, &any));
    CHECK(any == 1);
}

/* A packet and its answer. */

static void add_one(gpurpc_buffer_t *buffer, uint32_t lane, void *data) {
    CHECK(lane == 0);
    buffer->data[0] += *(uint64_t *)data;
}

static void increment(gpurpc_blocking_t *call, void *data) {
    CHECK(gpurpc_blocking_opcode(call) == INCREMENT && gpurpc_blocking_lane_mask(call) == 1);
    OK(gpurpc_blocking_recv_and_send(call, add_one, data));
}

static void add(const gpurpc_buffer_t *input, gpurpc_buffer_t *output, uint64_t mask, uint32_t lanes, void *data) {
    CHECK(mask == 1 && lanes == 1);
    output->data[0] = input->data[0] + *(uint64_t *)data;
}

/* A name, and a greeting. */

static void greet(gpurpc_blocking_t *call, void *data) {
    void *names[64];
    const void *greetings[64];
    uint64_t sizes[64];
    char text[200];

    OK(gpurpc_blocking_recv_n(call, names, sizes));
    CHECK(sizes[0] + 7 <= sizeof text);
    memcpy(text, "hello, ", 7);
    memcpy(text + 7, names[0], sizes[0]);
    greetings[0] = text;
    sizes[0] += 7;
    OK(gpurpc_blocking_send_n(call, greetings, sizes));
    ++*(int *)data;
}

/* Memory and faults. */

struct memory {
    int allocated, freed;
};

static void *allocate(uint64_t size, void *data) {
    ((struct memory *)data)->allocated++;
    return malloc(size);
}

static void release(void *memory, void *data) {
    ((struct memory *)data)->freed++;
    free(memory);
}

static void fault(const gpurpc_fault_t *fault, void *data) {
    ++*(int *)data;
    printf("opcode %#x of device %d was dropped: %#x: %s\n", (unsigned)fault->opcode,
           (int)fault->device.handle, (unsigned)fault->status, fault->text);
}

static uint64_t ask(gpurpc_client_t *client, uint32_t opcode, uint64_t value) {
    gpurpc_call_t call = gpurpc_client_open(client, opcode);
    gpurpc_call_fill(&call)->data[0] = value;
    gpurpc_call_send(&call);
    value = gpurpc_call_recv(&call)->data[0];
    gpurpc_call_close(&call);
    return value;
}

static void meet(gpurpc_client_t *client, const char *who) {
    char text[200];
    gpurpc_call_t call = gpurpc_client_open(client, GREET);
    uint64_t size;
    gpurpc_call_send_n(&call, who, strlen(who));
    size = gpurpc_call_recv_n(&call, text, sizeof text);
    gpurpc_call_close(&call);
    printf("%d: %.*s\n", (int)size, (int)(size < sizeof text ? size : sizeof text), text);
}

static void *serve(void *data) {
    (void)data;
    OK(gpurpc_serve(server));
    return NULL;
}

int main(void) {
    gpurpc_server_options_t how;
    gpurpc_device_options_t options;
    gpurpc_device_t device;
    gpurpc_client_t client;
    gpurpc_call_t lost, next;
    struct memory memory = {0, 0};
    uint64_t one = 1, ten = 10, size = 0, expected = 0;
    int faults = 0, ends = 0;
    char who[150];
    void *buffer = NULL;
    pthread_t thread;

    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.spin_count = 10;
    OK(gpurpc_server_create(&how, &server));
    OK(gpurpc_register_blocking(server, INCREMENT, increment, &one));
    OK(gpurpc_register_warp(server, ADD, 1, add, &ten));
    OK(gpurpc_register_blocking(server, GREET, greet, &ends));
    OK(gpurpc_register_fault_callback(server, fault, &faults));
    EXPECT(gpurpc_register_blocking(server, ADD, increment, NULL), GPURPC_STATUS_DUPLICATE_OPCODE);

    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.ports = 100;
    options.lanes = 1;
    options.alloc = allocate;
    options.free = release;
    options.data = &memory;
    OK(gpurpc_device_add(server, &options, &device));
    OK(gpurpc_device_buffer(server, device, &buffer, &size));
    OK(gpurpc_buffer_size(&options, &expected));
    CHECK(size == expected && sizeof client == GPURPC_CLIENT_SIZE);
    OK(gpurpc_client_init(&options, &client, sizeof client, (uint64_t)(uintptr_t)buffer));

    printf("%d %d\n", (int)ask(&client, INCREMENT, 41), (int)ask(&client, ADD, 32));
    meet(&client, "");
    meet(&client, "you");
    memset(who, 'x', sizeof who - 1);
    who[sizeof who - 1] = 0;
    meet(&client, who);
    CHECK(ends == 3);

    /* A client that does not wait: its port is busy until the answer. */
    lost = gpurpc_client_open(&client, INCREMENT);
    gpurpc_call_fill(&lost);
    gpurpc_call_send(&lost);
    gpurpc_call_close(&lost);
    CHECK(lost.port == 0);
    next = gpurpc_client_open(&client, INCREMENT);
    CHECK(next.port == 1);
    gpurpc_call_close(&next);
    turn();
    next = gpurpc_client_open(&client, INCREMENT);
    CHECK(next.port == 0);
    gpurpc_call_close(&next);

    /* Without a callback: the port is lost, and the next calls use another one. */
    lost = gpurpc_client_open(&client, GPURPC_OPCODE_SYSTEM);
    gpurpc_call_fill(&lost);
    gpurpc_call_send(&lost);
    turn();
    CHECK(faults == 1);

    serves_itself = 1;
    CHECK(pthread_create(&thread, NULL, serve, NULL) == 0);
    printf("%d\n", (int)ask(&client, INCREMENT, 99));
    OK(gpurpc_drain(server));
    CHECK(pthread_join(thread, NULL) == 0);

    CHECK(memory.allocated == 1 && memory.freed == 0);
    OK(gpurpc_device_remove(server, device));
    CHECK(memory.freed == 1);
    EXPECT(gpurpc_device_remove(server, device), GPURPC_STATUS_NO_DEVICE);
    OK(gpurpc_server_destroy(server));
    return 0;
}
