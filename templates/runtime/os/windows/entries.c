/* entries.c: the entry points of the run time, as the one table of all packages (abi.h): linkers keep the first. The
 * trampolines and the functions of gpustub.h, both in asm/<arch>_coff.S, jump through it. */
#include "internal.h"

static int public_load(const char *library);
static int public_is_available(const char *library);
static int public_has_function(const char *library, const char *function);
static const char *public_path(const char *library);
static int public_version(const char *library);
static const char *public_reason(const char *library);
static const char *public_report(const char *library);
static int public_counts(const char *library, int *bound, int *refused, int *missing);
static int public_set_handle(const char *library, void *handle);

struct entries {
    void *(*enter)(struct slot *, struct frame *);
    void (*answer)(const struct library *, const struct spec *, enum reason, struct frame *);
    void (*returned)(struct observed_call *, uintptr_t);
    int (*load)(const char *);
    int (*is_available)(const char *);
    int (*has_function)(const char *, const char *);
    const char *(*path)(const char *);
    int (*version)(const char *);
    const char *(*reason)(const char *);
    const char *(*report)(const char *);
    int (*counts)(const char *, int *, int *, int *);
    int (*set_handle)(const char *, void *);
};

MERGED_DATA const struct entries gpustub1_entries = {
    gpustub1_enter,     gpustub1_answer, gpustub1_returned, public_load,
    public_is_available, public_has_function, public_path,     public_version,
    public_reason,       public_report,    public_counts,      public_set_handle,
};
