/* Functions that adapters in C call for the program; trap_never is not called. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "gpustub.h"
#include "layouts.h"

int trap_gain(int a, long b, int c);
int trap_lose(int a, int b, int c, int d, int e, int f, int g, int h, long i);
int trap_words(int a, long b, const char *c, int d, int e, short f, long g, int h, int i, long j, int k);
int trap_by_value(const void *pointer, int device);
int trap_of_value(const void *pointer, struct location location, int flags);
int trap_properties(struct old_properties *properties, int device);
int trap_choose(int *device, const struct old_properties *properties);
int trap_call_back(int (*function)(void *), void *data);
int trap_frames(void **frames, int count);
int trap_partial(int value);
int trap_inner(int *value, int attribute, int device);
int trap_function_with_a_name_that_is_longer_than_those_of_the_shipped_libraries_and_goes_on_for_a_while(void);
int trap_chain(int value);
int trap_passed(int value);
int trap_refused(void);
int trap_missing(void);
int trap_kept(void);

enum { UNAVAILABLE = 77 };

static void check_arguments(void)
{
    CHECK(trap_gain(-1, -(1L << 40), 3) == -12);
    CHECK(trap_lose(-1, -2, -3, -4, -5, -6, -7, -8, 1L << 40) == 99);
    CHECK(trap_words(-1, -(1L << 40), "c", -4, 5, -6, 1L << 41, -8, -9, -(1L << 42), 11) == -14);
    CHECK(trap_by_value("", 7) == 1007);
    CHECK(trap_by_value("", -3) == 1997);
    CHECK(trap_by_value(NULL, 7) == TRAP_INVALID);
    CHECK(trap_of_value("", (struct location){1, 7}, 3) == 73);
    CHECK(trap_of_value("", (struct location){2, 7}, 3) == -7);
    CHECK(trap_of_value("", (struct location){3, 7}, 3) == TRAP_NOT_SUPPORTED);
    CHECK(trap_passed(-8) == -8);
    CHECK(trap_function_with_a_name_that_is_longer_than_those_of_the_shipped_libraries_and_goes_on_for_a_while() == 3);
}

/* Three pages, of which the middle one is accessible. */
static char *guarded(size_t *page)
{
    *page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 3 * *page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && !mprotect(pages + *page, *page, PROT_READ | PROT_WRITE));
    memset(pages + *page, 0x77, *page);
    return pages + *page;
}

static void check_properties(struct old_properties *properties)
{
    struct old_properties as_filled;
    memset(&as_filled, 0x77, sizeof as_filled);
    CHECK(trap_properties(properties, 2) == 43);
    CHECK(trap_properties(properties, 3) == 44);
    CHECK(!memcmp(properties, &as_filled, sizeof as_filled));
    CHECK(trap_properties(properties, 1) == 0);
    memcpy(as_filled.name, "gpu\0\x5a", 5); /* padding and reserved bytes are the program's */
    as_filled.memory = (int64_t)1 << 40 | 1;
    as_filled.clock = 1000 + ATTRIBUTE_CLOCK;
    CHECK(!memcmp(properties, &as_filled, sizeof as_filled));

    int device = 0;
    memset(properties, 0x77, sizeof *properties);
    properties->memory = 30;
    CHECK(trap_choose(&device, properties) == 0 && device == 30 + 0x77);
}

static void check_structs(void)
{
    size_t page;
    char *middle = guarded(&page);
    check_properties((struct old_properties *)(void *)middle);
    memset(middle, 0x77, page);
    check_properties((struct old_properties *)(void *)(middle + page) - 1);
    CHECK(trap_properties(NULL, 0) == TRAP_INVALID);
    CHECK(trap_choose(NULL, NULL) == TRAP_INVALID);
}

static jmp_buf out;

static int jumps(void *data)
{
    longjmp(out, *(int *)data);
    return 0;
}

static int nests(void *data)
{
    CHECK(trap_lose(-1, -2, -3, -4, -5, -6, -7, -8, 1L << 40) == 99);
    return *(int *)data;
}

static void *frame_list[64];

/* An exported name, which dladdr knows. */
__attribute__((noinline)) int caller(void)
{
    int count = trap_frames(frame_list, 64);
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < count; i++) {
        Dl_info info;
        if (dladdr((char *)frame_list[i] - 1, &info) && info.dli_sname && !strcmp(info.dli_sname, "caller"))
            return 1;
    }
    return 0;
}

static void check_frames(void)
{
    int data = 5;
    CHECK(trap_call_back(nests, &data) == 5);
    int jumped = setjmp(out);
    if (!jumped)
        trap_call_back(jumps, &data);
    CHECK(jumped == 5);
#ifndef NO_FRAMES /* musl and static programs have no backtrace() of another image */
    CHECK(caller());
#endif
}

static pthread_barrier_t barrier;

static void *call(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    check_arguments();
    return NULL;
}

static void check_threads(void)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    CHECK(!pthread_barrier_init(&barrier, NULL, THREADS));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, call, NULL));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    CHECK(!pthread_barrier_destroy(&barrier));
}

