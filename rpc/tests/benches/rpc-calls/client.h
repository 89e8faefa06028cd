// A client on the server's thread: KIND PORTS LANES PENDING ROUNDS. Each round makes PENDING calls on ports at equal
// distances, and polls until all are answered. A call adds one to a word of each lane, or exchanges several packets.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct calls {
    const char *kind;
    uint32_t ports, lanes, pending, rounds;
};

static void fail(const char *what) {
    fprintf(stderr, "rpc-calls: %s\n", what);
    exit(1);
}

static struct calls arguments(int count, char **words) {
    if (count != 6)
        fail("KIND PORTS LANES PENDING ROUNDS");
    struct calls calls = {words[1], 0, 0, 0, 0};
    uint32_t *numbers[] = {&calls.ports, &calls.lanes, &calls.pending, &calls.rounds};
    for (int at = 0; at < 4; at++)
        *numbers[at] = (uint32_t)strtoul(words[at + 2], NULL, 10);
    return calls;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

// Makes all calls, each of so many packets that go to the server and return. The first word of each lane is written
// before each call, the others keep their contents. Prints the median of the rounds' times, in nanoseconds of a call.
static inline void exchange(const struct calls *calls, void *memory, uint64_t opcode, uint32_t packets_of_call,
                            uint64_t first_word, void (*poll)(void)) {
    uint32_t ports = calls->ports, lanes = calls->lanes, step = ports / calls->pending, value = 0;
    volatile uint32_t *inbox = (volatile uint32_t *)memory, *outbox = inbox + ports;
    uint64_t *headers = (uint64_t *)((char *)memory + 8 * (size_t)ports);
    volatile uint64_t *packets = headers + 2 * (size_t)ports;
    double *times = (double *)malloc(calls->rounds * sizeof *times);
    for (uint32_t port = 0; port < ports; port += step) {
        headers[2 * port] = ~0ull >> (64 - lanes);
        headers[2 * port + 1] = opcode;
    }
    for (uint32_t round = 0; round < calls->rounds; round++) {
        double start = nanoseconds();
        for (uint32_t port = 0; port < ports; port += step)
            for (uint32_t lane = 0; lane < lanes; lane++)
                packets[8 * ((size_t)port * lanes + lane)] = first_word;
        for (uint32_t packet = 0; packet < packets_of_call; packet++) {
            value = !value;
            for (uint32_t port = 0; port < ports; port += step)
                __atomic_store_n(&outbox[port], value, __ATOMIC_RELEASE);
            for (uint32_t port = 0; port < ports; port += step)
                while (__atomic_load_n(&inbox[port], __ATOMIC_ACQUIRE) != value)
                    poll();
        }
        times[round] = (nanoseconds() - start) / calls->pending;
    }
    qsort(times, calls->rounds, sizeof *times, ascending);
    printf("%.0f\n", times[calls->rounds / 2]);
    free(times);
}

// Makes all calls, in memory with this layout: mailboxes of the client and the server, headers, packets.
static inline void call(const struct calls *calls, void *memory, uint64_t opcode, void (*poll)(void)) {
    uint32_t ports = calls->ports, lanes = calls->lanes, step = ports / calls->pending;
    volatile uint32_t *inbox = (volatile uint32_t *)memory, *outbox = inbox + ports;
    uint64_t *headers = (uint64_t *)((char *)memory + 8 * (size_t)ports);
    volatile uint64_t *packets = headers + 2 * (size_t)ports;
    for (uint32_t port = 0; port < ports; port += step) {
        headers[2 * port] = ~0ull >> (64 - lanes);
        headers[2 * port + 1] = opcode;
    }
    for (uint32_t round = 1; round <= calls->rounds; round++) {
        for (uint32_t port = 0; port < ports; port += step)
            __atomic_store_n(&outbox[port], round & 1, __ATOMIC_RELEASE);
        for (uint32_t port = 0; port < ports; port += step)
            while (inbox[port] != (round & 1))
                poll();
    }
    for (uint32_t port = 0; port < ports; port += step)
        for (uint32_t lane = 0; lane < lanes; lane++)
            if (packets[8 * ((size_t)port * lanes + lane)] != calls->rounds)
                fail("a wrong answer");
}
