/* process.c: variables, threads, memory and output of the process. */
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

/* Returns whether the process has more privileges than its user, so that no variable is read
 * (ld.so(8), "Secure-execution mode"). */
int is_secure(void)
{
#ifdef __linux__
    return getauxval(AT_SECURE) != 0;
#else
    return issetugid();
#endif
}

/* Returns the variable's value, or NULL if unset, empty, or in secure-execution mode. */
const char *read_env(const char *name)
{
    const char *value = is_secure() ? NULL : getenv(name);
    return value && *value ? value : NULL;
}

/* Returns the value of a variable that names a file or directory. */
const char *read_path(const char *name)
{
    return read_env(name);
}

#ifdef __aarch64__
/* Called before the vector registers are saved, which it must not modify. In glibc and musl getauxval
 * is a loop over integers. The call is indirect, because a lazily bound call goes through the loader,
 * which preserves 128 bits of each vector register. (Reading the id register would be shorter, but is an
 * illegal instruction on kernels before 4.11.) */
MERGED int gpustub1_has_sve(void);
GENERAL_REGISTERS int gpustub1_has_sve(void)
{
#ifdef __linux__
    unsigned long (*volatile value)(unsigned long) = getauxval;
    return (value(AT_HWCAP) & (1UL << 22)) != 0; /* HWCAP_SVE */
#else
    return 0;
#endif
}
#endif

#if defined(__riscv) || defined(__s390x__)
/* Called before the vector registers are saved. The call is indirect for the same reason: the loader of RISC-V
 * preserves no vector register. */
MERGED int gpustub1_has_vectors(void);
int gpustub1_has_vectors(void)
{
#ifdef __riscv
    enum { VECTORS = 'V' - 'A' };
#else
    enum { VECTORS = 11 }; /* HWCAP_S390_VXRS */
#endif
    unsigned long (*volatile value)(unsigned long) = getauxval;
    return (value(AT_HWCAP) & (1UL << VECTORS)) != 0;
}
#endif

int32_t process_id(void)
{
    return (int32_t)getpid();
}

/* Identifies the calling thread in its process. */
uintptr_t thread_id(void)
{
    return (uintptr_t)pthread_self();
}

/* Returns the number by which other tools know the calling thread. */
long thread_number(void)
{
#ifdef SYS_gettid
    return (long)syscall(SYS_gettid);
#else
    return (long)getpid();
#endif
}

void yield_thread(void)
{
    sched_yield();
}

struct saved_errors save_errors(void)
{
    return (struct saved_errors){errno};
}

void restore_errors(struct saved_errors errors)
{
    errno = errors.number;
}

size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Makes pages writable or read-only. Returns whether that was done. */
int protect_pages(void *start, size_t length, int is_writable)
{
    return !mprotect(start, length, is_writable ? PROT_READ | PROT_WRITE : PROT_READ);
}

void write_stderr(const char *data, size_t length)
{
    while (length) {
        ssize_t written = write(STDERR_FILENO, data, length);
        if (written <= 0 && errno != EINTR)
            return;
        if (written > 0) {
            data += written;
            length -= (size_t)written;
        }
    }
}
