/* A "GPU program" for fake-gpu.h: its kernels are those of LLVM's libc, and argv[1] selects their actions.
 *
 * CLIENT: 1 the client itself (LLVM 20 to 22), 2 a pointer to one, with opcodes of 16 bits (LLVM 19), 3 one of
 * another size, 4 that of LLVM 23, 5 a pointer of another size, 0 none. WITHOUT_START, ONLY_START: the available kernels. */
#include <sched.h>
#define GPURPC_PAUSE() sched_yield()
#if CLIENT == 4
#define GPURPC_CLIENT_LLVM 23
#endif
#include <gpurpc_client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned (*fake_thread)(void);

#if CLIENT == 2
gpurpc_client_t *__llvm_libc_rpc_client;
#define CLIENT_OF_HOST __llvm_libc_rpc_client
/* The upper half has arbitrary contents. */
#define NUMBER(opcode) (((opcode) & 0xffff) | 0xdead0000u)
#elif CLIENT == 3
char __llvm_rpc_client[544];
#define CLIENT_OF_HOST ((gpurpc_client_t *)__llvm_rpc_client)
#define NUMBER(opcode) (opcode)
#elif CLIENT == 5
char __llvm_libc_rpc_client[552];
#define CLIENT_OF_HOST ((gpurpc_client_t *)__llvm_libc_rpc_client)
#define NUMBER(opcode) (opcode)
#elif CLIENT == 1 || CLIENT == 4
gpurpc_client_t __llvm_rpc_client;
#define CLIENT_OF_HOST (&__llvm_rpc_client)
#define NUMBER(opcode) (opcode)
#endif

#if CLIENT != 0
static gpurpc_call_t begin(unsigned opcode) { return gpurpc_client_open(CLIENT_OF_HOST, NUMBER(opcode)); }

static uint64_t ask(unsigned opcode, uint64_t value)
{
    gpurpc_call_t call = begin(opcode);
    gpurpc_call_fill(&call)->data[0] = value;
    gpurpc_call_send(&call);
    value = gpurpc_call_recv(&call)->data[0];
    gpurpc_call_close(&call);
    return value;
}

static void print(const char *text)
{
    gpurpc_call_t call = begin(GPURPC_OPCODE_WRITE_TO_STDOUT);
    gpurpc_call_send_n(&call, text, strlen(text));
    gpurpc_call_recv(&call);
    gpurpc_call_close(&call);
}

/* EXIT and ABORT: request and acknowledgement. The client waits for no other call. */
static void end(unsigned opcode, int status)
{
    gpurpc_call_t call = begin(opcode);
    gpurpc_call_send(&call);
    gpurpc_call_recv(&call);
    gpurpc_call_fill(&call)->data[0] = (uint64_t)status;
    gpurpc_call_send(&call);
    gpurpc_call_close(&call);
}

static uint64_t open_file(const char *path, const char *mode)
{
    gpurpc_call_t call = begin(GPURPC_OPCODE_OPEN_FILE);
    gpurpc_call_send_n(&call, path, strlen(path) + 1);
    gpurpc_buffer_t *packet = gpurpc_call_fill(&call);
    memcpy(packet, mode, strlen(mode) + 1);
    gpurpc_call_send(&call);
    uint64_t file = gpurpc_call_recv(&call)->data[0];
    gpurpc_call_close(&call);
    return file;
}

static uint64_t read_file(uint64_t file, char *text, uint64_t room)
{
    gpurpc_call_t call = begin(GPURPC_OPCODE_READ_FROM_STREAM);
    gpurpc_buffer_t *packet = gpurpc_call_fill(&call);
    packet->data[0] = room;
    packet->data[1] = file;
    gpurpc_call_send(&call);
    gpurpc_call_recv_n(&call, text, room);
    uint64_t size = gpurpc_call_recv(&call)->data[0];
    gpurpc_call_close(&call);
    return size;
}

