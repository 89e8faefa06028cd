/* The program of a device. Compiled for a host, as here, a thread is a warp of one lane. */
#include "device.h"

DEVICE static uint64_t take(gpurpc_client_t *client) {
    gpurpc_call_t call = gpurpc_client_open(client, TAKE);
    uint64_t number;
    gpurpc_call_fill(&call);
    gpurpc_call_send(&call);
    number = gpurpc_call_recv(&call)->data[0];
    gpurpc_call_close(&call);
    return number;
}

DEVICE void warp(gpurpc_client_t *client) {
    uint64_t number, sum = 0;
    gpurpc_call_t call;
    while ((number = take(client)) != 0)
        sum += number;
    call = gpurpc_client_open(client, HAND_IN);
    gpurpc_call_fill(&call)->data[0] = sum;
    gpurpc_call_send(&call);
    /* Waits for the answer: the host has the sum then. */
    gpurpc_call_recv(&call);
    gpurpc_call_close(&call);
}

/* Size of a string with its NUL. CUDA has no strlen for devices. */
DEVICE static uint64_t string_size(const char *string) {
    uint64_t size = 1;
    while (string[size - 1] != 0)
        size++;
    return size;
}

/* Opens a file as the fopen of LLVM's libc does. Returns 0 on failure. */
DEVICE static uint64_t open_file(gpurpc_client_t *client, const char *name) {
    gpurpc_call_t call = gpurpc_client_open(client, GPURPC_OPCODE_OPEN_FILE);
    uint64_t file;
    char *mode;
    gpurpc_call_send_n(&call, name, string_size(name));
    mode = (char *)gpurpc_call_fill(&call);
    mode[0] = 'r';
    mode[1] = 0;
    gpurpc_call_send(&call);
    file = gpurpc_call_recv(&call)->data[0];
    gpurpc_call_close(&call);
    return file;
}

/* Reads a line as fgets does: returns its size with the NUL, or 0 at the end. */
DEVICE static uint64_t read_line(gpurpc_client_t *client, uint64_t file, char *line, uint64_t room) {
    gpurpc_call_t call = gpurpc_client_open(client, GPURPC_OPCODE_READ_FGETS);
    gpurpc_buffer_t *packet = gpurpc_call_fill(&call);
    uint64_t size;
    packet->data[0] = room;
    packet->data[1] = file;
    gpurpc_call_send(&call);
    size = gpurpc_call_recv_n(&call, line, room);
    gpurpc_call_close(&call);
    return size;
}

DEVICE static void print(gpurpc_client_t *client, const char *text, uint64_t size) {
    gpurpc_call_t call = gpurpc_client_open(client, GPURPC_OPCODE_WRITE_TO_STDOUT);
    gpurpc_call_send_n(&call, text, size);
    gpurpc_call_recv(&call);
    gpurpc_call_close(&call);
}

DEVICE void print_file(gpurpc_client_t *client, const char *name) {
    const char none[] = "there is no such file\n";
    uint64_t file = open_file(client, name), size;
    char line[80];
    if (file == 0) {
        print(client, none, sizeof none - 1);
        return;
    }
    while ((size = read_line(client, file, line, sizeof line)) != 0)
        print(client, line, size - 1);
}
