/* check.h: as tests/traps/check.h, for programs of those tests on Windows, which has no fork. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <process.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            fflush(stderr);                                                         \
            _exit(1);                                                               \
        }                                                                           \
    } while (0)

/* Number of the statement that this process is for; -1: the first process, which starts one for each. */
static inline int statement_of_process(void)
{
    const char *number = getenv("STATEMENT");
    return number ? atoi(number) : -1;
}

static inline void start_statement(int number)
{
    char variable[32];
    snprintf(variable, sizeof variable, "STATEMENT=%d", number);
    CHECK(_putenv(variable) == 0);
    CHECK(_spawnl(_P_WAIT, "program.exe", "program.exe", (char *)0) == 0);
    CHECK(_putenv("STATEMENT=") == 0);
}

/* Each of these statements runs in a process without earlier calls: as first call, then warm. */
#define FIRST_AND_WARM(...)                          \
    do {                                             \
        enum { NUMBER_ = __COUNTER__ };              \
        if (statement_of_process() == NUMBER_) {     \
            { __VA_ARGS__; }                         \
            { __VA_ARGS__; }                         \
            _exit(0);                                \
        } else if (statement_of_process() < 0) {     \
            start_statement(NUMBER_);                \
        }                                            \
    } while (0)

#define PASSED() return puts("passed") < 0

#endif