static void release(uint64_t address)
{
    gpurpc_call_t call = begin(GPURPC_OPCODE_FREE);
    gpurpc_call_fill(&call)->data[0] = address;
    gpurpc_call_send(&call);
    gpurpc_call_close(&call);
}

static void show(int argc, char **argv, char **envp)
{
    for (int i = 1; i < argc; i++) {
        print(i > 1 ? " " : "");
        print(argv[i]);
    }
    print(argv[argc] ? "?" : "\n");
    for (; *envp; envp++)
        if (strncmp(*envp, "SHOWN=", 6) == 0)
            print(*envp + 6);
    print("\n");
}

/* Bytes from the packet of a port to that of the next port. */
static int show_places(void)
{
    char text[64];
    gpurpc_call_t first = begin(GPURPC_OPCODE_TEST_INCREMENT), second = begin(GPURPC_OPCODE_TEST_INCREMENT);
    long ports = (long)second.port - (long)first.port;
    snprintf(text, sizeof text, "%ld bytes\n", ((char *)second.packet - (char *)first.packet) / ports);
    gpurpc_call_t *calls[] = {&second, &first};
    for (int i = 0; i < 2; i++) {
        gpurpc_call_fill(calls[i])->data[0] = 41;
        gpurpc_call_send(calls[i]);
        if (gpurpc_call_recv(calls[i])->data[0] != 42)
            return 6;
        gpurpc_call_close(calls[i]);
    }
    print(text);
    return 0;
}

/* Work of each thread, many at once; the results of all threads are combined by "or". */
static int work(unsigned thread)
{
    for (uint64_t i = 0; i < 20; i++)
        if (ask(GPURPC_OPCODE_TEST_INCREMENT, thread * 100 + i) != thread * 100 + i + 1)
            return 1;
    if (thread % 8 != 0)
        return 0;
    unsigned *memory = (unsigned *)(uintptr_t)ask(GPURPC_OPCODE_MALLOC, 64 * sizeof *memory);
    if (!memory)
        return 2;
    for (unsigned i = 0; i < 64; i++)
        memory[i] = thread + i;
    /* Other threads allocate meanwhile. */
    ask(GPURPC_OPCODE_TEST_INCREMENT, 0);
    for (unsigned i = 0; i < 64; i++)
        if (memory[i] != thread + i)
            return 4;
    release((uint64_t)(uintptr_t)memory);
    return 0;
}

static int run(int argc, char **argv, char **envp)
{
    char text[64] = "";
    const char *what = argc > 1 ? argv[1] : "";
    unsigned thread = fake_thread();
    if (strcmp(what, "work") == 0)
        return work(thread);
    if (strcmp(what, "places") == 0)
        return show_places();
    if (strcmp(what, "show") == 0)
        show(argc, argv, envp);
    else if (strcmp(what, "ports") == 0) {
        snprintf(text, sizeof text, "%u ports\n", CLIENT_OF_HOST->port_count);
        if (thread == 0)
            print(text);
    } else if (strcmp(what, "read") == 0) {
        uint64_t file = open_file(argv[2], "r");
        if (!file)
            return 5;
        text[read_file(file, text, sizeof text - 1)] = 0;
        print(text);
    } else if (strcmp(what, "too-much") == 0)
        return ask(GPURPC_OPCODE_MALLOC, UINT64_C(1) << 40) != 0;
    else if (strcmp(what, "exit") == 0) {
        /* All but one thread run indefinitely. */
        while (thread != 0)
            sched_yield();
        end(GPURPC_OPCODE_EXIT, 42);
        for (;;)
            sched_yield();
    } else if (strcmp(what, "exit-and-end") == 0)
        end(GPURPC_OPCODE_EXIT, 43);
    else if (strcmp(what, "abort") == 0)
        end(GPURPC_OPCODE_ABORT, 0);
    else if (strcmp(what, "nothing") == 0)
        release(ask(GPURPC_OPCODE_MALLOC, 0));
    else if (strcmp(what, "unknown") == 0 || strcmp(what, "host-call") == 0) {
        gpurpc_call_t call = begin(*what == 'u' ? GPURPC_OPCODE('u', 9) : GPURPC_OPCODE_HOST_CALL);
        gpurpc_call_send(&call);
        gpurpc_call_close(&call);
    } else if (strcmp(what, "hang-in-call") == 0)
        read_file(1, text, sizeof text);
    else if (strcmp(what, "hang") == 0)
        for (;;)
            sched_yield();
    else if (argc > 1)
        return atoi(what);
    return 0;
}
#else
static void print(const char *text) { (void)text; }
static int run(int argc, char **argv, char **envp)
{
    (void)envp;
    while (argc > 1 && strcmp(argv[1], "hang") == 0)
        sched_yield();
    return argc > 1 ? atoi(argv[1]) : 0;
}
#endif

