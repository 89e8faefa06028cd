/* Calls the host from a GPU; gpurpc-loader runs it. rpc MODE [NUMBER]:
 *
 *   lines        each thread prints a line
 *   branches     threads print to both streams, call other services, or do nothing, in different branches
 *   memory       each thread allocates memory of the device, fills it and checks it
 *   exit         thread 37 ends the program with status NUMBER while the others call the host
 *   abort        thread 37 aborts it
 *   wait         no calls for NUMBER ms
 *   calls        each thread calls the host NUMBER times; thread 0 prints the mean cost of a call
 *   messages     as `calls`, each thread prints 1 KiB */
#include <gpurpc_client.h>

gpurpc_client_t __llvm_rpc_client;

static uint64_t time_now(void)
{
    uint64_t nanoseconds;
    __asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds;
}

static int is_equal(const char *a, const char *b)
{
    for (; *a != 0 && *a == *b; a++)
        b++;
    return *a == *b;
}

static unsigned parse(const char *text)
{
    unsigned number = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (unsigned)(*text - '0');
    return number;
}

/* Both append to a text, and return its end. */
static char *add_text(char *end, const char *text)
{
    while (*text != 0)
        *end++ = *text++;
    return end;
}

static char *add_number(char *end, uint64_t number)
{
    char digits[20];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    while (count > 0)
        *end++ = digits[--count];
    return end;
}

/* Not inlined, so that lanes of different branches meet here. */
__attribute__((noinline)) static void write_to(uint32_t opcode, const char *text, uint64_t size)
{
    gpurpc_call_t call = gpurpc_client_open(&__llvm_rpc_client, opcode);
    gpurpc_call_send_n(&call, text, size);
    gpurpc_call_recv(&call);
    gpurpc_call_close(&call);
}

static uint64_t ask(uint32_t opcode, uint64_t word)
{
    gpurpc_call_t call = gpurpc_client_open(&__llvm_rpc_client, opcode);
    gpurpc_call_fill(&call)->data[0] = word;
    gpurpc_call_send(&call);
    word = gpurpc_call_recv(&call)->data[0];
    gpurpc_call_close(&call);
    return word;
}

static uint64_t increment(uint64_t word)
{
    return ask(GPURPC_OPCODE_TEST_INCREMENT, word);
}

static void release(char *memory)
{
    gpurpc_call_t call = gpurpc_client_open(&__llvm_rpc_client, GPURPC_OPCODE_FREE);
    gpurpc_call_fill(&call)->data[0] = (uint64_t)memory;
    gpurpc_call_post(&call);
}

/* EXIT or ABORT. */
static void end(uint32_t opcode, unsigned status)
{
    gpurpc_call_t call = gpurpc_client_open(&__llvm_rpc_client, opcode);
    gpurpc_call_fill(&call);
    gpurpc_call_send(&call);
    gpurpc_call_recv(&call);
    gpurpc_call_fill(&call)->data[0] = status;
    gpurpc_call_post(&call);
}

static void line(uint32_t opcode, const char *word, unsigned thread)
{
    char text[40], *stop = add_number(add_text(text, word), thread);
    *stop++ = '\n';
    write_to(opcode, text, (uint64_t)(stop - text));
}

static void branches(unsigned thread, int *result)
{
    if (thread % 2 != 0)
        line(GPURPC_OPCODE_WRITE_TO_STDOUT, "odd ", thread);
    else if (thread % 3 == 0)
        line(GPURPC_OPCODE_WRITE_TO_STDERR, "three ", thread);
    else if (increment(thread) != thread + 1)
        *result = 1;
    for (unsigned i = 0; i < thread % 7; i++)
        if (increment(thread + i) != thread + i + 1)
            *result = 1;
}

static void memory(unsigned thread, int *result)
{
    unsigned size = 256 + thread;
    char *bytes = (char *)ask(GPURPC_OPCODE_MALLOC, size);
    if (bytes == 0) {
        *result = 1;
        return;
    }
    for (unsigned i = 0; i < size; i++)
        bytes[i] = (char)(thread + i);
    increment(thread);
    for (unsigned i = 0; i < size; i++)
        if (bytes[i] != (char)(thread + i))
            *result = 1;
    release(bytes);
}

static void calls(unsigned thread, unsigned count, int has_messages, int *result)
{
    enum { SIZE = 1024 };
    char text[SIZE], *stop;
    for (int i = 0; i < SIZE - 1; i++)
        text[i] = (char)('a' + (thread + (unsigned)i) % 26);
    text[SIZE - 1] = '\n';
    increment(0); /* all threads are running */
    uint64_t start = time_now();
    for (unsigned i = 0; i < count; i++) {
        if (has_messages)
            write_to(GPURPC_OPCODE_WRITE_TO_STDOUT, text, SIZE);
        else if (increment(i) != i + 1)
            *result = 1;
    }
    uint64_t cost = (time_now() - start) / count;
    if (thread == 0) {
        stop = add_text(add_number(text, cost), " ns per call\n");
        write_to(GPURPC_OPCODE_WRITE_TO_STDERR, text, (uint64_t)(stop - text));
    }
}

__attribute__((nvptx_kernel)) void _start(int argc, char **argv, char **envp, int *result)
{
    unsigned thread = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
    const char *mode = argc > 1 ? argv[1] : "";
    unsigned number = argc > 2 ? parse(argv[2]) : 1;
    (void)envp;
    if (is_equal(mode, "lines")) {
        line(GPURPC_OPCODE_WRITE_TO_STDOUT, "thread ", thread);
    } else if (is_equal(mode, "branches")) {
        branches(thread, result);
    } else if (is_equal(mode, "memory")) {
        memory(thread, result);
    } else if (is_equal(mode, "exit") || is_equal(mode, "abort")) {
        if (thread == 37)
            end(is_equal(mode, "exit") ? GPURPC_OPCODE_EXIT : GPURPC_OPCODE_ABORT, number);
        for (;;)
            increment(thread);
    } else if (is_equal(mode, "wait")) {
        for (uint64_t start = time_now(); time_now() - start < number * UINT64_C(1000000);)
            ;
    } else if (is_equal(mode, "calls") || is_equal(mode, "messages")) {
        calls(thread, number, is_equal(mode, "messages"), result);
    } else {
        *result = 99;
    }
}
