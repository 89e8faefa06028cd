/* Common part of the generated callers. Each call runs in a separate process. Memory that a function may
   read or write is directly before an inaccessible page, and after bytes that must not change. Each call
   prints two lines: the arguments, in the notation of the fake library, and the result. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILLED 0xa5
#define BEFORE 0x5a
#define PAGE 4096ul
#define PAGES 16ul

/* A part of a struct according to the caller's header: the name that the library should print, its offset
   and size, and its value. A mark of size 0 ends a list. */
struct mark {
    const char *label;
    unsigned long offset, size, number;
};

struct block {
    unsigned char *start;
    unsigned long size;
    /* Original contents of an input. */
    unsigned char *copy;
    /* Expected contents of an output. */
    const struct mark *marks;
};

static struct block blocks[16], inputs[16];
static int block_count, input_count;
static char line[4096];
static int length;

static void fail(const char *what)
{
    perror(what);
    exit(3);
}

static unsigned char *guarded(unsigned long size)
{
    unsigned char *pages = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + PAGES * PAGE, PAGE, PROT_NONE))
        fail("mmap");
    memset(pages, BEFORE, PAGES * PAGE);
    return pages + PAGES * PAGE - size;
}

static void begin(const char *name)
{
    block_count = input_count = 0;
    length = snprintf(line, sizeof line, "%s", name);
}

static inline unsigned long integer(int at, unsigned long size)
{
    unsigned long number = 0x1122334455667700ul + at;
    if (size < 8)
        number &= (1ul << 8 * size) - 1;
    length += snprintf(line + length, sizeof line - length, " %d:%#lx", at, number);
    return number;
}

/* A double that is no float. */
static inline double real(int at, unsigned long size)
{
    double number = size < 8 ? at + 0.5 : at + 0.1;
    length += snprintf(line + length, sizeof line - length, " %d:%a", at, number);
    return number;
}

static inline void *address(int at)
{
    void *place = guarded(64);
    length += snprintf(line + length, sizeof line - length, " %d:%p", at, place);
    return place;
}

static unsigned long sum(const unsigned char *from, unsigned long size)
{
    unsigned long found = size;
    for (unsigned long i = 0; i < size; i++)
        found = found * 31 + from[i];
    return found;
}

static inline void value(int at, void *to, unsigned long size)
{
    for (unsigned long i = 0; i < size; i++)
        ((unsigned char *)to)[i] = 16 * at + i;
    length += snprintf(line + length, sizeof line - length, " %d:value/%lu/%#lx", at, size,
                       sum(to, size));
}

static inline void *input(int at, unsigned long size, const struct mark *marks)
{
    unsigned char *place = guarded(size), *copy = malloc(size);
    if (!copy)
        fail("malloc");
    for (unsigned long i = 0; i < size; i++)
        place[i] = i + at;
    for (const struct mark *mark = marks; mark && mark->size; mark++)
        memcpy(place + mark->offset, &mark->number, mark->size);
    memcpy(copy, place, size);
    inputs[input_count++] = (struct block){place, size, copy, NULL};
    length += snprintf(line + length, sizeof line - length, " %d:%p/in/%lu/%#lx", at,
                       (void *)place, size, sum(place, size));
    for (const struct mark *mark = marks; mark && mark->size; mark++)
        length += snprintf(line + length, sizeof line - length, "/%s", mark->label);
    return place;
}

static inline void *output(int at, unsigned long size, const struct mark *marks)
{
    unsigned char *place = guarded(size);
    blocks[block_count++] = (struct block){place, size, NULL, marks};
    length += snprintf(line + length, sizeof line - length, " %d:%p/out/%lu", at, (void *)place,
                       size);
    return place;
}

/* Prints the arguments before the call, which may not return. */
static void ready(const void *function)
{
    if (!function) {
        printf("absent\n");
        fflush(stdout);
        _exit(0);
    }
    printf("passed %.*s\n", length, line);
    fflush(stdout);
}

static int all(const unsigned char *from, unsigned long size, unsigned char what)
{
    for (unsigned long i = 0; i < size; i++)
        if (from[i] != what)
            return 0;
    return 1;
}

/* Result of a function without a status: 0 if the library has filled it. */
static inline int returned(const void *from, unsigned long size)
{
    return all(from, size, FILLED) ? 0 : -1;
}

static void done(int status)
{
    const char *found = "filled";
    for (int i = 0; i < block_count; i++) {
        struct block *block = &blocks[i];
        unsigned char *page = block->start + block->size - PAGES * PAGE;
        /* A part with the value of the caller's header counts as filled. */
        for (const struct mark *mark = block->marks; mark && mark->size; mark++)
            if (!memcmp(block->start + mark->offset, &mark->number, mark->size))
                memset(block->start + mark->offset, FILLED, mark->size);
        if (!all(page, block->start - page, BEFORE))
            found = "overrun";
        else if (all(block->start, block->size, BEFORE) && !strcmp(found, "filled"))
            found = "untouched";
        else if (!all(block->start, block->size, FILLED) && strcmp(found, "overrun"))
            found = "partly";
    }
    for (int i = 0; i < input_count; i++)
        if (memcmp(inputs[i].start, inputs[i].copy, inputs[i].size))
            found = "overrun";
    printf("result %d %s\n", status, found);
    fflush(stdout);
    _exit(0);
}

struct call {
    const char *name;
    void (*run)(void);
};

static int run(const struct call *calls, int count)
{
    for (int i = 0; i < count; i++) {
        printf("call %s\n", calls[i].name);
        fflush(stdout);
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0)
            calls[i].run();
        int status;
        if (waitpid(child, &status, 0) != child)
            fail("waitpid");
        if (WIFSIGNALED(status))
            printf("signal %d\n", WTERMSIG(status));
        else if (WEXITSTATUS(status))
            printf("exit %d\n", WEXITSTATUS(status));
        fflush(stdout);
    }
    return 0;
}
