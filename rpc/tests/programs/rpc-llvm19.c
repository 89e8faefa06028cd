/* A program written to the header of LLVM 19's RPC server. A thread is the device: it has one lane. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llvmlibc_rpc_opcodes.h"
#include "llvmlibc_rpc_server.h"

enum { INCREMENT = 0x8000, INTERFACE, STREAM, REPLACED, UNKNOWN };
enum { PORTS = 3 };

/* ---- the device: a client of LLVM 19, by the layout of its memory ---- */

struct client {
    uint32_t ports;
    _Atomic uint32_t *inbox, *outbox;
    struct header { uint64_t mask; uint16_t opcode; } *headers;
    rpc_buffer_t *packets;
    uint32_t locks[128];
};

static struct client client;

struct call { uint32_t port, out; int received; };

static rpc_buffer_t *wait_for_packet(struct call *call) {
    uint32_t owned = call->out;
    while (atomic_load_explicit(&client.inbox[call->port], memory_order_acquire) != owned)
        ;
    return &client.packets[call->port];
}

static void pass_on(struct call *call) {
    call->out ^= 1;
    atomic_store_explicit(&client.outbox[call->port], call->out, memory_order_release);
}

static struct call begin(uint32_t port, uint16_t opcode) {
    struct call call = {port, atomic_load(&client.outbox[port]), 0};
    wait_for_packet(&call);
    client.headers[port].mask = 1;
    client.headers[port].opcode = opcode;
    return call;
}

static void send_words(struct call *call, uint64_t first, uint64_t second, uint64_t third) {
    rpc_buffer_t *packet = wait_for_packet(call);
    packet->data[0] = first, packet->data[1] = second, packet->data[2] = third;
    pass_on(call);
    call->received = 0;
}

static uint64_t receive_word(struct call *call) {
    if (call->received)
        pass_on(call);
    call->received = 1;
    return wait_for_packet(call)->data[0];
}

static void send_bytes(struct call *call, const char *bytes, uint64_t size) {
    rpc_buffer_t *packet = wait_for_packet(call);
    packet->data[0] = size;
    uint64_t part = size < 56 ? size : 56;
    memcpy(&packet->data[1], bytes, part);
    pass_on(call);
    for (uint64_t at = part; at < size; at += part) {
        part = size - at < 64 ? size - at : 64;
        memcpy(wait_for_packet(call)->data, bytes + at, part);
        pass_on(call);
    }
    call->received = 0;
}

static uint64_t receive_bytes(struct call *call, char *bytes) {
    uint64_t size = receive_word(call), part = size < 56 ? size : 56;
    memcpy(bytes, &client.packets[call->port].data[1], part);
    for (uint64_t at = part; at < size; at += part) {
        part = size - at < 64 ? size - at : 64;
        receive_word(call);
        memcpy(bytes + at, client.packets[call->port].data, part);
    }
    return size;
}

/* Lines of the device, which it prints when it has ended. */
static char report[4096];

static void line(const char *what, uint64_t value) {
    size_t used = strlen(report);
    snprintf(report + used, sizeof report - used, "device: %s %llu\n", what, (unsigned long long)value);
}

static void *device_program(void *data) {
    (void)data;
    struct call call;
    for (uint32_t port = 0; port < PORTS; port++) {
        call = begin(port, INCREMENT);
        send_words(&call, 41 + port, 0, 0);
        line("increment", receive_word(&call));
        }
    for (uint32_t ends_with_receive = 0; ends_with_receive < 2; ends_with_receive++) {
        call = begin(1, INTERFACE);
        uint64_t count = 0;
        send_words(&call, ends_with_receive, 0, 0);
        send_words(&call, count = count + 1, 0, 0);
        count = receive_word(&call);
        send_words(&call, count + 1, 0, 0);
        count = receive_word(&call);
        send_words(&call, count + 1, 0, 0);
        send_words(&call, count + 2, 0, 0);
        count = receive_word(&call);
        count = receive_word(&call);
        if (ends_with_receive)
            send_words(&call, count + 1, 0, 0);
        else
            count = receive_word(&call);
        line("interface", count);
        }
    for (uint64_t size = 0; size < 400; size += 57) {
        char text[400], back[400];
        for (uint64_t at = 0; at < size; at++)
            text[at] = (char)(at * 7 + size);
        call = begin(2, STREAM);
        send_bytes(&call, text, size);
        uint64_t received = receive_bytes(&call, back);
        line("stream", received == size && !memcmp(text, back, size) ? size : 9999);
        }
    call = begin(0, REPLACED);
    send_words(&call, 1, 0, 0);
    line("replaced", receive_word(&call));

    uint64_t sum = 0;
    for (uint32_t round = 0; round < 400; round++) {
        call = begin(round % PORTS, RPC_MALLOC);
        send_words(&call, round + 1, 0, 0);
        uint64_t address = receive_word(&call);
            sum += *(unsigned char *)(uintptr_t)address;
        call = begin(round % PORTS, RPC_FREE);
        send_words(&call, address, 0, 0);
        }
    line("memory", sum);

    static const char text[] = "text of the device that takes more than one packet, as it has many words";
    call = begin(0, RPC_WRITE_TO_STDOUT_NEWLINE);
    send_bytes(&call, text, sizeof text - 1);
    line("written", receive_word(&call));
    call = begin(1, RPC_WRITE_TO_STDERR);
    send_bytes(&call, "error\n", 6);
    line("written", receive_word(&call));
    call = begin(2, RPC_OPEN_FILE);
    send_bytes(&call, "rpc-llvm19.txt", 15);
    send_words(&call, 'w', 0, 0);
    uint64_t file = receive_word(&call);
    line("opened", file != 0);
    call = begin(0, RPC_WRITE_TO_STREAM);
    send_words(&call, file, 0, 0);
    send_bytes(&call, "contents", 8);
    line("written", receive_word(&call));
    call = begin(0, RPC_CLOSE_FILE);
    send_words(&call, file, 0, 0);
    line("closed", receive_word(&call));
    call = begin(1, RPC_NOOP);
    send_words(&call, 0, 0, 0);

    call = begin(1, UNKNOWN);
    send_words(&call, 0, 0, 0);
    return NULL;
}

