#include "check.h"

#include <stdint.h>
#include <string.h>

#include "shared.h"

#ifdef ABSENT
#define VALUE 77
#else
#define VALUE 42
#endif
#ifndef WRITABLE /* constants of programs without PT_GNU_RELRO, and their slots with glibc */
#define WRITABLE 0
#endif

#ifdef OWN_LIST
/* A list that was made when the program started, and no lock, as ClickHouse and Seastar have it: another thread may
 * write to the slots when their pages are closed, so that they stay open. */
#include <dlfcn.h>
#include <link.h>

typedef int visit_function(struct dl_phdr_info *info, size_t size, void *context);
static struct dl_phdr_info images[64];
static int image_count;

static int add_image(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    CHECK(image_count < 64);
    images[image_count++] = *info;
    return 0;
}

int dl_iterate_phdr(visit_function *visit, void *context)
{
    int (*next)(visit_function *, void *);
    int result = 0;
    void *symbol = image_count ? NULL : dlsym(RTLD_NEXT, "dl_iterate_phdr");
    if (symbol) {
        memcpy(&next, &symbol, sizeof next);
        next(add_image, NULL);
    }
    for (int i = 0; i < image_count && !result; i++)
        result = visit(&images[i], sizeof images[i], context);
    return result;
}
#else
#define OWN_LIST 0
#endif

int trap_value(void);
int trap_other(void);

static int (*const relocated[])(void) = {trap_value, trap_other};
static volatile int first; /* keeps the compiler from reading the constant */
static int is_bound;

static int is_writable(const volatile void *address)
{
    unsigned long start, end, value = (unsigned long)(uintptr_t)address;
    char line[512], permissions[8];
    int writable = -1;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, permissions) == 3 && value >= start &&
            value < end)
            writable = permissions[1] == 'w';
    CHECK(maps && !fclose(maps));
    return writable;
}

static void check_pages(void)
{
    int slots = 0;
#ifdef __GLIBC__
    int expected = WRITABLE || (OWN_LIST && is_bound);
#else
    int expected = !is_bound; /* on pages of their own */
#endif
    for (const struct part *part = __start_gpustub1_parts; part < __stop_gpustub1_parts; part++)
        for (const struct slot *slot = part->first; slot < part->last; slot++) {
            CHECK(is_writable(slot) == expected);
            slots++;
        }
    CHECK(slots == 2);
    CHECK(OWN_LIST || is_writable(&relocated[0]) == WRITABLE);
}

static void call(void)
{
    check_pages();
    CHECK(relocated[first]() == VALUE);
    is_bound = 1;
    check_pages();
}

int main(void)
{
    FIRST_AND_WARM(call());
    call();
    /* The exit hook of a child of a fork points the slots at their thunks again. */
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        call();
        exit(0);
    }
    check_child(child);
    call();
    PASSED();
}