/* The only order of the first call and this thread's is that of the slot. */
static int is_bound;

static void *call_later(void *unused)
{
    while (!__atomic_load_n(&is_bound, __ATOMIC_RELAXED))
        ;
    check_arguments();
    return unused;
}

static void check_later_thread(void)
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, call_later, NULL));
    check_arguments();
    __atomic_store_n(&is_bound, 1, __ATOMIC_RELAXED);
    CHECK(!pthread_join(thread, NULL));
}

#ifdef STATIC
extern void *gpustub1_targets_trap_partial[] __attribute__((visibility("hidden")));
extern void *gpustub1_targets_trap_properties[] __attribute__((visibility("hidden")));
extern char gpustub1_exiting __attribute__((visibility("hidden")));

static void cannot_be_written(int number)
{
    (void)number;
    _exit(0);
}

static void check_targets(int lacking)
{
    for (int i = 0; i < 4; i++)
        CHECK((gpustub1_targets_trap_partial[i] == NULL) == lacking);
    CHECK(gpustub1_targets_trap_properties[0] && gpustub1_targets_trap_properties[1]);
    CHECK(!gpustub1_targets_trap_properties[2] && !gpustub1_targets_trap_properties[3]);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, cannot_be_written);
        gpustub1_targets_trap_properties[1] = NULL;
        _exit(1);
    }
    check_child(child);
}

/* Runs after the destructors of the image's stubs, which have a higher priority than 100. */
__attribute__((destructor(100))) static void late(void)
{
    if (gpustub_is_available("trap") && gpustub1_exiting && trap_passed(1) != 77)
        _exit(3);
    if (gpustub1_exiting && trap_gain(-1, -(1L << 40), 3) != 77)
        _exit(4);
}
#endif

int main(void)
{
    int value = 0;
    const char *set = getenv("TRAP_VERSION");
    int version = set ? atoi(set) : 1050;
#ifdef FAILING
    struct old_properties properties;
    CHECK(trap_properties(&properties, 1) == 0);
    CHECK(trap_properties(&properties, 1) == -7); /* the second */
    CHECK(trap_properties(&properties, 1) == 0);
    CHECK(trap_inner(&value, 0, 0) == 9);
    PASSED();
#elif defined(TRACED)
    struct old_properties traced;
    CHECK(trap_properties(&traced, 1) == 0 && !strcmp(traced.name, "gpu"));
    CHECK(trap_lose(-1, -2, -3, -4, -5, -6, -7, -8, 1L << 40) == 99);
    CHECK(trap_gain(-1, -(1L << 40), 3) == -12);
    PASSED();
#elif defined(THREADS_ONLY)
    check_later_thread();
    check_threads();
    PASSED();
#elif defined(UNKNOWN)
    CHECK(trap_gain(-1, -(1L << 40), 3) == UNAVAILABLE);
    CHECK(trap_chain(7) == UNAVAILABLE);
    CHECK(trap_inner(&value, 0, 0) == 0);
    CHECK(!gpustub_has_function("trap", "trap_gain"));
    PASSED();
#endif
    FIRST_AND_WARM(check_arguments());
    FIRST_AND_WARM(check_structs());
    FIRST_AND_WARM(check_frames());
    FIRST_AND_WARM(check_threads());
    FIRST_AND_WARM(check_later_thread());
    FIRST_AND_WARM(CHECK(trap_refused() == UNAVAILABLE));
    FIRST_AND_WARM(CHECK(trap_kept() == 5));
    FIRST_AND_WARM(CHECK(trap_inner(&value, 0, 0) == 0));
    FIRST_AND_WARM(CHECK(trap_chain(7) == (version >= 1090 ? 719 : version >= 1070 ? 700 : 715)));
#ifdef LACKING
    FIRST_AND_WARM(CHECK(trap_missing() == UNAVAILABLE));
    FIRST_AND_WARM(CHECK(trap_partial(5) == UNAVAILABLE));
    CHECK(!gpustub_has_function("trap", "trap_partial"));
#else
    FIRST_AND_WARM(CHECK(trap_partial(5) == 1010));
    CHECK(gpustub_has_function("trap", "trap_partial"));
#endif
    CHECK(gpustub_has_function("trap", "trap_properties"));
    CHECK(!gpustub_has_function("trap", "trap_refused"));
    const char *report = gpustub_report("trap");
    CHECK(strstr(report, "\n  adapted: "));
    CHECK(strstr(report, "trap_refused (the old form has no equivalent)"));
    CHECK(!strstr(report, "trap_kept"));
#ifdef LISTED
    CHECK(strstr(report, "trap_chain (only values above 0), "));
    CHECK(strstr(report, "trap_by_value, "));
#endif
#ifdef LACKING
    CHECK(strstr(report, "trap_partial (the library lacks trap_last)"));
    CHECK(strstr(report, "trap_missing (the newer function takes a list)"));
#endif
#ifdef STATIC
#ifdef LACKING
    check_targets(1);
#else
    check_targets(0);
#endif
#endif
    check_frames();
    PASSED();
}
