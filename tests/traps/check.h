/* check.h: common code of the programs of the trap tests. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends the process, which also works in children, threads and signal handlers. */
#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            _exit(1);                                                               \
        }                                                                           \
    } while (0)

/* Waits for a child and checks that it succeeded. */
static inline void check_child(pid_t child)
{
    int status;
    pid_t ended;
    CHECK(child > 0);
    do {
        ended = waitpid(child, &status, 0);
    } while (ended < 0 && errno == EINTR);
    CHECK(ended == child);
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "a child ended by signal %d\n", WTERMSIG(status));
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* One load binds every function of a library, so a process has only one first call. Each of these
 * statements runs in a child of a parent without calls: as first call, then warm. */
#define FIRST_AND_WARM(...)      \
    do {                         \
        pid_t child_ = fork();   \
        if (child_ == 0) {       \
            { __VA_ARGS__; }     \
            { __VA_ARGS__; }     \
            _exit(0);            \
        }                        \
        check_child(child_);     \
    } while (0)

/* The harness expects this line, so that a program which ends early does not pass. */
#define PASSED() return puts("passed") < 0

#endif
