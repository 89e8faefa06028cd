/* Common part of the generated callers. Each call runs in a separate process. Memory that a function may
   read or write is directly before an inaccessible page, and after bytes that must not change. Each call
   prints two lines: the arguments, in the notation of the fake library, and the result.

   GPUSTUB_TEST_CASES names a file with cases, one a line, which are run instead of one call of each function:

       cudaMemAdvise label 3=-1 1=null 2.flags=7 GPUSTUB_TEST_FAKE_STATUS=3

   sets arguments, fields (with the path `*`, the memory of a pointer that is no struct) and environment variables.
   Inputs are then filled by field, reserved bytes with zero, and further lines name the fields: `given` before
   the call, `found` after it. The log of the fake library gets a line `case LABEL`. */
#define _GNU_SOURCE
#include "common.h"
#include <sys/mman.h>
#include <sys/wait.h>

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
    const struct field *fields;
    int at;
};

static struct block blocks[32], inputs[32];
static int block_count, input_count;
static struct text line, given;

/* Words of the case, if there is one. */
static char *words[64];
static int word_count, is_case;

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
    line.length = given.length = 0;
    add(&line, "%s", name);
}

/* Value that the case has for an argument, or a field of it. */
static const char *wanted(int at, const char *path)
{
    char key[256];
    int length = path ? snprintf(key, sizeof key, "%d.%s=", at, path)
                      : snprintf(key, sizeof key, "%d=", at);
    for (int i = 0; i < word_count; i++)
        if (words[i] && !strncmp(words[i], key, length)) {
            const char *value = words[i] + length;
            words[i] = NULL;
            return value;
        }
    return NULL;
}

/* The value of a field: `memory` is a pointer that the library may follow. */
static unsigned long chosen(const char *value, const struct enumerator *names)
{
    return strcmp(value, "memory") ? parse(value, names) : (unsigned long)guarded(64);
}

/* The memory of an earlier input, which the function may write as this argument. */
static inline void *shared(int at, int with)
{
    for (int i = 0; i < input_count; i++)
        if (inputs[i].at == with) {
            struct block block = inputs[i];
            inputs[i] = inputs[--input_count];
            block.at = at;
            block.copy = NULL;
            blocks[block_count++] = block;
            for (const struct field *field = block.fields; field && field->size; field++)
                describe(&given, at, block.start, field);
            add(&line, " %d:%p/out/%lu", at, (void *)block.start, block.size);
            return block.start;
        }
    fprintf(stderr, "argument %d is no input\n", with);
    exit(4);
}

/* Whether the case has a pointer for an argument: null, or that of another argument. */
static inline int is_chosen(int at, void **place)
{
    const char *value = wanted(at, NULL);
    if (!value)
        return 0;
    if (value[0] == '$') {
        *place = shared(at, atoi(value + 1));
        return 1;
    }
    if (strcmp(value, "null")) {
        fprintf(stderr, "argument %d is a pointer: %s\n", at, value);
        exit(4);
    }
    add(&line, " %d:NULL", at);
    *place = NULL;
    return 1;
}

static inline unsigned long integer(int at, unsigned long size)
{
    const char *value = wanted(at, NULL);
    unsigned long number = value ? parse(value, NULL) : 0x1122334455667700ul + at;
    if (size < 8)
        number &= (1ul << 8 * size) - 1;
    add(&line, " %d:%#lx", at, number);
    return number;
}

/* A double that is no float. */
static inline double real(int at, unsigned long size)
{
    double number = size < 8 ? at + 0.5 : at + 0.1;
    add(&line, " %d:%a", at, number);
    return number;
}

static inline void *address(int at)
{
    static const struct field first[] = {{"*", 0, 1, 0, 0}, {0}};
    void *place;
    if (is_chosen(at, &place))
        return place;
    place = guarded(64);
    if (is_case)
        blocks[block_count++] = (struct block){place, 64, NULL, NULL, first, at};
    add(&line, " %d:%p", at, place);
    return place;
}

static inline void value(int at, void *to, unsigned long size, const struct field *fields)
{
    for (unsigned long i = 0; i < size; i++)
        ((unsigned char *)to)[i] = 16 * at + i;
    for (; is_case && fields && fields->size; fields++) {
        const char *value = wanted(at, fields->path);
        if (value)
            set(to, fields, chosen(value, fields->names));
        describe(&given, at, to, fields);
    }
    add(&line, " %d:value/%lu/%#lx", at, size, sum(to, size));
}

static inline void *input(int at, unsigned long size, const struct mark *marks,
                          const struct field *fields)
{
    void *other;
    if (is_chosen(at, &other))
        return other;
    unsigned char *place = guarded(size), *copy = malloc(size);
    if (!copy)
        fail("malloc");
    for (unsigned long i = 0; i < size; i++)
        place[i] = i + at;
    for (const struct mark *mark = marks; mark && mark->size; mark++)
        memcpy(place + mark->offset, &mark->number, mark->size);
    for (const struct field *field = fields; is_case && field && field->size; field++) {
        const char *value = wanted(at, field->path);
        unsigned long number = field->path[0] == '~' ? 0 : field->number;
        set(place, field, value ? chosen(value, field->names) : number);
        describe(&given, at, place, field);
    }
    memcpy(copy, place, size);
    inputs[input_count++] = (struct block){place, size, copy, NULL, fields, at};
    add(&line, " %d:%p/in/%lu/%#lx", at, (void *)place, size, sum(place, size));
    for (const struct mark *mark = marks; mark && mark->size; mark++)
        add(&line, "/%s", mark->label);
    return place;
}