static int verbose;

#ifdef CONSTRUCTORS
/* Constructors as LLVM emits them for NVIDIA's GPUs: a variable each, by priority, arrays that the loader fills, and
 * kernels that run them. CONSTRUCTORS: 1 by those kernels, as since LLVM 22, 2 by _begin and _end, 3 unknown. */
typedef void action(void);
static void first(void) { print("first\n"); }
static void second(void) { print("second\n"); }
static void last(void) { print("last\n"); }
action *__init_array_object_second_a_c_0f_65535 = second;
action *__init_array_object_first_b_c_0f_101 = first;
action *__fini_array_object_last_a_c_0f_65535 = last;
action **__init_array_start, **__init_array_end, **__fini_array_start, **__fini_array_end;

static void init(void)
{
    for (action **each = __init_array_start; each != __init_array_end; each++)
        (*each)();
}

static void fini(void)
{
    for (action **each = __fini_array_end; each != __fini_array_start; each--)
        each[-1]();
}

#define KERNEL(name, does, symbol)                                                                                    \
    void name(void) __asm__(symbol);                                                                                   \
    void name(void) { does(); }
KERNEL(cuda_init, init, "nvptx$device$init")
KERNEL(cuda_fini, fini, "nvptx$device$fini")
KERNEL(hip_init, init, "amdgcn.device.init")
KERNEL(hip_fini, fini, "amdgcn.device.fini")

/* _end's descriptor by AMD's compiler: the arguments have 4 bytes, or are only those that the compiler adds. */
extern const unsigned descriptor[16] __asm__("_end.kd");
#if CONSTRUCTORS == 1
int end_takes_nothing;
const unsigned descriptor[16] = {[2] = 256};
#elif CONSTRUCTORS == 2
const unsigned descriptor[16] = {[2] = 4 + 4 + 256};
#endif
#endif

#ifndef ONLY_START
static int is_verbose(char **envp)
{
    for (; *envp; envp++)
        if (strcmp(*envp, "VERBOSE=1") == 0)
            return 1;
    return 0;
}

void _begin(int argc, char **argv, char **envp);
void _begin(int argc, char **argv, char **envp)
{
    (void)argc;
    (void)argv;
#if defined(CONSTRUCTORS) && CONSTRUCTORS == 2
    init();
#endif
    verbose = is_verbose(envp);
    if (verbose)
        print("_begin\n");
}

void _end(int result);
void _end(int result)
{
    char text[] = "_end 0\n";
    text[5] = (char)('0' + result % 10);
    if (verbose)
        print(text);
#if defined(CONSTRUCTORS) && CONSTRUCTORS == 2
    fini();
#endif
}
#endif

#ifdef WITHOUT_START
#define _start other
#endif
void _start(int argc, char **argv, char **envp, int *result);
void _start(int argc, char **argv, char **envp, int *result)
{
    if (verbose)
        print("_start\n");
    __atomic_fetch_or(result, run(argc, argv, envp), __ATOMIC_RELAXED);
}
