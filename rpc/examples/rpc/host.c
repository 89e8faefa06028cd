/* Serves the device's program. Threads of this process are the device: see README.md for a GPU. */
#include <gpurpc.h>

#include "device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARPS = 8, LAST = 1000 };

static void ok(gpurpc_status_t status) {
    if (status != GPURPC_STATUS_SUCCESS) {
        fprintf(stderr, "error: %s\n", gpurpc_strerror(status));
        exit(1);
    }
}

/* The device has one lane in each warp. */
static void give(const gpurpc_buffer_t *input, gpurpc_buffer_t *output, uint64_t mask, uint32_t lanes, void *next) {
    uint64_t *number = next;
    (void)input, (void)mask, (void)lanes;
    output->data[0] = *number <= LAST ? (*number)++ : 0;
}

static void collect(const gpurpc_buffer_t *input, gpurpc_buffer_t *output, uint64_t mask, uint32_t lanes, void *sum) {
    (void)output, (void)mask, (void)lanes;
    *(uint64_t *)sum += input->data[0];
}

static void *serve(void *server) {
    ok(gpurpc_serve(server));
    return NULL;
}

static void *run_warp(void *client) {
    warp(client);
    return NULL;
}

int main(int count, char **arguments) {
    const char *file = count > 1 ? arguments[1] : "poem.txt";
    uint64_t next = 1, sum = 0;
    gpurpc_libc_options_t libc = {.struct_size = sizeof libc, .root = "files"};
    gpurpc_device_options_t options = {.struct_size = sizeof options, .ports = WARPS, .lanes = 1};
    gpurpc_server_t *server;
    gpurpc_device_t device;
    gpurpc_client_t client;
    pthread_t server_thread, warps[WARPS];
    void *buffer;

    ok(gpurpc_server_create(NULL, &server));
    ok(gpurpc_register_libc(server, &libc));
    ok(gpurpc_register_warp(server, TAKE, 1, give, &next));
    ok(gpurpc_register_warp(server, HAND_IN, 1, collect, &sum));
    ok(gpurpc_device_add(server, &options, &device));
    ok(gpurpc_device_buffer(server, device, &buffer, NULL));
    ok(gpurpc_client_init(&options, &client, sizeof client, (uint64_t)(uintptr_t)buffer));
    if (pthread_create(&server_thread, NULL, serve, server) != 0)
        return 1;

    print_file(&client, file);
    for (int i = 0; i < WARPS; i++)
        if (pthread_create(&warps[i], NULL, run_warp, &client) != 0)
            return 1;
    for (int i = 0; i < WARPS; i++)
        pthread_join(warps[i], NULL);

    ok(gpurpc_drain(server));
    pthread_join(server_thread, NULL);
    ok(gpurpc_server_destroy(server));
    printf("the sum up to %d is %llu\n", LAST, (unsigned long long)sum);
    return 0;
}