static inline void *output(int at, unsigned long size, const struct mark *marks,
                           const struct field *fields)
{
    void *other;
    if (is_chosen(at, &other))
        return other;
    unsigned char *place = guarded(size);
    for (const struct field *field = fields; is_case && field && field->size; field++) {
        const char *value = wanted(at, field->path);
        if (value) {
            set(place, field, chosen(value, field->names));
            describe(&given, at, place, field);
        }
    }
    blocks[block_count++] = (struct block){place, size, NULL, marks, fields, at};
    add(&line, " %d:%p/out/%lu", at, (void *)place, size);
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
    for (int i = 0; i < word_count; i++)
        if (words[i]) {
            fprintf(stderr, "nothing is called %s\n", words[i]);
            exit(4);
        }
    printf("passed %.*s\n", line.length, line.start);
    if (is_case)
        printf("given%.*s\n", given.length, given.start);
    fflush(stdout);
}

/* Result of a function without a status: 0 if the library has filled it. */
static inline int returned(const void *from, unsigned long size)
{
    return all(from, size, FILLED) ? 0 : -1;
}

/* Prints the outputs by field, and whether the bytes between have plausible contents. */
static void describe_outputs(void)
{
    static struct text found;
    for (int i = 0; i < block_count; i++) {
        struct block *block = &blocks[i];
        unsigned char *rest = malloc(block->size);
        if (!rest)
            fail("malloc");
        memcpy(rest, block->start, block->size);
        for (const struct field *field = block->fields; field && field->size; field++) {
            describe(&found, block->at, block->start, field);
            memset(rest + field->offset, BEFORE, field->size);
        }
        const char *word = "before";
        for (unsigned long at = 0; at < block->size; at++)
            if (rest[at] == FILLED || rest[at] == 0)
                word = strcmp(word, "mixed") ? "clean" : word;
            else if (rest[at] != BEFORE)
                word = "mixed";
        add(&found, " %d.(rest)=%s", block->at, word);
        free(rest);
    }
    printf("found%.*s\n", found.length, found.start);
}

static void done(int status)
{
    if (is_case)
        describe_outputs();
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

/* Runs a call in a separate process. */
static void run_one(const struct call *call)
{
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0)
        call->run();
    int status;
    if (waitpid(child, &status, 0) != child)
        fail("waitpid");
    if (WIFSIGNALED(status))
        printf("signal %d\n", WTERMSIG(status));
    else if (WEXITSTATUS(status))
        printf("exit %d\n", WEXITSTATUS(status));
    fflush(stdout);
}

/* Whether a call, `SOURCE NAME SHAPE`, is one of that name. */
static int is_called(const char *call, const char *name)
{
    unsigned long length = strlen(name);
    call = strchr(call, ' ');
    return call && !strncmp(call + 1, name, length) && call[1 + length] == ' ';
}

/* Runs a case: the name of the function, the label, and what the case sets. */
static void run_case(const struct call *calls, int count, char *text)
{
    struct text label = {.length = 0};
    char *name = strtok(text, " ");
    add(&label, "case %s\n", strtok(NULL, " "));
    char *variables[16];
    int variable_count = 0;
    word_count = 0;
    for (char *word = strtok(NULL, " "); word && word_count < 64; word = strtok(NULL, " "))
        if (strncmp(word, "GPUSTUB_", 8))
            words[word_count++] = word;
        else if (variable_count < 16 && !putenv(word))
            variables[variable_count++] = word;
    for (int i = 0; i < count; i++)
        if (is_called(calls[i].name, name)) {
            record(&label);
            printf("call %s", label.start + strlen("case "));
            run_one(&calls[i]);
            break;
        }
    while (variable_count) {
        char *variable = variables[--variable_count];
        *strchr(variable, '=') = 0;
        unsetenv(variable);
    }
}

static int run(const struct call *calls, int count)
{
    const char *cases = getenv("GPUSTUB_TEST_CASES");
    if (cases) {
        /* Read at once: a process that exits moves the position in a file that it shares. */
        static char text[1 << 20];
        FILE *file = fopen(cases, "r");
        if (!file || setenv("GPUSTUB_TEST_FAKE_FIELDS", "1", 1))
            fail(cases);
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
        is_case = 1;
        for (char *line = text; *line;) {
            char *next = line + strcspn(line, "\n");
            next += *next == '\n' ? (*next = 0, 1) : 0;
            run_case(calls, count, line);
            line = next;
        }
        return 0;
    }
    for (int i = 0; i < count; i++) {
        printf("call %s\n", calls[i].name);
        run_one(&calls[i]);
    }
    return 0;
}