/* ---- the host ---- */

static void add_one(rpc_buffer_t *buffer, void *data) {
    (void)data;
    buffer->data[0] += 1;
}

static void increment(rpc_port_t port, void *data) {
    if (port.lane_size != 1)
        printf("a port of %u lanes\n", port.lane_size);
    rpc_recv_and_send(port, add_one, data);
}

static void get(rpc_buffer_t *buffer, void *data) { *(uint64_t *)data = buffer->data[0]; }

static void put_next(rpc_buffer_t *buffer, void *data) { buffer->data[0] = ++*(uint64_t *)data; }

static void interface(rpc_port_t port, void *data) {
    (void)data;
    uint64_t ends_with_receive, count;
    rpc_recv(port, get, &ends_with_receive);
    rpc_recv(port, get, &count);
    rpc_send(port, put_next, &count);
    rpc_recv(port, get, &count);
    rpc_send(port, put_next, &count);
    rpc_recv(port, get, &count);
    rpc_recv(port, get, &count);
    rpc_send(port, put_next, &count);
    rpc_send(port, put_next, &count);
    if (ends_with_receive)
        rpc_recv(port, get, &count);
    else
        rpc_send(port, put_next, &count);
    printf("host: interface %llu\n", (unsigned long long)count);
}

static void *allocate(uint64_t size, void *data) {
    *(int *)data += 1;
    return calloc(1, size ? size : 1);
}

static void release(void *memory, void *data) {
    *(int *)data += 1;
    free(memory);
}

static void stream(rpc_port_t port, void *data) {
    uint64_t sizes[1] = {0};
    void *messages[1] = {NULL};
    rpc_recv_n(port, messages, sizes, allocate, data);
    rpc_send_n(port, (const void *const *)messages, sizes);
    free(messages[0]);
}

static void first(rpc_port_t port, void *data) {
    printf("host: a callback that was replaced\n");
    rpc_recv_and_send(port, add_one, data);
}

static void give_memory(rpc_buffer_t *buffer, void *data) {
    *(int *)data += 1;
    unsigned char *memory = malloc(buffer->data[0]);
    memory[0] = (unsigned char)buffer->data[0];
    buffer->data[0] = (uintptr_t)memory;
}

static void device_malloc(rpc_port_t port, void *data) { rpc_recv_and_send(port, give_memory, data); }

static void take_memory(rpc_buffer_t *buffer, void *data) {
    *(int *)data += 1;
    free((void *)(uintptr_t)buffer->data[0]);
}

static void device_free(rpc_port_t port, void *data) { rpc_recv(port, take_memory, data); }

static void *no_memory(uint64_t size, void *data) {
    (void)size, (void)data;
    return NULL;
}

int main(void) {
    rpc_device_t none = {0}, device;
    int messages = 0, memory = 0, allocations = 0;
    printf("%llu bytes, %llu ports, %s\n", (unsigned long long)rpc_get_client_size(),
           (unsigned long long)RPC_MAXIMUM_PORT_COUNT, rpc_client_symbol_name);
    printf("%#x %#x %#x", rpc_server_init(NULL, PORTS, 1, allocate, &memory),
           rpc_server_init(&device, PORTS, 2, allocate, &memory), rpc_server_init(&device, PORTS, 1, no_memory, NULL));
    printf(" %#x %#x %#x %d\n", rpc_handle_server(none), rpc_server_shutdown(none, release, NULL),
           rpc_register_callback(none, INCREMENT, increment, NULL), rpc_get_client_buffer(none) == NULL);

    if (rpc_server_init(&device, PORTS, 1, allocate, &memory))
        return 1;
    rpc_register_callback(device, INCREMENT, increment, NULL);
    rpc_register_callback(device, INTERFACE, interface, NULL);
    rpc_register_callback(device, STREAM, stream, &messages);
    rpc_register_callback(device, REPLACED, first, NULL);
    rpc_register_callback(device, REPLACED, increment, NULL);
    rpc_register_callback(device, RPC_MALLOC, device_malloc, &allocations);
    rpc_register_callback(device, RPC_FREE, device_free, &allocations);
    if (sizeof client != rpc_get_client_size())
        return 2;
    memcpy(&client, rpc_get_client_buffer(device), sizeof client);
    printf("host: before the device\n");

    pthread_t thread;
    if (pthread_create(&thread, NULL, device_program, NULL))
        return 3;
    rpc_status_t status;
    while (!(status = rpc_handle_server(device)))
        ;
    pthread_join(thread, NULL);
    printf("host: after the device\n%sstatus %#x\n", report, status);
    printf("%d %d %d\n", messages, memory, allocations);
    printf("shutdown %#x", rpc_server_shutdown(device, release, &memory));
    printf(" %d\n", memory);
    return 0;
}
